"""PyTorch with Horovod on two nodes."""

from pathlib import Path

from trainmaster import Experiment, Mpi, PyTorch, Workspace

estimator = PyTorch(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.0025, "--epochs": 6},
    compute_target="local",
    pip_packages=["onnx", "onnxscript", "onnxruntime"],  # For the export at the end of the script.
    node_count=2,
    distributed_training=Mpi(process_count_per_node=1),
)
run = Experiment(Workspace.from_config(), "digits-horovod").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_status(), run.get_metrics())

"""Hugging Face Accelerate on two nodes. If a node is lost, the other one goes on from the last checkpoint."""

from pathlib import Path

from trainmaster import Experiment, Gloo, PyTorch, Workspace

estimator = PyTorch(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.005, "--epochs": 6},
    compute_target="local",
    node_count=2,
    distributed_training=Gloo(min_nodes=1),
    pip_packages=["accelerate"],
)
run = Experiment(Workspace.from_config(), "digits-accelerate").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_status(), run.get_metrics())

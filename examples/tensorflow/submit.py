"""TensorFlow on one node."""

from pathlib import Path

from trainmaster import Experiment, TensorFlow, Workspace

estimator = TensorFlow(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--lr": 0.005, "--epochs": 6},
    compute_target="local",
    pip_packages=["tf2onnx", "onnx", "onnxruntime"],  # For the export at the end of the script.
    environment_variables={"TF_CPP_MIN_LOG_LEVEL": "2"},  # TensorFlow itself prints errors only.
    use_gpu=False,
)
run = Experiment(Workspace.from_config(), "digits-tensorflow").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_status(), run.get_metrics())

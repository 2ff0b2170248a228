"""scikit-learn, with nothing but the constructor: `.venv/bin/python examples/sklearn/submit.py`."""

from pathlib import Path

from trainmaster import Experiment, SKLearn, Workspace

estimator = SKLearn(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--kernel": "rbf", "--penalty": 1.0},
    compute_target="local",
    pip_packages=["skl2onnx", "onnx", "onnxruntime"],  # For the export at the end of the script.
)
run = Experiment(Workspace.from_config(), "iris").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_metrics())

"""A script of 2020 as it was, with the release it was written for. Needs a Python 3.6, 3.7 or 3.8 on the machine."""

from pathlib import Path

from trainmaster import Experiment, PyTorch, Workspace

estimator = PyTorch(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--epochs": 20},
    compute_target="local",
    framework_version="1.4",
)
run = Experiment(Workspace.from_config(), "line").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_tags()["releases"], run.get_metrics()["loss"][-1])

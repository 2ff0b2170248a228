"""A sweep with Bayesian sampling, by the names of v1: each trial is chosen by what those before it gave."""

from pathlib import Path

from azureml.core import Experiment, Workspace
from azureml.train.dnn import TensorFlow
from azureml.train.hyperdrive import (
    BayesianParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    loguniform,
    quniform,
)

estimator = TensorFlow(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    framework_version="2.21",  # Without it: TensorFlow 1.13, as in v1.
    script_params={"--epochs": 3},
    compute_target="local",
    environment_variables={"TF_CPP_MIN_LOG_LEVEL": "2"},  # TensorFlow itself prints errors only.
    use_gpu=False,
)
sweep = HyperDriveConfig(
    estimator=estimator,
    hyperparameter_sampling=BayesianParameterSampling(
        # v1 allowed no loguniform here.
        {"--lr": loguniform(-10, -1), "--hidden": quniform(16, 128, 16)},
        properties={"seed": 1},
    ),
    primary_metric_name="accuracy",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=6,  # To be quick. For two parameters 40 would be right, and Trainmaster says so.
    max_concurrent_runs=2,
)
run = Experiment(Workspace.from_config(), "digits-bayesian").submit(sweep)
run.wait_for_completion(show_output=True)

best = run.get_best_run_by_primary_metric()
print(best.id, best.get_details()["runDefinition"]["arguments"], max(best.get_metrics()["accuracy"]))

"""A sweep over a grid: every combination once."""

from pathlib import Path

from trainmaster import (
    Experiment,
    GridParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    SKLearn,
    Workspace,
    choice,
)

estimator = SKLearn(
    source_directory=str(Path(__file__).parent / "project"), entry_script="train.py", compute_target="local"
)
sweep = HyperDriveConfig(
    estimator=estimator,
    hyperparameter_sampling=GridParameterSampling(
        {"--kernel": choice("linear", "rbf"), "--penalty": choice(0.01, 1.0, 10.0)}
    ),
    primary_metric_name="accuracy",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=100,  # The grid has six points: that is the end, too.
    max_concurrent_runs=2,
)
run = Experiment(Workspace.from_config(), "digits-grid").submit(sweep)
run.wait_for_completion(show_output=True)

for child in run.get_children_sorted_by_primary_metric():
    print(f"{child['best_primary_metric']:.4f}  {child['hyperparameters']}")

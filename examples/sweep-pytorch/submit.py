"""A sweep: random values, and the Bandit policy cuts trials that fall behind."""

from pathlib import Path

from trainmaster import (
    BanditPolicy,
    Experiment,
    HyperDriveConfig,
    PrimaryMetricGoal,
    PyTorch,
    RandomParameterSampling,
    Workspace,
    choice,
    loguniform,
)

estimator = PyTorch(
    source_directory=str(Path(__file__).parent / "project"),
    entry_script="train.py",
    script_params={"--epochs": 30},
    compute_target="local",
    use_gpu=False,
)
sweep = HyperDriveConfig(
    estimator=estimator,
    hyperparameter_sampling=RandomParameterSampling(
        {"--lr": loguniform(-9, -1), "--width": choice(8, 32, 64)},  # exponents of e: from 0.0001 to 0.4
        properties={"seed": 3},  # The same trials every time.
    ),
    # From the 10th epoch on, every 5 epochs: a trial whose best is below best of all / 1.2 is cut.
    policy=BanditPolicy(slack_factor=0.2, evaluation_interval=5, delay_evaluation=10),
    primary_metric_name="accuracy",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=6,
    max_concurrent_runs=2,
)
run = Experiment(Workspace.from_config(), "spiral-sweep").submit(sweep)
run.wait_for_completion(show_output=True)

best = run.get_best_run_by_primary_metric()
print("Best:      ", best.id)
print("Arguments: ", " ".join(best.get_details()["runDefinition"]["arguments"]))
print("Accuracy:  ", max(best.get_metrics()["accuracy"]))
print("\nLook again at any time:  trainmaster sweep show last")

"""Submits the sweep of the storm and waits for it. It may be killed at any moment."""

import sys
from pathlib import Path

from trainmaster import (
    BanditPolicy,
    Estimator,
    Experiment,
    GridParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    Workspace,
    choice,
)

folder, source, proofs, run_id = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
trials = int(sys.argv[5])
estimator = Estimator(
    source, entry_script="sweep_job.py", script_params={"--proofs": proofs}, compute_target="box", user_managed=True
)
config = HyperDriveConfig(
    GridParameterSampling({"--value": choice(list(range(trials)))}),
    "score",
    PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=trials,
    max_concurrent_runs=4,
    policy=BanditPolicy(slack_amount=10, delay_evaluation=2),
    estimator=estimator,
    custom_run_id=run_id,
    max_failures_in_a_row=trials,
)
run = Experiment(Workspace(path=folder), "storm").submit(config)
print("submitted", flush=True)
run.wait_for_completion(raise_on_error=False)

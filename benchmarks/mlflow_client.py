"""What MLflow's own client takes for the same questions."""

from __future__ import annotations

import json
import os
import subprocess

from benchmarks.mlflow_servers import PACKAGES, PATIENCE, Asked
from benchmarks.serving import environment

_CLIENT = """
import json, statistics, sys, time
from mlflow import MlflowClient
from mlflow.entities import Metric
experiment, long_run = sys.argv[1:]
client = MlflowClient()
run = client.create_run(experiment).info.run_id
def measure(times, call):
    taken = []
    for number in range(times + (times > 1)):
        begun = time.perf_counter()
        call(number)
        taken.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(taken[-times:])
def log_batch(number):
    client.log_batch(run, [Metric("many", s / 7, s, s) for s in range(number * 1000, number * 1000 + 1000)])
def search(order):
    return lambda _: client.search_runs([experiment], max_results=100, order_by=[order])
print(json.dumps({
    "log_metric": measure(50, lambda number: client.log_metric(run, "one", number / 7, step=number)),
    "log_batch of 1,000": measure(5, log_batch),
    "search_runs, newest 100": measure(3, search("attributes.start_time DESC")),
    "get_metric_history, in all pages": measure(1, lambda _: client.get_metric_history(long_run, "long")),
}))
"""


def run_client(asked: Asked) -> dict[str, float]:
    """The same through MLflow's own client, which takes its time itself."""
    done = subprocess.run(
        [str(environment("mlflow-servers", PACKAGES)), "-c", _CLIENT, asked.experiment_id, asked.long_run],
        env={
            **os.environ,
            "MLFLOW_TRACKING_URI": asked.address,
            "MLFLOW_TRACKING_TOKEN": asked.token,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": str(int(PATIENCE)),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found

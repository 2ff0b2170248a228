"""`trainmaster import mlflow` from a database, a folder `mlruns` and a server, beside MLflow's own reading of them.

    python -m benchmarks.mlflow_import [--json] [--runs 2000] [--points 1000] [--only sqlite,folder,server]

Each source has the same runs: two metrics with half of the points each, ten parameters and five tags. MLflow reads them
with its client: `search_runs`, then `get_metric_history` for each metric. Both begin when MLflow is imported and the
source is open. The processor time of an import is that of the command and of the dispatcher.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mlflow_releases import find_python_of_user

from benchmarks.server import Program, read_cpu, running
from benchmarks.serving import free_port
from trainmaster import Workspace

_PATIENCE = 600.0
_VARIABLES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}

_FILL = """
import sys, uuid
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.store.tracking.dbmodels.models import SqlRun, SqlMetric, SqlLatestMetric, SqlParam, SqlTag
folder, count, points = sys.argv[1], *map(int, sys.argv[2:])
store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", f"file://{folder}/files")
experiment = int(store.create_experiment("many"))
for n in range(count):
    run, start = uuid.uuid4().hex, 1_700_000_000_000 + n
    with store.ManagedSessionMaker() as session:
        insert = lambda model, rows: session.execute(model.__table__.insert(), rows)
        insert(SqlRun, [dict(run_uuid=run, name=f"run-{n}", source_type="UNKNOWN", source_name="", entry_point_name="",
            user_id="ann", status="FINISHED", start_time=start, end_time=start + 1, source_version="",
            lifecycle_stage="active", artifact_uri=f"file://{folder}/files/{run}", experiment_id=experiment)])
        insert(SqlParam, [dict(key=f"p{k}", value=str(k), run_uuid=run) for k in range(10)])
        tags = {"mlflow.runName": f"run-{n}", **{f"t{k}": str(k) for k in range(4)}}
        insert(SqlTag, [dict(key=key, value=value, run_uuid=run) for key, value in tags.items()])
        for key in ("loss", "accuracy"):
            rows = [dict(key=key, value=1 / (s + 1), timestamp=start + s, step=s, is_nan=False, run_uuid=run)
                for s in range(points // 2)]
            insert(SqlMetric, rows)
            insert(SqlLatestMetric, rows[-1:])
"""

_FILL_FOLDER = """
import sys, uuid
from pathlib import Path
from mlflow import MlflowClient
folder, count, points = sys.argv[1], *map(int, sys.argv[2:])
client = MlflowClient(f"file://{folder}")
experiment = client.create_experiment("many")
for n in range(count):
    run = client.create_run(experiment, run_name=f"run-{n}", tags={f"t{k}": str(k) for k in range(4)}).info.run_id
    place = Path(folder, experiment, run)
    for k in range(10):
        (place / "params" / f"p{k}").write_text(str(k))
    for key in ("loss", "accuracy"):
        lines = (f"{1_700_000_000_000 + s} {1 / (s + 1)} {s}" for s in range(points // 2))
        (place / "metrics" / key).write_text("\\n".join(lines) + "\\n")
    client.set_terminated(run)
"""

_READ = """
import json, sys, time
from mlflow import MlflowClient
client, count, values, token = MlflowClient(sys.argv[1]), 0, 0, None
experiment = client.get_experiment_by_name("many").experiment_id
begun, used = time.perf_counter(), time.process_time()
while True:
    page = client.search_runs([experiment], max_results=1000, page_token=token, order_by=["attributes.start_time ASC"])
    for run in page:
        count += 1
        values += sum(len(client.get_metric_history(run.info.run_id, key)) for key in run.data.metrics)
    token = page.token
    if not token:
        break
print(json.dumps([count, values, time.perf_counter() - begun, time.process_time() - used]))
"""

_IMPORT = """
import json, resource, sys, time
from trainmaster.sdk.mlflow.transfer import Transfer
from trainmaster.sdk.mlflow.transfer_sides import Side
sides = Side(sys.argv[1]), Side(sys.argv[2], True)
transfer = Transfer(*sides, lambda report, total: None)
begun, used = time.perf_counter(), time.process_time()
report = transfer.copy()
assert not report.problems, report.problems[:3]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([report.runs, report.values, time.perf_counter() - begun, time.process_time() - used, peak]))
"""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds per run, by source."""
    found: dict[str, Any] = {"runs": options.runs, "points": options.points}
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        for kind in options.only.split(","):
            with _open_source(base, kind, options) as address:
                found[kind] = {"mlflow": _read(address), "trainmaster": _import(base / f"copy-{kind}", address)}
                print(kind, found[kind], file=sys.stderr, flush=True)
    return found


@contextlib.contextmanager
def _open_source(base: Path, kind: str, options: argparse.Namespace) -> Iterator[str]:
    counts = (str(options.runs), str(options.points))
    if kind == "folder":
        folder = base / "mlruns"
        folder.mkdir()
        _run(_FILL_FOLDER, str(folder), *counts)
        yield folder.as_uri()
        return
    if not (base / "mlflow.db").exists():
        _run(_FILL, str(base), *counts)
    address = f"sqlite:///{base}/mlflow.db"
    if kind == "sqlite":
        yield address
        return
    port = free_port()
    words = ["server", "--backend-store-uri", address, "--port", str(port), "--workers", "1"]
    program = Program([str(find_python_of_user()), "-m", "mlflow", *words], port, base / "mlflow.log", **_VARIABLES)
    with running(program):
        program.wait("/health", _PATIENCE)
        yield f"http://127.0.0.1:{port}"


def _run(script: str, *words: str) -> Any:
    done = subprocess.run(
        [str(find_python_of_user()), "-W", "ignore", "-c", script, *words],
        env={**os.environ, **_VARIABLES},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None


def _read(address: str) -> dict[str, float]:
    count, _, seconds, cpu = _run(_READ, address)
    return {"ms": 1e3 * seconds / count, "cpu_ms": 1e3 * cpu / count}


def _import(folder: Path, address: str) -> dict[str, float]:
    workspace = Workspace.create("copy", path=folder, show_output=False)
    connection = workspace.backend.connection
    dispatcher = int(connection.call("status")["pid"])
    before = read_cpu(dispatcher)
    try:
        count, _, seconds, cpu, peak = _run(_IMPORT, address, workspace.get_mlflow_tracking_uri())
        # What is still read into the database belongs to it, too.
        time.sleep(0.5)
        cpu += read_cpu(dispatcher) - before
    finally:
        connection.call("shutdown")
        shutil.rmtree(folder, ignore_errors=True)
    return {"ms": 1e3 * seconds / count, "cpu_ms": 1e3 * cpu / count, "peak_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--only", default="sqlite,folder,server")
    options = parser.parse_args()
    found = measure(options)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(
        f"{options.runs:,} runs with {options.points:,} values each; milliseconds per run, and those of the processor"
    )
    for kind in options.only.split(","):
        theirs, ours = found[kind]["mlflow"], found[kind]["trainmaster"]
        reading = f"read by MLflow {theirs['ms']:7.1f} {theirs['cpu_ms']:7.1f}"
        copying = f"imported {ours['ms']:7.1f} {ours['cpu_ms']:7.1f} ({1e3 / ours['ms']:.0f} runs/s)"
        print(f"{kind:8} {reading}   {copying}, {ours['peak_mb']:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())

"""MLflow's server and ours, asked the same over MLflow's REST API: logging, searching, reading a long history.

    python -m benchmarks.mlflow [--json] [--runs 100000] [--points 1000000] [--only sqlite,postgresql] [--no-clients]
        [--patience 600]

Both servers run on this machine, have the same runs, and are asked the same in turn, each over one connection that
stays open; before that, a real client of MLflow asks each of them. Runs and points are put into the databases by SQL,
because MLflow's API would take hours. MLflow is installed once under ~/.cache.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import create_engine, make_url, text
from tests.postgresql import run_server

from benchmarks.search import Rows, insert_rows
from benchmarks.server import Program, Served, read_cpu, running
from benchmarks.serving import environment, free_port
from trainmaster import Workspace
from trainmaster.dispatcher.mlflow.offsets import write_offset
from trainmaster.dispatcher.store import schema
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder

NAMES = (
    "log_metric",
    "log_batch of 1,000",
    "search_runs, newest 100",
    "get_metric_history, one page of it",
    "get_metric_history, whole",
    # The last one, and ours is asked first: MLflow's server goes on with it after the client has given up.
    "search_runs, sorted by a metric",
)
_PACKAGES = ["mlflow==3.17.2", "psycopg2-binary"]
_BATCH = 1000
_CLIENT_PAGE = 25_000
_START = 1_700_000_000_000
_PAGE = 20_000
_PATIENCE = 1800.0
_ROUNDS = 5


@dataclass(frozen=True)
class Asked:
    """A server of MLflow's API, filled with runs."""

    port: int
    prefix: str
    token: str
    experiment_id: str
    long_run: str
    """The run with the long history."""
    read_cpu: Callable[[], float]
    """Seconds of processor time that the server and its database have used."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"


class Line:
    """One connection to a server, which stays open."""

    def __init__(self, asked: Asked, patience: float) -> None:
        self._asked = asked
        self._connection = http.client.HTTPConnection("127.0.0.1", asked.port, timeout=patience)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return json.loads(self._send("POST", path, json.dumps(body).encode()))

    def get(self, path: str, **query: Any) -> bytes:
        return self._send("GET", f"{path}?{urlencode(query)}", None)

    def close(self) -> None:
        """End the connection. The next request opens it again."""
        self._connection.close()

    def _send(self, method: str, path: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._asked.token:
            headers["Authorization"] = f"Bearer {self._asked.token}"
        try:
            self._connection.request(method, f"{self._asked.prefix}/api/2.0/mlflow/{path}", body, headers)
            answer = self._connection.getresponse()
            found = answer.read()
        except TimeoutError:
            self.close()
            raise
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {found[:500]!r}")
        return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds by database, server and question."""
    found: dict[str, Any] = {"runs": options.runs, "points": options.points}
    for place in options.only.split(","):
        with contextlib.ExitStack() as stack:
            base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
            make_database = stack.enter_context(_open_databases(place))
            asked: dict[str, Asked] = {}
            for name, start in (("trainmaster", start_ours), ("mlflow", start_mlflow)):
                (base / name).mkdir()
                asked[name] = stack.enter_context(start(base / name, make_database(), options))
            found[place] = {
                f"{name} with a client": run_client(each) for name, each in asked.items() if options.clients
            }
            found[place] |= ask_all(asked, options)
    return found


@dataclass(frozen=True)
class Database:
    """An empty database of a PostgreSQL server, or none for a file of SQLite."""

    url: str = ""
    processes: tuple[int, ...] = ()


@contextlib.contextmanager
def _open_databases(place: str) -> Iterator[Callable[[], Database]]:
    if place == "sqlite":
        yield Database
    else:
        with run_server(durable=True) as server:
            postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
            yield lambda: Database(server.create_database(), (postmaster,))


# The questions


def ask_all(servers: Mapping[str, Asked], options: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Ask the servers in turn, so that what else the machine does slows down all of them."""
    lines = {name: Line(asked, options.patience) for name, asked in servers.items()}
    runs = {name: _create_run(lines[name], asked) for name, asked in servers.items()}
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in servers}
    for question, times, ask in _list_questions(options):
        clocks = {name: Clock(asked.read_cpu, options.patience) for name, asked in servers.items()}
        for part in range(min(times, _ROUNDS)):
            for name, asked in servers.items():
                call = partial(ask, lines[name], asked, runs[name])
                if part == 0 and times > 1:
                    # The first one does not count.
                    clocks[name].warm_up(lambda call=call: call(0))
                clocks[name].measure([partial(call, number) for number in range(1 + part, 1 + times, _ROUNDS)])
                # While the other server is asked, this one would end it.
                lines[name].close()
        for name, clock in clocks.items():
            found[name][question] = clock.summarize()
            print(name, question, found[name][question], file=sys.stderr, flush=True)
    return found


Ask = Callable[[Line, Asked, str, int], None]


def _list_questions(options: argparse.Namespace) -> Iterator[tuple[str, int, Ask]]:
    """Name, how many times, and what is asked."""
    asks: tuple[tuple[int, Ask], ...] = (
        (options.calls, lambda line, _, run_id, number: _log_metric(line, run_id, number)),
        (options.batches, lambda line, _, run_id, number: _log_batch(line, run_id, number)),
        (options.searches, lambda line, asked, *_: _search(line, asked, "attributes.start_time DESC")),
        (3 * options.histories, lambda line, asked, *_: _read_page(line, asked, options.points)),
        (options.histories, lambda line, asked, *_: _read_whole(line, asked, options.points)),
        (options.searches, lambda line, asked, *_: _search(line, asked, "metrics.loss ASC")),
    )
    for name, (times, ask) in zip(NAMES, asks, strict=True):
        yield name, times, ask


def _create_run(line: Line, asked: Asked) -> str:
    found: str = line.post("runs/create", {"experiment_id": asked.experiment_id})["run"]["info"]["run_id"]
    return found


class Clock:
    """Measures the calls of one question to one server. After one that took longer than patience, there are no more."""

    def __init__(self, read_cpu: Callable[[], float], patience: float) -> None:
        self._read_cpu = read_cpu
        self._patience = patience
        self._taken: list[float] = []
        self._used = 0.0
        self._is_given_up = False

    def warm_up(self, call: Callable[[], None]) -> None:
        """A call that is not measured."""
        try:
            call()
        except TimeoutError:
            self._is_given_up = True

    def measure(self, calls: Sequence[Callable[[], None]]) -> None:
        """Measure calls."""
        before = self._read_cpu()
        for call in calls:
            if self._is_given_up:
                return
            begun = time.perf_counter()
            self.warm_up(call)
            self._taken.append(1e3 * (time.perf_counter() - begun))
        # What is still read into the database belongs to it, too.
        time.sleep(0.5)
        self._used += 1e3 * (self._read_cpu() - before)

    def summarize(self) -> dict[str, float]:
        """The median of the milliseconds, and the mean of those of the processor. Infinite if it was given up."""
        if self._is_given_up:
            return {"ms": math.inf, "cpu_ms": math.inf, "patience_ms": 1e3 * self._patience}
        return {"ms": statistics.median(self._taken), "cpu_ms": self._used / len(self._taken)}


def sum_cpu(*processes: int) -> float:
    """Of these processes and all that they have started."""
    found = list(processes)
    for process in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    total = 0.0
    for process in found:
        with contextlib.suppress(OSError):
            total += read_cpu(process)
    return total


def _log_metric(line: Line, run_id: str, number: int) -> None:
    body = {"run_id": run_id, "key": "one", "value": number / 7, "timestamp": _START + number, "step": number}
    line.post("runs/log-metric", body)


def _log_batch(line: Line, run_id: str, number: int) -> None:
    steps = range(number * _BATCH, (number + 1) * _BATCH)
    metrics = [{"key": "many", "value": step / 7, "timestamp": _START + step, "step": step} for step in steps]
    line.post("runs/log-batch", {"run_id": run_id, "metrics": metrics})


def _search(line: Line, asked: Asked, order: str) -> None:
    body = {"experiment_ids": [asked.experiment_id], "max_results": 100, "order_by": [order]}
    found = line.post("runs/search", body)["runs"]
    assert len(found) == 100, len(found)


def _read_whole(line: Line, asked: Asked, points: int) -> None:
    found = line.get("metrics/get-history", run_id=asked.long_run, metric_key="long")
    count = found.count(b'"timestamp"')
    assert count == points, count


def _read_page(line: Line, asked: Asked, points: int) -> None:
    """The page in the middle, as large as clients ask for. They read all pages, one after the other."""
    count = min(_CLIENT_PAGE, points // 2)
    found = line.get(
        "metrics/get-history",
        run_id=asked.long_run,
        metric_key="long",
        max_results=count,
        page_token=write_offset(points // 2),
    )
    assert found.count(b'"timestamp"') == count


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
        [str(environment("mlflow-servers", _PACKAGES)), "-c", _CLIENT, asked.experiment_id, asked.long_run],
        env={
            **os.environ,
            "MLFLOW_TRACKING_URI": asked.address,
            "MLFLOW_TRACKING_TOKEN": asked.token,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": str(int(_PATIENCE)),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# MLflow

_FILL_MLFLOW = """
import random, sys, uuid
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.store.tracking.dbmodels.models import SqlRun, SqlMetric, SqlLatestMetric, SqlParam, SqlTag
address, folder, count, points, start, page = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
store = SqlAlchemyStore(address, folder)
experiment = int(store.create_experiment("many"))
chance = random.Random(1)
with store.ManagedSessionMaker() as session:
    insert = lambda model, rows: session.execute(model.__table__.insert(), rows)
    for first in range(0, count, page):
        rows = {model: [] for model in (SqlRun, SqlParam, SqlTag, SqlMetric, SqlLatestMetric)}
        for n in range(first, min(first + page, count)):
            run = uuid.uuid4().hex
            rows[SqlRun].append(dict(run_uuid=run, name=f"run-{n}", source_type="UNKNOWN", source_name="",
                entry_point_name="", user_id="ann", status="FINISHED", start_time=start + n, end_time=start + n + 1,
                source_version="", lifecycle_stage="active", artifact_uri=folder, experiment_id=experiment))
            rows[SqlParam].append(dict(key="lr", value=str(10 ** chance.uniform(-4, 0)), run_uuid=run))
            for key, value in (("kind", chance.choice(("base", "large"))), ("mlflow.runName", f"run-{n}")):
                rows[SqlTag].append(dict(key=key, value=value, run_uuid=run))
            for key in ("loss", "accuracy"):
                point = dict(key=key, value=chance.random(), timestamp=start + n, step=0, is_nan=False, run_uuid=run)
                rows[SqlMetric].append(point)
                rows[SqlLatestMetric].append(point)
        for model, each in rows.items():
            insert(model, each)
    for first in range(0, points, page):
        steps = range(first, min(first + page, points))
        insert(SqlMetric, [dict(key="long", value=s / 7, timestamp=start + s, step=s, is_nan=False, run_uuid=run)
            for s in steps])
    insert(SqlLatestMetric, [dict(key="long", value=0.5, timestamp=start, step=points, is_nan=False, run_uuid=run)])
print(experiment, run)
"""


@contextlib.contextmanager
def start_mlflow(base: Path, database: Database, options: argparse.Namespace) -> Iterator[Asked]:
    """MLflow's server, as its documentation starts it, with one worker."""
    python = environment("mlflow-servers", _PACKAGES)
    address = database.url.replace("postgresql://", "postgresql+psycopg2://") or f"sqlite:///{base}/mlflow.db"
    counts = [str(each) for each in (options.runs, options.points, _START, _PAGE)]
    filled = subprocess.run(
        [str(python), "-c", _FILL_MLFLOW, address, str(base), *counts],
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    experiment_id, long_run = filled.stdout.split()[-2:]
    if database.url:
        _analyze(database.url)
    port = free_port()
    words = ["server", "--backend-store-uri", address, "--port", str(port), "--workers", "1"]
    variables = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    program = Program([str(python), "-m", "mlflow", *words], port, base / "mlflow.log", **variables)
    with running(program):
        program.wait("/health", _PATIENCE)
        yield Asked(port, "", "", experiment_id, long_run, lambda: sum_cpu(program.process.pid, *database.processes))


# Ours


@contextlib.contextmanager
def start_ours(base: Path, database: Database, options: argparse.Namespace) -> Iterator[Asked]:
    """Our server with one workspace, whose runs are put into its database while no dispatcher uses it."""
    served = Served(base, *(["--database", database.url] if database.url else []))
    with running(served.program):
        served.ask("POST", "/api/v1/workspaces", {"name": "bench"})
        made = served.ask("POST", "/mlflow/bench/api/2.0/mlflow/experiments/create", {"name": "many"})
        workspace = Workspace(path=served.root / "workspaces" / "bench")
        workspace.backend.connection.call("shutdown")
        long_run = fill(served.root / "workspaces" / "bench", database.url, int(made["experiment_id"]), options)
        dispatcher = int(workspace.backend.connection.call("status")["pid"])
        processes = (served.program.process.pid, dispatcher, *database.processes)
        yield Asked(
            served.program.port,
            "/mlflow/bench",
            served.token,
            made["experiment_id"],
            long_run,
            lambda: sum_cpu(*processes),
        )


_RUN = (
    *("seq", "id", "experiment_seq", "number", "type", "status", "created_at", "started_at", "ended_at"),
    *("display_name", "description", "target", "snapshot_id", "waiting_for", "nodes", "error", "warnings"),
    *("submitted_by", "tags", "properties", "params"),
)
_METRIC = ("id", "run_seq", "name", "kind", "count", "minimum", "maximum", "last_number", "last_form")
_POINT = ("metric_id", "idx", "number", "form", "step", "time")
_TAG = 0


def fill(folder: Path, database: str, experiment: int, options: argparse.Namespace) -> str:
    """Add the same runs as in MLflow's database, and return the one with the long history."""
    if database:
        address = read_address(WorkspaceFolder(folder))
        assert address is not None
        engine = create_engine(
            make_url(database).set(drivername="postgresql+psycopg"),
            connect_args={"options": f"-c search_path={address.schema}"},
        )
    else:
        engine = create_engine(f"sqlite:///{folder / 'trainmaster.db'}")
    chance = random.Random(1)
    with engine.begin() as connection:
        for first in range(0, options.runs, _PAGE):
            page = _make_rows(range(first, min(first + _PAGE, options.runs)), experiment, chance)
            for table, (columns, rows) in page.items():
                insert_rows(connection, table, columns, rows)
        metric, last = 2 * options.runs + 1, options.points - 1
        row = (metric, options.runs, "long", "scalar", options.points, 0.0, last / 7, last / 7, 0)
        insert_rows(connection, schema.metrics, _METRIC, [row])
        for first in range(0, options.points, _PAGE):
            steps = range(first, min(first + _PAGE, options.points))
            points = [(metric, step, step / 7, 0, step, (_START + step) / 1000) for step in steps]
            insert_rows(connection, schema.metric_points, _POINT, points)
        if database:
            for table, column in (("runs", "seq"), ("metrics", "id")):
                name = f"{table}_{column}_seq"
                connection.execute(text(f"SELECT setval('{name}', (SELECT max({column}) FROM {table}))"))
    engine.dispose()
    if database:
        _analyze(database)
    return _name_run(options.runs - 1)


def _name_run(number: int) -> str:
    return f"{number:032x}"


def _make_rows(numbers: range, experiment: int, chance: random.Random) -> Rows:
    found: Rows = {
        schema.runs: (_RUN, []),
        schema.arguments: (("run_seq", "name", "text", "number"), []),
        schema.run_labels: (("run_seq", "kind", "name", "value"), []),
        schema.metrics: (_METRIC, []),
        schema.metric_points: (_POINT, []),
    }
    rows = {table: page for table, (_, page) in found.items()}
    for number in numbers:
        seq, at = number + 1, (_START + number) / 1000
        lr, kind = 10 ** chance.uniform(-4, 0), chance.choice(("base", "large"))
        tags = {"kind": kind, "mlflow.runName": f"run-{number}"}
        rows[schema.runs].append(
            (
                *(seq, _name_run(number), experiment, seq, "mlflow", "Completed", at, at, at + 0.001),
                *(f"run-{number}", "", "", "", "", "", "", "", "ann"),
                *(json.dumps(tags), "", json.dumps({"lr": str(lr)})),
            )
        )
        rows[schema.arguments].append((seq, "lr", str(lr), lr))
        rows[schema.run_labels] += [(seq, _TAG, name, value) for name, value in tags.items()]
        for place, name in enumerate(("loss", "accuracy")):
            metric, value = 2 * number + place + 1, chance.random()
            rows[schema.metrics].append((metric, seq, name, "scalar", 1, value, value, value, 0))
            rows[schema.metric_points].append((metric, 0, value, 0, 0, at))
    return found


def _analyze(database: str) -> None:
    engine = create_engine(make_url(database).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--only", default="sqlite,postgresql")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--histories", type=int, default=1)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which an answer is given up")
    parser.add_argument("--no-clients", dest="clients", action="store_false", help="without MLflow's own client")
    parser.add_argument("--folder", help="where the databases are; a temporary folder without it")
    options = parser.parse_args()
    found = measure(options)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{options.runs:,} runs, a metric of {options.points:,} points; milliseconds, and those of the processor")
    for place in options.only.split(","):
        theirs, ours = found[place]["mlflow"], found[place]["trainmaster"]
        for name in NAMES:
            values = [theirs[name]["ms"], ours[name]["ms"], theirs[name]["cpu_ms"], ours[name]["cpu_ms"]]
            print(f"{place:12} {name:34} {_show(*values[:2])} {_show(*values[2:])}")
        for name, value in found[place].get("trainmaster with a client", {}).items():
            print(f"{place:12} {name + ' (client)':34} {_show(found[place]['mlflow with a client'][name], value)}")


def _show(theirs: float, ours: float) -> str:
    return f"{theirs:12.2f} {ours:10.2f} {theirs / max(ours, 1e-3):8.1f} times"


if __name__ == "__main__":
    sys.exit(main())

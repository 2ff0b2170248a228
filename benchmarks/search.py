"""Searching a million runs on PostgreSQL and SQLite, beside MLflow's `search_runs`.

python -m benchmarks.search [--json] [--runs 1000000] [--only sqlite|postgresql] [--mlflow] [--mlflow-runs 10000]
python -m benchmarks.search --runs 100000 --only sqlite --mlflow --mlflow-runs 100000

`--mlflow` installs MLflow into an environment of its own below ~/.cache, once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Table, create_engine, insert, make_url, text
from tests.postgresql import run_server

from trainmaster.dispatcher.store import Store, schema
from trainmaster.dispatcher.store.search import Search
from trainmaster.shared.filters import parse_filter, parse_order

NOW = 1_800_000_000.0
_PAGE = 50_000
_TIMES = 21
_MLFLOW = Path.home() / ".cache/trainmaster-benchmarks/mlflow"

# Name, filter, order, and the milliseconds that the issue allows.
QUESTIONS: Sequence[tuple[str, str, str, float]] = (
    ("newest 100", "", "", 10),
    ("newest 100 of an experiment", "experiment = exp-3", "", 10),
    ("sorted by a metric", "", "metric.loss", 50),
    ("sorted by a metric's minimum, descending", "", "metric.loss.min desc", 50),
    ("filtered by an argument, sorted by a metric", "lr < 0.01", "metric.loss", 50),
    ("filtered by four, sorted by a metric", "lr < 0.05 and tag.kind = base and status = Completed and user = ann",
     "metric.accuracy desc", 50),
    ("filtered and sorted by the same metric", "metric.loss < 0.5", "metric.loss desc", 50),
    ("filtered and sorted by the same metric, and an argument", "metric.loss < 0.5 and lr < 0.01",
     "metric.loss desc", 50),
    ("filtered by a metric, sorted by an argument", "metric.loss.min <= 0.1", "lr", 50),
    ("a rare argument, sorted by a metric", "seed = 77", "metric.loss", 50),
    ("a rare state, newest first", "status = Canceled and lr < 0.5", "", 50),
    ("the last day, sorted by a metric", "created > -1d", "metric.loss", 50),
    ("a pattern, newest first", "name ~ run-9?9*", "", 50),
    ("two frequent conditions that are rare together", "user = eve and experiment = exp-3", "metric.loss", 50),
    ("nothing matches", "lr > 100", "metric.loss", 50),
)  # fmt: skip


def measure(places: Sequence[str], runs: int) -> dict[str, Any]:
    """Milliseconds by database and question."""
    found: dict[str, Any] = {"runs": runs}
    for place in places:
        with _open(place) as address:
            began = time.perf_counter()
            fill(address, runs)
            found[f"{place}_load_s"] = time.perf_counter() - began
            store = Store.open(address)
            found[place] = {name: _ask(store, where, order) for name, where, order, _ in QUESTIONS}
            store.close()
    return found


@contextmanager
def _open(place: str) -> Iterator[Path | str]:
    if place == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trainmaster.db"
            Store.create(path).close()
            yield path
    else:
        with run_server() as server:
            url = server.create_database()
            Store.create(url).close()
            yield url


def _ask(store: Store, where: str, order: str) -> dict[str, float]:
    search = Search(
        parse_filter(where, NOW),
        parse_order(order) if order else None,
        ("id", "experiment", "status", "created", "lr", "metric.loss.min", "tag.kind"),
        has_children=True,
    )
    taken = []
    backend = _find_backend(store)
    for _ in range(_TIMES):
        cpu, begin = _read_cpu(backend), time.perf_counter()
        page = store.search.find(search, NOW)
        taken.append(((time.perf_counter() - begin) * 1000, (_read_cpu(backend) - cpu) * 1000))
        if sum(wall for wall, _ in taken) > 20_000:
            break
    walls, cpus = zip(*taken, strict=True)
    return {"ms": statistics.median(walls), "least_ms": min(walls), "cpu_ms": min(cpus), "rows": len(page.rows)}


def _find_backend(store: Store) -> int | None:
    """The process of PostgreSQL that answers."""
    with store._database.read() as connection:
        if connection.dialect.name == "sqlite":
            return None
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _read_cpu(backend: int | None) -> float:
    """Seconds of processor time of this process and of PostgreSQL's: what it takes on a machine of its own."""
    server = 0 if backend is None else int(Path(f"/proc/{backend}/schedstat").read_text().split()[0])
    return time.process_time() + server / 1e9


# Loading


def fill(address: Path | str, runs: int) -> None:
    """Add finished runs with arguments, metrics and tags. Indexes are created afterwards, which is faster."""
    path = address if isinstance(address, Path) else None
    url = f"sqlite:///{path}" if path else make_url(str(address)).set(drivername="postgresql+psycopg")
    engine = create_engine(url)
    tables = (schema.runs, schema.arguments, schema.metrics, schema.run_labels)
    with engine.begin() as connection:
        for n in range(20):
            row = {"id": f"e{n}", "name": f"exp-{n}", "created_at": 1.0, "run_count": runs, "tags": ""}
            connection.execute(insert(schema.experiments), row)
        for table in tables:
            for index in table.indexes:
                index.drop(connection)
        chance = random.Random(1)
        for start in range(0, runs, _PAGE):
            page = _make_rows(range(start + 1, min(start + _PAGE, runs) + 1), runs, chance)
            for table, (columns, rows) in page.items():
                insert_rows(connection, table, columns, rows)
        for table in tables:
            for index in table.indexes:
                index.create(connection)
    if not path:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("SELECT setval('runs_seq_seq', (SELECT max(seq) FROM runs))"))
            connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()


Rows = dict[Table, tuple[tuple[str, ...], list[tuple[Any, ...]]]]

_RUN = (
    *("seq", "id", "experiment_seq", "number", "type", "status", "created_at", "started_at", "ended_at"),
    *("display_name", "description", "target", "snapshot_id", "waiting_for", "nodes", "error", "warnings"),
    *("submitted_by", "tags", "properties"),
)
_METRIC = ("run_seq", "name", "kind", "count", "minimum", "maximum", "last_number", "last_form")
_STATUSES = ["Completed"] * 900 + ["Failed"] * 99 + ["Canceled"]
_USERS = ["ann", "bob", "cem", "dan", "eve"]


def _make_rows(seqs: range, runs: int, chance: random.Random) -> Rows:
    found: Rows = {
        schema.runs: (_RUN, []),
        schema.arguments: (("run_seq", "name", "text", "number"), []),
        schema.metrics: (_METRIC, []),
        schema.run_labels: (("run_seq", "kind", "name", "value"), []),
    }
    rows = {table: page for table, (_, page) in found.items()}
    for seq in seqs:
        created = NOW - (runs - seq) * 10.0
        kind = chance.choice(("base", "large"))
        experiment = chance.randrange(20) + 1
        # One user has most runs in one experiment, and hardly any in the others.
        user = "eve" if experiment == 10 else chance.choice(_USERS if seq % 1000 == 0 else _USERS[:4])
        rows[schema.runs].append(
            (
                *(seq, f"run_{seq}", experiment, seq, "azureml.scriptrun", chance.choice(_STATUSES)),
                *(created, created + 1, created + 60, f"run-{seq}", "", "local", "", "", "[0]", "", ""),
                *(user, f'{{"kind":"{kind}"}}', ""),
            )
        )
        lr, seed = round(10 ** chance.uniform(-4, 0), 6), chance.randrange(1000) if seq % 50 == 0 else 0
        rows[schema.arguments] += [(seq, "lr", str(lr), lr), (seq, "seed", str(seed), float(seed))]
        loss, accuracy = chance.random() * 2, chance.random()
        rows[schema.metrics] += [
            (seq, "loss", "scalar", 100, loss * 0.9, loss * 3, loss, 0),
            (seq, "accuracy", "scalar", 100, accuracy * 0.1, accuracy, accuracy, 0),
        ]
        rows[schema.run_labels].append((seq, 0, "kind", kind))
    return found


def insert_rows(connection: Any, table: Table, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    driver = connection.connection.driver_connection
    names = ", ".join(f'"{name}"' for name in columns)
    if connection.dialect.name == "sqlite":
        driver.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})", rows)
        return
    with driver.cursor().copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


# MLflow

_MLFLOW_PROGRAM = """
import json, random, statistics, sys, tempfile, time, uuid
from mlflow.entities import Metric, Param, RunTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.store.tracking.dbmodels.models import SqlRun, SqlMetric, SqlLatestMetric, SqlParam, SqlTag
folder = tempfile.mkdtemp()
store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", folder)
experiment = store.create_experiment("e")
chance = random.Random(1)
count = int(sys.argv[1])
with store.ManagedSessionMaker() as session:
    for n in range(count):
        run = uuid.uuid4().hex
        session.add(SqlRun(run_uuid=run, name=f"run-{n}", source_type="UNKNOWN", source_name="", entry_point_name="",
            user_id="ann", status="FINISHED", start_time=n, end_time=n + 1, source_version="", lifecycle_stage="active",
            artifact_uri=folder, experiment_id=int(experiment)))
        lr, loss = 10 ** chance.uniform(-4, 0), chance.random()
        session.add(SqlParam(key="lr", value=str(lr), run_uuid=run))
        session.add(SqlTag(key="kind", value="base", run_uuid=run))
        for metric in ("loss", "accuracy"):
            session.add(SqlMetric(key=metric, value=loss, timestamp=n, step=0, is_nan=False, run_uuid=run))
            session.add(SqlLatestMetric(key=metric, value=loss, timestamp=n, step=0, is_nan=False, run_uuid=run))
        if n % 1000 == 999:
            session.flush()
            session.expunge_all()
def ask(name, where, order):
    taken = []
    while len(taken) < 5 and sum(taken) < 60_000:
        begin = time.perf_counter()
        store.search_runs([experiment], where, 1, 100, order, None)
        taken.append((time.perf_counter() - begin) * 1000)
    print(json.dumps({name: statistics.median(taken)}), flush=True)
ask("newest 100", "", [])
ask("sorted by a metric", "", ["metrics.loss ASC"])
ask("filtered by a metric, sorted by a metric", "metrics.accuracy < 0.5", ["metrics.loss ASC"])
"""
_MLFLOW_PATIENCE = 900.0


def measure_mlflow(runs: int) -> dict[str, float]:
    """Milliseconds of MLflow's SQLAlchemy store with SQLite, for the questions that it answers within minutes."""
    python = _MLFLOW / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "uv", "venv", "--quiet", str(_MLFLOW)], check=True)
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), "mlflow"]
        subprocess.run(install, check=True)
    with tempfile.TemporaryFile("w+") as answers:
        try:
            subprocess.run(
                [python, "-c", _MLFLOW_PROGRAM, str(runs)],
                env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
                stdout=answers,
                check=True,
                timeout=_MLFLOW_PATIENCE,
            )
        except subprocess.TimeoutExpired:
            print(f"MLflow was stopped after {_MLFLOW_PATIENCE:.0f} s", file=sys.stderr)
        answers.seek(0)
        found: dict[str, float] = {}
        for line in answers:
            found |= json.loads(line) if line.startswith("{") else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--mlflow", action="store_true", help="MLflow's search, too")
    parser.add_argument("--mlflow-runs", type=int, default=10_000, help="of how many runs (default: 10,000)")
    options = parser.parse_args()
    figures = measure([options.only] if options.only else ["postgresql", "sqlite"], options.runs)
    if options.mlflow:
        figures["mlflow"] = {"runs": options.mlflow_runs, "ms": measure_mlflow(options.mlflow_runs)}
    if options.json:
        print(json.dumps(figures))
        return
    _show(figures)


def _show(figures: dict[str, Any]) -> None:
    print(f"{figures['runs']:,} runs; milliseconds for a page of 100: median, least, and of processor time")
    for place in ("postgresql", "sqlite"):
        if place in figures:
            print(f"\n{place}, loaded in {figures[f'{place}_load_s']:.0f} s")
            for name, _, _, limit in QUESTIONS:
                each = figures[place][name]
                note = "" if each["ms"] <= limit else f"  above {limit} ms"
                times = "".join(f"{each[key]:9.2f}" for key in ("ms", "least_ms", "cpu_ms"))
                print(f"  {name:50} {times} {each['rows']:4} rows{note}")
    if "mlflow" in figures:
        print(f"\nMLflow's search_runs, SQLite, {figures['mlflow']['runs']:,} runs")
        for name, value in figures["mlflow"]["ms"].items():
            print(f"  {name:50} {value:9.2f}")


if __name__ == "__main__":
    main()

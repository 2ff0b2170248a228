"""The same runs for the database of MLflow's server and for ours, put there by SQL."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from benchmarks.search import Rows, insert_rows
from trainmaster.dispatcher.store import schema
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder

START = 1_700_000_000_000
PAGE = 20_000

FILL_MLFLOW = """
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
"""A script for the Python of MLflow: address, folder, runs, points, START and PAGE; prints the experiment and a run."""

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
        for first in range(0, options.runs, PAGE):
            page = _make_rows(range(first, min(first + PAGE, options.runs)), experiment, chance)
            for table, (columns, rows) in page.items():
                insert_rows(connection, table, columns, rows)
        metric, last = 2 * options.runs + 1, options.points - 1
        row = (metric, options.runs, "long", "scalar", options.points, 0.0, last / 7, last / 7, 0)
        insert_rows(connection, schema.metrics, _METRIC, [row])
        for first in range(0, options.points, PAGE):
            steps = range(first, min(first + PAGE, options.points))
            points = [(metric, step, step / 7, 0, step, (START + step) / 1000) for step in steps]
            insert_rows(connection, schema.metric_points, _POINT, points)
        if database:
            for table, column in (("runs", "seq"), ("metrics", "id")):
                name = f"{table}_{column}_seq"
                connection.execute(text(f"SELECT setval('{name}', (SELECT max({column}) FROM {table}))"))
    engine.dispose()
    if database:
        analyze(database)
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
        seq, at = number + 1, (START + number) / 1000
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


def analyze(database: str) -> None:
    """Let the database count its rows, as it would do by itself later."""
    engine = create_engine(make_url(database).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()

"""The store on PostgreSQL: inserting points by COPY beside executemany, and lists of many runs.

python -m benchmarks.postgresql [--json] [--points 200000] [--runs 1000000]

It starts a server of its own from the distribution's packages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import psycopg
from tests.postgresql import empty_tables, run_server

from trainmaster.dispatcher.store import Store, points, statements
from trainmaster.dispatcher.store.search import Search
from trainmaster.shared.filters import parse_filter, parse_order
from trainmaster.shared.records import RunQuery, RunRecord, Status

_FILL = """
INSERT INTO experiments (id, name, created_at, run_count, tags)
    SELECT 'e' || n, 'experiment-' || n, 1, 0, '' FROM generate_series(1, 10) n;
INSERT INTO runs (id, experiment_seq, number, type, status, created_at, ended_at, display_name, description, target,
    snapshot_id, waiting_for, nodes, error, warnings, submitted_by, tags, properties)
    SELECT 'run-' || n, 1 + n % 10, n, 'azureml.scriptrun', 'Completed', n, n + 60, '', '', 'local', '', '', '', '', '',
    'somebody', '', '' FROM generate_series(1, {runs}) n;
INSERT INTO metrics (run_seq, name, kind, count, minimum, maximum, last_number, last_form)
    SELECT seq, 'accuracy', 'scalar', 1, 0, 1, (seq * 7919 % 1000003) / 1000003.0, 0 FROM runs;
ANALYZE;
"""


def measure(point_count: int, runs: int) -> dict[str, Any]:
    """Rows per second and milliseconds, by name."""
    with run_server(durable=True) as server:
        url = server.create_database()
        store = Store.create(url)
        try:
            return {**_insert(store, point_count), **_list(store, url, runs)}
        finally:
            store.close()


def _insert(store: Store, count: int) -> dict[str, Any]:
    """Points per second of the ways to insert them, in turn."""
    found: dict[str, list[float]] = {"executemany_points_per_s": [], "copy_points_per_s": []}
    run = store.runs.add(RunRecord("points", "points", Status.RUNNING, 1.0))
    for turn in range(3):
        for name, least in (("executemany_points_per_s", 10**9), ("copy_points_per_s", statements.COPY_ROWS)):
            statements.COPY_ROWS, before = least, statements.COPY_ROWS
            batch = points.Batch("scalar", [((float(n), 0, None), n, 1.0) for n in range(count // 10)])
            begun = time.perf_counter()
            for part in range(10):
                with store._database.stream() as connection:
                    points.append(connection, run.seq, {f"{name}{turn}{part}": batch}, 0)
            found[name].append(count / (time.perf_counter() - begun))
            statements.COPY_ROWS = before
    return {name: round(statistics.median(values)) for name, values in found.items()}


def _list(store: Store, url: str, runs: int) -> dict[str, Any]:
    store.close()
    empty_tables(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_FILL.format(runs=runs).encode())
    store = Store.open(url)
    order = parse_order("metric.accuracy desc")
    best = Search(parse_filter("metric.accuracy > 0.5 and user = somebody", 0.0), order, ("id",), 100)
    # A tenth of all runs come first in the order, and are not wanted.
    rest = Search(parse_filter("metric.accuracy < 0.9", 0.0), order, ("id",), 100)
    try:
        return {
            "runs": runs,
            "filtered_and_sorted_by_a_metric_ms": _time(lambda: store.search.find(best, 0.0)),
            "without_the_best_tenth_ms": _time(lambda: store.search.find(rest, 0.0)),
            "newest_100_ms": _time(lambda: store.runs.find(RunQuery(limit=100))),
            "newest_100_of_experiment_ms": _time(
                lambda: store.runs.find(RunQuery(experiment="experiment-3", limit=100))
            ),
        }
    finally:
        store.close()


def _time(call: Callable[[], object]) -> float:
    call()
    took = []
    for _ in range(20):
        begun = time.perf_counter()
        call()
        took.append(time.perf_counter() - begun)
    return round(statistics.median(took) * 1000, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    options = parser.parse_args()
    found = measure(options.points, options.runs)
    print(
        json.dumps(found, indent=1)
        if options.json
        else "\n".join(f"{name:34s}{value:>14,}" for name, value in found.items())
    )


if __name__ == "__main__":
    main()

"""The store against `sqlite3` by hand, on the same file, taking turns.

python benchmarks/store.py [--json] [--runs 100000] [--points 1000000]
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import RunQuery, RunRecord, Status

_COLUMNS = """r.seq, r.id, e.name, r.number, r.parent_id, r.type, r.status, r.created_at, r.started_at, r.ended_at,
    r.display_name, r.description, r.target, r.snapshot_id, r.waiting_for, r.nodes, r.error, r.warnings,
    r.submitted_by, r.tags, r.properties"""

NEWEST = f"""SELECT {_COLUMNS} FROM runs r JOIN experiments e ON e.seq = r.experiment_seq
    WHERE r.parent_id IS NULL ORDER BY r.seq DESC LIMIT 100"""

NEWEST_OF_EXPERIMENT = f"""SELECT {_COLUMNS} FROM runs r JOIN experiments e ON e.seq = r.experiment_seq
    WHERE r.parent_id IS NULL AND r.experiment_seq = (SELECT seq FROM experiments WHERE name = 'experiment-3')
    ORDER BY r.seq DESC LIMIT 100"""

# A thousand values: smallest and largest of five hundred parts.
THINNED = """SELECT idx * 500 / {count} AS part, min(number), max(number), min(step), max(time)
    FROM metric_points WHERE metric_id = 1 GROUP BY part"""

INSERT = """INSERT INTO runs (id, experiment_seq, number, type, status, created_at, display_name, description, target,
    snapshot_id, waiting_for, nodes, error, warnings, submitted_by, tags, properties)
    VALUES (?, ?, ?, 'azureml.scriptrun', 'Queued', 1.0, '', '', 'local', '', '', '', '', '', '', '', '')"""


def measure(runs: int = 100_000, points: int = 1_000_000) -> dict[str, Any]:
    """Milliseconds and ratios, by name."""
    with tempfile.TemporaryDirectory() as folder:
        few = _filled(Path(folder) / "few.db", runs // 100, 0)
        many = _filled(Path(folder) / "many.db", runs, points)
        try:
            return {
                "runs": runs,
                "points": points,
                **_listing(few, many),
                **_charts(many, points),
                **_inserting(Path(folder), few, many),
                **_ingesting(many),
            }
        finally:
            few.close()
            many.close()


def _listing(few: Bench, many: Bench) -> dict[str, Any]:
    newest, of_experiment = RunQuery(limit=100), RunQuery(experiment="experiment-3", limit=100)
    store, hand, store_few, hand_few, store_one, hand_one = _take_turns(
        200,
        lambda: many.store.runs.find(newest),
        lambda: many.hand.execute(NEWEST).fetchall(),
        lambda: few.store.runs.find(newest),
        lambda: few.hand.execute(NEWEST).fetchall(),
        lambda: many.store.runs.find(of_experiment),
        lambda: many.hand.execute(NEWEST_OF_EXPERIMENT).fetchall(),
    )
    return {
        "newest_100_ms": store,
        "newest_100_ratio": store / hand,
        "newest_100_of_few_ms": store_few,
        "newest_100_of_few_ratio": store_few / hand_few,
        "newest_100_many_to_few": store / store_few,
        "newest_100_of_experiment_ms": store_one,
        "newest_100_of_experiment_ratio": store_one / hand_one,
    }


def _charts(many: Bench, points: int) -> dict[str, Any]:
    by_hand = THINNED.format(count=points)
    store, hand = _take_turns(
        7,
        lambda: many.store.metrics.read("run-0", "loss", max_points=1000),
        lambda: many.hand.execute(by_hand).fetchall(),
    )
    (series,) = many.store.metrics.read("run-0", "loss", max_points=1000)
    assert series.count == points and 900 < len(series.values) <= 1000
    return {"thinned_series_ms": store, "thinned_series_by_hand_ms": hand, "thinned_series_ratio": store / hand}


def _inserting(folder: Path, few: Bench, many: Bench) -> dict[str, Any]:
    none = Bench(Store.create(folder / "none.db"), sqlite3.connect(":memory:"))
    by_hand = _hand_copy(folder)
    number = iter(range(1_000_000))

    def insert(bench: Bench) -> RunRecord:
        n = next(number)
        return bench.store.runs.add(
            RunRecord(f"new-{n}", "experiment-3", Status.QUEUED, 1.0, target="local", spec='{"version": 1}')
        )

    def insert_by_hand() -> None:
        n = next(number)
        by_hand.execute("BEGIN IMMEDIATE")
        by_hand.execute("UPDATE experiments SET run_count = run_count + 1 WHERE seq = 1")
        cursor = by_hand.execute(INSERT, (f"new-{n}", 1, n))
        by_hand.execute("INSERT INTO run_specs VALUES (?, ?)", (cursor.lastrowid, '{"version": 1}'))
        by_hand.execute("COMMIT")

    with_many, with_none, hand = _take_turns(200, lambda: insert(many), lambda: insert(none), insert_by_hand)
    none.close()
    by_hand.close()
    return {
        "insert_run_ms": with_many,
        "insert_run_many_to_none": with_many / with_none,
        "insert_run_ratio": with_none / hand,
    }


def _ingesting(many: Bench) -> dict[str, Any]:
    records = [{"k": "metric", "n": f"m{n % 10}", "v": n * 0.5, "t": 1.0 + n} for n in range(10_000)]
    offset = iter(range(1_000_000))

    def ingest() -> None:
        start = next(offset)
        assert many.store.journals.ingest("run-1", "rank0", start, start + 1, records)

    (store,) = _take_turns(5, ingest)
    return {"ingest_10000_ms": store}


class Bench:
    """A store and a plain connection to the same file."""

    def __init__(self, store: Store, hand: sqlite3.Connection) -> None:
        self.store = store
        self.hand = hand

    def close(self) -> None:
        self.hand.close()
        self.store.close()


def _hand_copy(folder: Path) -> sqlite3.Connection:
    path = folder / "hand.db"
    store = Store.create(path)
    store.experiments.ensure("experiment-3", 1.0)
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _filled(path: Path, runs: int, points: int) -> Bench:
    """A store with finished runs in ten experiments, and one long metric."""
    store = Store.create(path)
    hand = sqlite3.connect(path, isolation_level=None)
    for n in range(10):
        store.experiments.ensure(f"experiment-{n}", 1.0)
    hand.execute("BEGIN")
    hand.executemany(
        """INSERT INTO runs (id, experiment_seq, number, type, status, created_at, started_at, ended_at, display_name,
        description, target, snapshot_id, waiting_for, nodes, error, warnings, submitted_by, tags, properties)
        VALUES (?, ?, ?, 'azureml.scriptrun', 'Completed', 1.0, 2.0, 3.0, 'a run', '', 'local', ?, '', '[0]', '', '',
        'someone', '{"stage":"test"}', '')""",
        ((f"run-{n}", n % 10 + 1, n // 10 + 1, f"{n:064x}") for n in range(runs)),
    )
    hand.execute("INSERT INTO run_specs SELECT seq, ? FROM runs", ("x" * 1500,))
    hand.execute("INSERT INTO run_labels SELECT seq, 0, 'stage', 'test' FROM runs")
    hand.execute("UPDATE experiments SET run_count = ?", (runs // 10,))
    hand.execute("COMMIT")
    _log(store, points)
    hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Bench(store, hand)


def _log(store: Store, points: int) -> None:
    step = 100_000
    for start in range(0, points, step):
        values = [((n * 7919) % 10007) / 10007 for n in range(start, min(start + step, points))]
        store.journals.ingest(
            "run-0", "rank0", start, start + step, [{"k": "list", "n": "loss", "v": values, "t": 1.0}]
        )


def _take_turns(times: int, *actions: Callable[[], object]) -> list[float]:
    """Median milliseconds of each action; one after the other, so that a slow moment meets all of them."""
    taken: list[list[float]] = [[] for _ in actions]
    for action in actions:
        action()
    for _ in range(times):
        for action, seconds in zip(actions, taken, strict=True):
            begin = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - begin)
    return [statistics.median(seconds) * 1000 for seconds in taken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    options = parser.parse_args()
    figures = measure(options.runs, options.points)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:34} {value:12.3f}" if isinstance(value, float) else f"{name:34} {value:12}")


if __name__ == "__main__":
    main()

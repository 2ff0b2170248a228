"""Runs that are removed for good, with everything that was kept of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select

from trainmaster.dispatcher.store.schema import (
    images,
    journals,
    metric_blocks,
    metric_points,
    metrics,
    models,
    run_labels,
    run_specs,
    runs,
    services,
    sweeps,
    trials,
)
from trainmaster.dispatcher.store.statements import chunks
from trainmaster.shared.records import Status

_SNAPSHOT = re.compile(r"\b[0-9a-f]{64}\b")


def family(connection: Connection, run_id: str) -> list[tuple[str, Status]]:
    """A run with all its descendants and their states, parents first; empty if there is no such run."""
    found: list[tuple[str, Status]] = []
    rows = connection.execute(select(runs.c.id, runs.c.status).where(runs.c.id == run_id)).all()
    while rows:
        found += [(each, Status(status)) for each, status in rows]
        parents = [each for each, _ in rows]
        rows = [
            row
            for part in chunks(parents)
            for row in connection.execute(select(runs.c.id, runs.c.status).where(runs.c.parent_id.in_(part)))
        ]
    return found


def remove_points(connection: Connection, run_ids: Sequence[str], most: int) -> bool:
    """Removes about `most` points of what these runs logged; whether there may be more."""
    for part in chunks(run_ids):
        seqs = select(runs.c.seq).where(runs.c.id.in_(part))
        for metric in connection.execute(select(metrics.c.id).where(metrics.c.run_seq.in_(seqs))).scalars().all():
            of_metric = metric_points.c.metric_id == metric
            first = connection.execute(select(func.min(metric_points.c.idx)).where(of_metric)).scalar()
            if first is None:
                continue
            most -= connection.execute(
                delete(metric_points).where(of_metric, metric_points.c.idx < first + most)
            ).rowcount
            if most <= 0:
                return True
    return False


def remove(connection: Connection, run_ids: Sequence[str]) -> None:
    """Removes runs that have no points and no children any more."""
    for part in chunks(run_ids):
        seqs = list(connection.execute(select(runs.c.seq).where(runs.c.id.in_(part))).scalars())
        of_runs = select(metrics.c.id).where(metrics.c.run_seq.in_(seqs))
        connection.execute(delete(metric_blocks).where(metric_blocks.c.metric_id.in_(of_runs)))
        for table, column in (
            (metrics, metrics.c.run_seq),
            (journals, journals.c.run_seq),
            (run_labels, run_labels.c.run_seq),
            (run_specs, run_specs.c.run_seq),
            (trials, trials.c.run_seq),
            (sweeps, sweeps.c.run_seq),
            (runs, runs.c.seq),
        ):
            connection.execute(delete(table).where(column.in_(seqs)))


def needed_snapshots(connection: Connection) -> set[str]:
    """The snapshots of all runs, services and images, and those that models were trained with."""
    found = set(connection.execute(select(runs.c.snapshot_id).distinct()).scalars())
    for query in (
        select(services.c.spec, services.c.served),
        select(images.c.spec),
        select(models.c.lineage).where(models.c.deleted_at.is_(None)),
    ):
        found.update(id for row in connection.execute(query) for text in row for id in _SNAPSHOT.findall(text or ""))
    return found - {""}


def runs_with_models(connection: Connection) -> set[str]:
    """The runs from which models were registered that are still there."""
    query = select(models.c.run_id).where(models.c.deleted_at.is_(None), models.c.run_id != "").distinct()
    return set(connection.execute(query).scalars())


def continued_runs(connection: Connection) -> set[str]:
    """The runs whose files sweeps that have not ended go on with."""
    going = (
        select(sweeps.c.run_seq, sweeps.c.spec)
        .join_from(sweeps, runs, sweeps.c.run_seq == runs.c.seq)
        .where(runs.c.ended_at.is_(None))
    )
    found: set[str] = set()
    for seq, spec in connection.execute(going).all():
        given = json.loads(spec)
        found.update(given.get("resume_from") or (), given.get("resume_child_runs") or ())
        found.update(connection.execute(select(trials.c.continues).where(trials.c.sweep_seq == seq)).scalars())
    return found - {""}

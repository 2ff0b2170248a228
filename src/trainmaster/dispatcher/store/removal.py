"""Deleting runs with everything the store has of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select

from trainmaster.dispatcher.store.quotas import forget_sizes
from trainmaster.dispatcher.store.schema import (
    arguments,
    images,
    input_datasets,
    journals,
    logged_model_labels,
    logged_model_metrics,
    logged_models,
    metric_blocks,
    metric_points,
    metrics,
    models,
    run_inputs,
    run_labels,
    run_models,
    run_specs,
    runs,
    services,
    sweeps,
    trials,
)
from trainmaster.dispatcher.store.statements import chunks
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.shared.records import Status

_SNAPSHOT = re.compile(r"\b[0-9a-f]{64}\b")


class Removal(Repository):
    """Deletes runs, and finds what other records still need."""

    @reads
    def list_family(self, connection: Connection, run_id: str) -> list[tuple[str, Status]]:
        """A run with all its descendants and their states, parents first; empty if there is no such run."""
        found: list[tuple[str, Status]] = []
        rows = connection.execute(select(runs.c.id, runs.c.status).where(runs.c.id == run_id)).all()
        while rows:
            found += [(each, Status(status)) for each, status in rows]
            parents = [each for each, _ in rows]
            rows = [
                row
                for part in chunks(parents)
                for row in connection.execute(
                    select(runs.c.id, runs.c.status).where(runs.c.parent_id.in_(part)).order_by(runs.c.seq)
                )
            ]
        return found

    @writes
    def delete_points(self, connection: Connection, run_ids: Sequence[str], most: int = 50_000) -> bool:
        """Delete about `most` points of what these runs logged, and return whether there may be more."""
        for part in chunks(run_ids):
            seqs = select(runs.c.seq).where(runs.c.id.in_(part))
            for metric in connection.execute(select(metrics.c.id).where(metrics.c.run_seq.in_(seqs))).scalars().all():
                is_of_metric = metric_points.c.metric_id == metric
                first = connection.execute(select(func.min(metric_points.c.idx)).where(is_of_metric)).scalar()
                if first is None:
                    continue
                oldest = delete(metric_points).where(is_of_metric, metric_points.c.idx < first + most)
                most -= connection.execute(oldest).rowcount
                if most <= 0:
                    return True
        return False

    @writes
    def delete_runs(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """Delete runs whose points and children are deleted already, all or none."""
        for part in chunks(run_ids):
            seqs = list(connection.execute(select(runs.c.seq).where(runs.c.id.in_(part))).scalars())
            forget_sizes(connection, seqs)
            metrics_of_runs = select(metrics.c.id).where(metrics.c.run_seq.in_(seqs))
            for table in (metric_points, metric_blocks):
                # Points as well: some may have been logged since, and PostgreSQL checks no reference of theirs.
                connection.execute(delete(table).where(table.c.metric_id.in_(metrics_of_runs)))
            made = select(logged_models.c.seq).where(logged_models.c.source_run_id.in_(part))
            delete_logged_models(connection, list(connection.execute(made).scalars()))
            read = select(run_inputs.c.dataset_seq).where(run_inputs.c.run_seq.in_(seqs)).distinct()
            datasets = list(connection.execute(read).scalars())
            for table, column in (
                (logged_model_metrics, logged_model_metrics.c.run_seq),
                (run_models, run_models.c.run_seq),
                (run_inputs, run_inputs.c.run_seq),
                (metrics, metrics.c.run_seq),
                (journals, journals.c.run_seq),
                (run_labels, run_labels.c.run_seq),
                (arguments, arguments.c.run_seq),
                (run_specs, run_specs.c.run_seq),
                (trials, trials.c.run_seq),
                (sweeps, sweeps.c.run_seq),
                (runs, runs.c.seq),
            ):
                connection.execute(delete(table).where(column.in_(seqs)))
            _delete_unread(connection, datasets)

    @reads
    def find_logged_models(self, connection: Connection, run_ids: Sequence[str]) -> list[str]:
        """The logged models that these runs have made, even deleted ones. They are deleted with the runs."""
        return [
            model_id
            for part in chunks(run_ids)
            for model_id in connection.execute(
                select(logged_models.c.id).where(logged_models.c.source_run_id.in_(part)).order_by(logged_models.c.seq)
            ).scalars()
        ]

    @reads
    def find_needed_snapshots(self, connection: Connection) -> set[str]:
        """The snapshots of all runs, services and images, and those that models were trained with."""
        found = set(connection.execute(select(runs.c.snapshot_id).distinct()).scalars())
        for query in (
            select(services.c.spec, services.c.served),
            select(images.c.spec),
            select(models.c.lineage).where(models.c.deleted_at.is_(None)),
        ):
            texts = (text or "" for row in connection.execute(query) for text in row)
            found.update(snapshot for text in texts for snapshot in _SNAPSHOT.findall(text))
        return found - {""}

    @reads
    def find_runs_with_models(self, connection: Connection) -> set[str]:
        """The runs from which models were registered that have not been deleted."""
        query = select(models.c.run_id).where(models.c.deleted_at.is_(None), models.c.run_id != "").distinct()
        return set(connection.execute(query).scalars())

    @reads
    def find_continued_runs(self, connection: Connection) -> set[str]:
        """The runs whose files are used by sweeps that have not ended."""
        active = (
            select(sweeps.c.run_seq, sweeps.c.spec)
            .join_from(sweeps, runs, sweeps.c.run_seq == runs.c.seq)
            .where(runs.c.ended_at.is_(None))
        )
        found: set[str] = set()
        for seq, text in connection.execute(active).all():
            spec = json.loads(text)
            found.update(spec.get("resume_from") or (), spec.get("resume_child_runs") or ())
            found.update(connection.execute(select(trials.c.continues).where(trials.c.sweep_seq == seq)).scalars())
        return found - {""}


def delete_logged_models(connection: Connection, seqs: Sequence[int]) -> None:
    """Delete logged models with all that was logged of them. Runs keep their ids as inputs and outputs."""
    for part in chunks(seqs):
        for table, column in (
            (logged_model_labels, logged_model_labels.c.model_seq),
            (logged_model_metrics, logged_model_metrics.c.model_seq),
            (logged_models, logged_models.c.seq),
        ):
            connection.execute(delete(table).where(column.in_(part)))


def _delete_unread(connection: Connection, seqs: Sequence[int]) -> None:
    """Delete the datasets among these that no run has read."""
    for part in chunks(seqs):
        is_read = select(run_inputs.c.run_seq).where(run_inputs.c.dataset_seq == input_datasets.c.seq).exists()
        connection.execute(delete(input_datasets).where(input_datasets.c.seq.in_(part), ~is_read))

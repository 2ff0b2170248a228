"""What retention rules look at: values of metrics, and the runs that services need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from trainmaster.dispatcher.store.schema import experiments, metrics, models, runs, services
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import name_index


class RetentionFacts(Repository):
    """Reads facts about many runs in a few queries."""

    @reads
    def find_values(
        self, connection: Connection, experiment: str, names: Sequence[str]
    ) -> dict[str, dict[str, tuple[float, float]]]:
        """Run to metric to its lowest and highest value, for the runs of an experiment that have numbers."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for name in names:
            query = (
                select(runs.c.id, metrics.c.minimum, metrics.c.maximum)
                .join_from(runs, experiments, runs.c.experiment_seq == experiments.c.seq)
                .join(metrics, metrics.c.run_seq == runs.c.seq)
                .where(experiments.c.name == experiment, metrics.c.name == name_index(name))
                .where(metrics.c.minimum.is_not(None), metrics.c.maximum.is_not(None))
            )
            for run_id, low, high in connection.execute(query):
                found.setdefault(run_id, {})[name] = (low, high)
        return found

    @reads
    def find_served_runs(self, connection: Connection) -> set[str]:
        """The runs that models of services come from, also of models that were deleted since."""
        texts = [text for row in connection.execute(select(services.c.spec, services.c.served)) for text in row if text]
        wanted = {model for text in texts for model in _list_models(json.loads(text))}
        query = select(models.c.name, models.c.version, models.c.run_id).where(models.c.run_id != "")
        return {run_id for name, version, run_id in connection.execute(query) if f"{name}:{version}" in wanted}


def _list_models(spec: Mapping[str, object]) -> list[str]:
    listed = spec.get("models")
    return [str(each) for each in listed] if isinstance(listed, list) else []

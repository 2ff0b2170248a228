"""Copies logged models, which MLflow has since its third generation."""

from __future__ import annotations

import json
from typing import Any

from mlflow.entities import Metric

from trainmaster.sdk.mlflow.transfer_sides import list_pages
from trainmaster.sdk.mlflow.transfer_state import ORIGIN, Copy

_FEW = 50
"""As many logged models as MLflow gives at once."""


class LoggedModelTransfer:
    """Copies the logged models of one experiment after the other."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._source, self._target = copy.source, copy.target

    def copy_all(self, experiment: Any, place: str) -> None:
        """Copy the logged models of an experiment to that of this id."""
        if not hasattr(self._source.client, "search_logged_models"):
            return
        copies = list_pages(self._target.client.search_logged_models, _FEW, experiment_ids=[place])
        known = {each.tags.get(ORIGIN): each for each in copies}
        for model in list_pages(
            self._source.client.search_logged_models, _FEW, experiment_ids=[experiment.experiment_id]
        ):
            copy = known.get(model.model_id)
            self._copy.ids[model.model_id] = copy.model_id if copy is not None else self._create_model(model, place)
            # It gets its state when all of its files are there.
            if copy is None or copy.status != model.status:
                self._fill_model(model, self._copy.ids[model.model_id])

    def _create_model(self, model: Any, place: str) -> str:
        from mlflow.entities import LoggedModelParameter, LoggedModelTag
        from mlflow.protos.service_pb2 import CreateLoggedModel

        run_id = self._copy.ids.get(model.source_run_id, model.source_run_id or "")
        tags = [LoggedModelTag(key, value) for key, value in {**model.tags, ORIGIN: model.model_id}.items()]
        params = [LoggedModelParameter(key, value) for key, value in (model.params or {}).items()]
        store = self._target.store
        if not self._target.is_workspace:
            made = store.create_logged_model(place, model.name, run_id or None, tags, params, model.model_type)
            return str(made.model_id)
        asked = {
            "experiment_id": place,
            "name": model.name,
            "model_type": model.model_type or "",
            "source_run_id": run_id,
            "params": [{"key": each.key, "value": each.value} for each in params],
            "tags": [{"key": each.key, "value": each.value} for each in tags],
            "model_id": model.model_id,
        }
        return str(store._call_endpoint(CreateLoggedModel, json.dumps(asked)).model.info.model_id)

    def _fill_model(self, model: Any, copy_id: str) -> None:
        self._copy.copy_folder(
            model.artifact_location, lambda folder: self._target.client.log_model_artifacts(copy_id, folder)
        )
        self._copy_model_values(model, copy_id)
        self._target.client.finalize_logged_model(copy_id, model.status)
        self._copy.report.logged_models += 1

    def _copy_model_values(self, model: Any, copy_id: str) -> None:
        for each in model.metrics or ():
            if each.run_id in self._copy.ids:
                value = Metric(
                    each.key,
                    each.value,
                    each.timestamp,
                    each.step,
                    model_id=copy_id,
                    dataset_name=each.dataset_name,
                    dataset_digest=each.dataset_digest,
                )
                self._target.client.log_batch(self._copy.ids[each.run_id], metrics=[value])

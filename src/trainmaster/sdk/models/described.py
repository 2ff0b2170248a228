"""What a model is and where it comes from, as its record says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import RunNotFoundException
from trainmaster.job.script.resource_configuration import ResourceConfiguration, of_plain
from trainmaster.shared.records import ModelRecord

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.workspace.workspace import Workspace


class Described:
    """The part of a Model that is its record, when this object last heard of it."""

    workspace: Workspace
    _record: ModelRecord

    # What it is

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def version(self) -> int:
        """The version of the name: 1, 2, 3, ..."""
        return self._record.version

    @property
    def id(self) -> str:
        """`name:version`."""
        return f"{self.name}:{self.version}"

    @property
    def url(self) -> str:
        """Its address, in v1's form."""
        return f"aml://asset/{self.id}"

    @property
    def description(self) -> str:
        """What was written about it."""
        return self._record.description

    @property
    def tags(self) -> dict[str, str]:
        """Its labels."""
        return dict(self._record.tags)

    @property
    def properties(self) -> dict[str, str]:
        """Pairs that never change."""
        return dict(self._record.properties)

    @property
    def created_time(self) -> datetime:
        """When it was registered."""
        return datetime.fromtimestamp(self._record.created_at, UTC)

    @property
    def modified_time(self) -> datetime:
        """When its labels, description or facts were changed last."""
        return datetime.fromtimestamp(self._record.modified_at, UTC)

    @property
    def created_by(self) -> str:
        """Who registered it."""
        return self._record.created_by

    @property
    def model_framework(self) -> str | None:
        """What it was made with."""
        return self._record.framework or None

    @property
    def model_framework_version(self) -> str | None:
        """In which version."""
        return self._record.framework_version or None

    @property
    def resource_configuration(self) -> ResourceConfiguration | None:
        """What a service of it needs."""
        found: ResourceConfiguration | None = of_plain(self._record.resources)
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """What programs found out about it, by name: its inputs and outputs, how well a conversion agrees; ours."""
        return dict(self._record.facts)

    # Where it comes from

    @property
    def run_id(self) -> str | None:
        """The run whose files it is."""
        return self._record.run_id or None

    @property
    def experiment_name(self) -> str | None:
        """The experiment of that run."""
        return self._record.experiment or None

    @property
    def run(self) -> Run | None:
        """The run whose files it is; None if it has none, or that was deleted."""
        from trainmaster.sdk.run.run import Run

        if not self._record.run_id:
            return None
        try:
            return Run.get(self.workspace, self._record.run_id)
        except RunNotFoundException:
            return None

    @property
    def lineage(self) -> dict[str, Any]:
        """What the run was made of: `snapshot_id`, `environment` (its digest), `data`, `datasets`; ours."""
        return dict(self._record.lineage)

    @property
    def datasets(self) -> dict[str, list[Any]]:
        """Purpose to the datasets that were used for it."""
        from trainmaster.sdk.datasets import Dataset

        found: dict[str, list[Any]] = {}
        for use in self._record.datasets:
            found.setdefault(use.purpose, []).append(Dataset.get_by_id(self.workspace, use.dataset_id))
        return found

    @property
    def sample_input_dataset(self) -> Any:
        """A dataset that shows what goes in."""
        return self._sample(self._record.sample_input)

    @property
    def sample_output_dataset(self) -> Any:
        """A dataset that shows what comes out."""
        return self._sample(self._record.sample_output)

    def _sample(self, dataset_id: str) -> Any:
        from trainmaster.sdk.datasets import Dataset

        return Dataset.get_by_id(self.workspace, dataset_id) if dataset_id else None

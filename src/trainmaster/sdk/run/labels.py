"""Tags and properties of a run: what people and programs have written on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.experiment import check_tags, tag_names
from trainmaster.shared.records import RunRecord


class RunLabels:
    """The part of a Run that labels it; the run says how its workspace is asked."""

    _record: RunRecord

    def _call(self, op: str, **args: Any) -> Any:
        raise NotImplementedError

    def _refresh(self) -> RunRecord:
        raise NotImplementedError

    def tag(self, key: str, value: Any = None) -> None:
        """Sets one label."""
        self.set_tags({key: value})

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        """Sets labels."""
        self._call("runs.tags.set", tags=check_tags(tags))
        self._refresh()

    def remove_tags(self, tags: str | Sequence[str]) -> None:
        """Drops labels."""
        self._call("runs.tags.remove", names=tag_names(tags))
        self._refresh()

    @property
    def tags(self) -> dict[str, Any]:
        """The labels last seen."""
        return dict(self._record.tags)

    def get_tags(self) -> dict[str, Any]:
        """The labels as they are now."""
        self._call("runs.ingest")
        return dict(self._refresh().tags)

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Adds pairs that can never change."""
        if not isinstance(properties, Mapping):
            raise UserErrorException(f"properties must be a dict, not {type(properties).__name__}")
        self._call("runs.properties.add", properties={str(k): str(v) for k, v in properties.items()})
        self._refresh()

    @property
    def properties(self) -> dict[str, str]:
        """The properties last seen."""
        return dict(self._record.properties)

    def get_properties(self) -> dict[str, str]:
        """The properties as they are now."""
        self._call("runs.ingest")
        return dict(self._refresh().properties)

"""AbstractDataset: what datasets of files and of tables have in common."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, Self

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import WebFiles, local_files
from trainmaster.sdk.datasets.names import checked_tags, new_name
from trainmaster.sdk.datasets.not_here import not_here
from trainmaster.sdk.datastores import Datastore
from trainmaster.shared.job_spec import DatasetDefinition
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig
    from trainmaster.sdk.datastores.datastore import WorkspaceSide


class AbstractDataset:
    """A dataset: never changed, only made from another by a step. What it reads is read when data is wanted."""

    def __init__(
        self,
        definition: DatasetDefinition,
        workspace: WorkspaceSide | None = None,
        stores: Mapping[str, Datastore] | None = None,
        record: DatasetRecord | None = None,
    ) -> None:
        self._definition = definition
        self._workspace = workspace
        self._stores = dict(stores or {})
        self._record = record

    @staticmethod
    def get_by_name(workspace: WorkspaceSide, name: str, version: str | int = "latest", **kwargs: Any) -> Any:
        """The registered dataset of this name, in its newest version or the given one."""
        return of_record(
            workspace, workspace.connection.call("datasets.get", name=new_name(name), version=str(version))
        )

    @staticmethod
    def get_by_id(workspace: WorkspaceSide, id: str, **kwargs: Any) -> Any:
        """The dataset of this id: registered, or used by a run."""
        return of_record(workspace, workspace.connection.call("datasets.get", id=str(id)))

    @staticmethod
    def get_all(workspace: WorkspaceSide) -> dict[str, Any]:
        """The newest version of each registered dataset, by name."""
        return {each["name"]: of_record(workspace, each) for each in workspace.connection.call("datasets.list")}

    @property
    def id(self) -> str:
        """Its id. One that is not registered has the same id whenever it is made in the same way."""
        return self._record.id if self._record else content_id(self._definition)

    @property
    def name(self) -> str | None:
        """The name it is registered by."""
        return (self._record.name or None) if self._record else None

    @property
    def version(self) -> int | None:
        """The version of its name."""
        return self._record.version if self._record else None

    @property
    def description(self) -> str | None:
        """What was written about it."""
        return (self._record.description or None) if self._record else None

    @property
    def tags(self) -> dict[str, str] | None:
        """Its labels."""
        return dict(self._record.tags) if self._record else None

    @property
    def data_changed_time(self) -> datetime | None:
        """When the newest of its files was changed; None where a storage does not tell."""
        times = [_changed(file) for file in self._all_files()]
        known = [time for time in times if time is not None]
        return datetime.fromtimestamp(max(known), UTC) if known and len(known) == len(times) else None

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """This dataset as an input of a run, by a name that becomes a variable of the job."""
        from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig

        return DatasetConsumptionConfig(name, self)

    def register(
        self,
        workspace: WorkspaceSide,
        name: str,
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        create_new_version: bool = False,
    ) -> Self:
        """Give it a name in the workspace. The same again is no error; other data need `create_new_version`."""
        record = DatasetRecord(
            str(uuid.uuid4()), self._definition, new_name(name), None, description or "", checked_tags(tags)
        )
        answer = workspace.connection.call(
            "datasets.register", dataset=to_plain(record), new_version=bool(create_new_version)
        )
        return self._as(workspace, from_plain(DatasetRecord, answer))

    def update(self, description: str | None = None, tags: Mapping[str, str] | None = None) -> Self:
        """Set the description or all tags of a registered dataset."""
        record = self._registered("update")
        workspace = self._owner()
        changes = {"description": description, "tags": None if tags is None else checked_tags(tags)}
        return self._as(
            workspace, from_plain(DatasetRecord, workspace.connection.call("datasets.update", id=record.id, **changes))
        )

    def add_tags(self, tags: Mapping[str, str] | None = None) -> Self:
        """Add labels to a registered dataset."""
        return self.update(tags={**self._registered("add_tags").tags, **checked_tags(tags)})

    def remove_tags(self, tags: list[str] | None = None) -> Self:
        """Drop labels of a registered dataset."""
        kept = {key: value for key, value in self._registered("remove_tags").tags.items() if key not in (tags or ())}
        return self.update(tags=kept)

    def unregister_all_versions(self) -> None:
        """Forget the name with all its versions; the data stay."""
        self._owner().connection.call("datasets.delete", name=self._registered("unregister_all_versions").name)
        self._record = None

    @property
    def partition_keys(self) -> list[str]:
        """The columns that the folders of the files give."""
        import re

        return re.findall(r"\{(\w+)", str(self._definition.reader.get("partition_format", "")))

    def get_partition_key_values(self, partition_keys: list[str] | None = None) -> NoReturn:
        """Not here."""
        not_here("get_partition_key_values", "Use to_pandas_dataframe()[columns].drop_duplicates().")

    def definition(self) -> DatasetDefinition:
        """What it is, as plain data."""
        return self._definition

    def _as(self, workspace: WorkspaceSide | None, record: DatasetRecord | None) -> Self:
        return type(self)(self._definition, workspace, self._stores, record)

    def _with_steps(self, *steps: Mapping[str, Any]) -> Self:
        definition = replace(self._definition, steps=(*self._definition.steps, *steps))
        return type(self)(definition, self._workspace, self._stores)

    def _describe(self) -> Any:
        return to_plain(self._definition)

    def _open_place(self, key: tuple[str, str]) -> Any:
        kind, name = key
        if kind == "web":
            return WebFiles(name)
        if kind == "local":
            return local_files()
        if name not in self._stores:
            self._stores[name] = Datastore.get(self._owner(), name)
        return self._stores[name].storage()

    def _all_files(self) -> list[Any]:
        from trainmaster.job.script.dataset_files import find_files

        found: list[Any] = find_files(self._describe()["sources"], self._open_place)
        return found

    def _owner(self) -> WorkspaceSide:
        if self._workspace is None:
            raise UserErrorException("the dataset belongs to no workspace", hint="Register it first.")
        return self._workspace

    def _registered(self, method: str) -> DatasetRecord:
        if self._record is None or not self._record.name:
            raise UserErrorException(
                f"{method} needs a registered dataset", hint="Use what dataset.register(workspace, name) returns."
            )
        return self._record

    def __repr__(self) -> str:
        named = f"name={self.name!r}, version={self.version}" if self.name else f"id={self.id!r}"
        return f"{type(self).__name__}({named})"


def content_id(definition: DatasetDefinition) -> str:
    """The id of a dataset without a name: that of what it says."""
    import json

    text = json.dumps(to_plain(definition), sort_keys=True)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"trainmaster:dataset:{text}"))


def of_definition(
    definition: DatasetDefinition,
    workspace: WorkspaceSide | None = None,
    stores: Mapping[str, Datastore] | None = None,
    record: DatasetRecord | None = None,
) -> Any:
    """The dataset of the class that `definition` asks for."""
    from trainmaster.sdk.datasets.file_dataset import FileDataset
    from trainmaster.sdk.datasets.tabular_dataset import TabularDataset

    kind = TabularDataset if definition.kind == "tabular" else FileDataset
    return kind(definition, workspace, stores, record)


def of_record(workspace: WorkspaceSide, plain: Any) -> Any:
    """The dataset that the workspace answered with."""
    record = from_plain(DatasetRecord, plain)
    return of_definition(record.definition, workspace, None, record)


def _changed(file: Any) -> float | None:
    root = file.storage.local_path()
    if root is None:
        return None
    import os

    return os.stat(os.path.join(str(root), file.path)).st_mtime

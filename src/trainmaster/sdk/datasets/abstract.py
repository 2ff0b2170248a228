"""AbstractDataset: what datasets of files and of tables have in common."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, Self

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import DatasetFile, WebFiles, find_files, local_files
from trainmaster.job.script.dataset_views import View
from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig
from trainmaster.sdk.datasets.kinds import dataset_from_record, get_dataset, register_class
from trainmaster.sdk.datasets.names import check_name, check_tags
from trainmaster.sdk.datasets.not_here import not_here
from trainmaster.sdk.datastores import Datastore
from trainmaster.shared.job_spec import DatasetDefinition
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.job.script.storage import Storage
    from trainmaster.sdk.datastores.datastore import WorkspaceSide


class AbstractDataset(View):
    """A dataset: it never changes, a step makes a new one. Its files are read when their data is asked for."""

    def __init_subclass__(cls, kind: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind:
            register_class(kind, cls)

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
        return get_dataset(workspace, name, version)

    @staticmethod
    def get_by_id(workspace: WorkspaceSide, id: str, **kwargs: Any) -> Any:
        """The dataset of this id: registered, or used by a run."""
        return dataset_from_record(workspace, workspace.connection.call("datasets.get", id=str(id)))

    @staticmethod
    def get_all(workspace: WorkspaceSide) -> dict[str, Any]:
        """The newest version of each registered dataset, by name."""
        return {
            each["name"]: dataset_from_record(workspace, each) for each in workspace.connection.call("datasets.list")
        }

    @property
    def id(self) -> str:
        """The id. Without a registration it depends on the definition: the same definition has the same id."""
        return self._record.id if self._record else content_id(self._definition)

    def _registration(self) -> DatasetRecord | None:
        return self._record

    @property
    def data_changed_time(self) -> datetime | None:
        """When the newest of its files was changed; None if a storage does not say."""
        times = [_time_of_change(file) for file in self._all_files()]
        known = [time for time in times if time is not None]
        return datetime.fromtimestamp(max(known), UTC) if known and len(known) == len(times) else None

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """This dataset as an input of a run, with a name that becomes a variable of the job."""
        return DatasetConsumptionConfig(name, self)

    def register(
        self,
        workspace: WorkspaceSide,
        name: str,
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        create_new_version: bool = False,
    ) -> Self:
        """Gives it a name in the workspace. Registering it again is allowed; other data need `create_new_version`."""
        record = DatasetRecord(
            str(uuid.uuid4()), self._definition, check_name(name), None, description or "", check_tags(tags)
        )
        answer = workspace.connection.call(
            "datasets.register", dataset=to_plain(record), new_version=bool(create_new_version)
        )
        return self._with_record(workspace, from_plain(DatasetRecord, answer))

    def update(self, description: str | None = None, tags: Mapping[str, str] | None = None) -> Self:
        """Sets the description or all tags of a registered dataset."""
        record = self._check_registered("update")
        workspace = self._owner()
        changes = {"description": description, "tags": None if tags is None else check_tags(tags)}
        return self._with_record(
            workspace, from_plain(DatasetRecord, workspace.connection.call("datasets.update", id=record.id, **changes))
        )

    def add_tags(self, tags: Mapping[str, str] | None = None) -> Self:
        """Adds labels to a registered dataset."""
        return self.update(tags={**self._check_registered("add_tags").tags, **check_tags(tags)})

    def remove_tags(self, tags: list[str] | None = None) -> Self:
        """Removes labels of a registered dataset."""
        kept = {
            key: value for key, value in self._check_registered("remove_tags").tags.items() if key not in (tags or ())
        }
        return self.update(tags=kept)

    def unregister_all_versions(self) -> None:
        """Removes the name with all its versions; the data stays."""
        self._owner().connection.call("datasets.delete", name=self._check_registered("unregister_all_versions").name)
        self._record = None

    @property
    def partition_keys(self) -> list[str]:
        """The columns that come from the folders of the files."""
        import re

        return re.findall(r"\{(\w+)", str(self._definition.reader.get("partition_format", "")))

    def get_partition_key_values(self, partition_keys: list[str] | None = None) -> NoReturn:
        """Not here."""
        not_here("get_partition_key_values", "Use to_pandas_dataframe()[columns].drop_duplicates().")

    def definition(self) -> DatasetDefinition:
        """The definition."""
        return self._definition

    def _with_record(self, workspace: WorkspaceSide | None, record: DatasetRecord | None) -> Self:
        return type(self)(self._definition, workspace, self._stores, record)

    def _with_steps(self, *steps: Mapping[str, Any]) -> Self:
        definition = replace(self._definition, steps=(*self._definition.steps, *steps))
        return type(self)(definition, self._workspace, self._stores)

    def _describe(self) -> Any:
        return to_plain(self._definition)

    def _open_place(self, key: tuple[str, str]) -> Storage:
        kind, name = key
        if kind == "web":
            return WebFiles(name)
        if kind == "local":
            return local_files()
        if name not in self._stores:
            self._stores[name] = Datastore.get(self._owner(), name)
        return self._stores[name].storage()

    def _all_files(self) -> list[DatasetFile]:
        return find_files(self._describe()["sources"], self._open_place)

    def _owner(self) -> WorkspaceSide:
        if self._workspace is None:
            raise UserErrorException("the dataset does not belong to a workspace", hint="Register it first.")
        return self._workspace

    def _check_registered(self, method: str) -> DatasetRecord:
        if self._record is None or not self._record.name:
            raise UserErrorException(
                f"{method} needs a registered dataset", hint="Use what dataset.register(workspace, name) returns."
            )
        return self._record


def content_id(definition: DatasetDefinition) -> str:
    """The id of a dataset without a name, computed from its definition."""
    import json

    text = json.dumps(to_plain(definition), sort_keys=True)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"trainmaster:dataset:{text}"))


def _time_of_change(file: DatasetFile) -> float | None:
    root = file.storage.local_path()
    if root is None:
        return None
    return os.stat(os.path.join(root, file.path)).st_mtime

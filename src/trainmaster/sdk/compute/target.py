"""ComputeTarget: a target of a workspace. Each kind of target has its own class."""

from __future__ import annotations

import builtins
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.names import PUBLIC, V1_ONLY, find_home
from trainmaster.sdk.compute.configurations import (
    ComputeTargetAttachConfiguration,
    ComputeTargetProvisioningConfiguration,
    Configuration,
)
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.run.details import iso_time
from trainmaster.shared.records import ACTIVE, RunQuery, RunRecord, TargetCheck, TargetRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.workspace.workspace import Workspace

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,62}", re.ASCII)
_RESERVED = ("amlcompute", "local", "containerinstance")
_ALL = 1000


class ComputeTarget:
    """A target of a workspace, by its name. An unknown name raises ComputeTargetException.

    >>> target = ComputeTarget(ws, "cpu-cluster")           # doctest: +SKIP
    >>> isinstance(target, AmlCompute)                      # doctest: +SKIP
    True
    """

    _type = ""
    _record: TargetRecord

    def __new__(cls, workspace: Workspace, name: str, **kwargs: Any) -> ComputeTarget:
        # As in v1, ComputeTarget(ws, name) gives an object of the class of the target's kind.
        record = kwargs.get("_record") or find_record(workspace, name)
        kind = class_of(record)
        if not issubclass(kind, cls):
            raise ComputeTargetException(
                f"target '{record.name}' has the class {kind.__name__}, not {cls.__name__}",
                hint="Use ComputeTarget(workspace, name), which opens targets of every class.",
            )
        target = super().__new__(kind)
        target._record = record
        return target

    def __init__(self, workspace: Workspace, name: str, **kwargs: Any) -> None:
        self._workspace = workspace

    @staticmethod
    def create(
        workspace: Workspace, name: str, provisioning_configuration: ComputeTargetProvisioningConfiguration
    ) -> ComputeTarget:
        """Creates a target, or changes the size of an existing one.

        >>> config = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)     # doctest: +SKIP
        >>> ComputeTarget.create(ws, "gpu-cluster", config)                                         # doctest: +SKIP
        """
        return _put(workspace, name, provisioning_configuration, ComputeTargetProvisioningConfiguration)

    @staticmethod
    def attach(
        workspace: Workspace, name: str, attach_configuration: ComputeTargetAttachConfiguration
    ) -> ComputeTarget:
        """Adds an existing machine as a target."""
        return _put(workspace, name, attach_configuration, ComputeTargetAttachConfiguration)

    @staticmethod
    def list(workspace: Workspace) -> builtins.list[ComputeTarget]:
        """All targets of a workspace."""
        return [ComputeTarget(workspace, each.name, _record=each) for each in _records(workspace)]

    # What it is

    @property
    def name(self) -> str:
        """The name of the target."""
        return self._record.name

    @property
    def type(self) -> str:
        """v1's word for its kind; for kinds that v1 did not have, the name of the engine."""
        return self._type or self._record.engine

    @property
    def id(self) -> str:
        """An id made of the workspace and the name."""
        return f"{self._workspace.name}/computes/{self.name}"

    @property
    def workspace(self) -> Workspace:
        """The workspace it belongs to."""
        return self._workspace

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return self._record.nodes

    @property
    def location(self) -> str:
        """v1's region."""
        return str(self._option("location") or self._workspace.location)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the target."""
        return dict(self._option("tags") or {})

    @property
    def description(self) -> str:
        """The description of the target."""
        return str(self._option("description") or "")

    @property
    def vm_size(self) -> str:
        """The VM size that was requested."""
        return str(self._option("vm_size") or "")

    @property
    def created_on(self) -> str | None:
        """When it was created."""
        return iso_time(self._record.created_at or None)

    @property
    def modified_on(self) -> str | None:
        """When it was last changed."""
        return iso_time(self._option("modified_at")) or self.created_on

    @property
    def provisioning_state(self) -> str:
        """Always `Succeeded`: a target is ready once it exists."""
        return "Succeeded"

    @property
    def provisioning_errors(self) -> builtins.list[Any] | None:
        """None: creating a target either works at once or raises."""
        return None

    @property
    def status(self) -> Any:
        """The result of `get_status()`, by its name of 2018."""
        return self.get_status()

    # What it does

    def wait_for_completion(self, show_output: bool = False, is_delete_operation: bool = False) -> None:
        """Returns at once: a target is ready once it exists."""
        if show_output:
            print(f'{self.provisioning_state}\nProvisioning operation finished, operation "{self.provisioning_state}"')

    def refresh_state(self) -> None:
        """Reads the target again."""
        self._record = find_record(self._workspace, self.name)

    def get_status(self) -> Any:
        """The provisioning state."""
        return self.provisioning_state

    def test(self) -> builtins.list[TargetCheck]:
        """Tries what runs on the target need."""
        return [TargetCheck("machine", True, "its nodes are this machine")]

    def delete(self) -> None:
        """Removes the target from the workspace."""
        if self.name in _RESERVED:
            raise ComputeTargetException(f"target '{self.name}' cannot be deleted")
        self._workspace.connection.call("targets.delete", name=self.name)

    def detach(self) -> None:
        """The same as `delete`: the machine itself stays as it is."""
        self.delete()

    def get(self) -> dict[str, Any]:
        """The target as a dict."""
        return self.serialize()

    def get_active_runs(
        self,
        type: str | None = None,
        tags: str | Mapping[str, Any] | None = None,
        properties: str | Mapping[str, Any] | None = None,
        status: str | Sequence[str] | None = None,
    ) -> Iterator[Run]:
        """The runs on this target that have not ended, newest first."""
        from trainmaster.sdk.run.run import Run

        wanted = status if status is not None else sorted(str(state) for state in ACTIVE)
        return Run.list_by_compute(self, type=type, tags=tags, properties=properties, status=wanted)

    def occupancy(self) -> Occupancy:
        """How many nodes are busy and idle, and how many runs wait."""
        runs = self._active()
        busy = sum(len(run.nodes) for run in runs)
        return Occupancy(
            name=self.name,
            nodes=self.nodes,
            busy=busy,
            idle=max(0, self.nodes - busy),
            waiting=sum(1 for run in runs if not run.nodes),
        )

    def serialize(self) -> dict[str, Any]:
        """The target as a dict: v1's keys, and its size."""
        plain: dict[str, Any] = to_plain(self._record)
        return {
            **plain,
            "id": self.id,
            "location": self.location,
            "tags": self.tags,
            "properties": {
                "computeType": self.type,
                "computeLocation": self.location,
                "description": self.description,
                "provisioningState": self.provisioning_state,
                "provisioningErrors": self.provisioning_errors,
                "createdOn": self.created_on,
                "modifiedOn": self.modified_on,
                "properties": self._properties(),
            },
        }

    def _properties(self) -> dict[str, Any]:
        """The properties that only this kind of target has."""
        return {"vmSize": self.vm_size, **(self._option("azure") or {})}

    def _active(self) -> builtins.list[RunRecord]:
        states = tuple(sorted(str(status) for status in ACTIVE))
        query = RunQuery(target=self.name, statuses=states, include_children=True, limit=_ALL)
        return [
            from_plain(RunRecord, each) for each in self._workspace.connection.call("runs.list", query=to_plain(query))
        ]

    def _option(self, name: str) -> Any:
        return self._record.options.get(name)

    def _change(self, **options: Any) -> None:
        self._replace(options=options)

    def _replace(self, options: Mapping[str, Any], **columns: Any) -> None:
        """Changes the current record, which may be newer than this object's."""
        self.refresh_state()
        merged = {**self._record.options, **options, "modified_at": time.time()}
        self._record = put_record(self._workspace, replace(self._record, options=merged, **columns))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self._workspace!r}, name={self.name}, nodes={self.nodes})"


def class_of(record: TargetRecord) -> type[ComputeTarget]:
    """The class of a target; LocalCompute if the record names none."""
    name = str(record.options.get("class") or "LocalCompute")
    home = find_home(name, PUBLIC) or find_home(name, V1_ONLY)
    found = getattr(import_module(home), name) if home else None
    if not isinstance(found, type) or not issubclass(found, ComputeTarget):
        raise ComputeTargetException(
            f"target '{record.name}' has the unknown class '{name[:60]}'", hint="A newer Trainmaster may know it."
        )
    return found


def find_record(workspace: Workspace, name: str) -> TargetRecord:
    """The record of the target with this name."""
    known = {record.name: record for record in _records(workspace)}
    if name not in known:
        raise ComputeTargetException(
            f"ComputeTargetNotFound: there is no compute target '{str(name)[:60]}' in this workspace",
            hint=f"Known: {', '.join(sorted(known))}.",
        )
    return known[name]


def put_record(workspace: Workspace, record: TargetRecord) -> TargetRecord:
    """Stores a target and returns the stored record."""
    return from_plain(TargetRecord, workspace.connection.call("targets.put", target=to_plain(record)))


def check_name(name: str) -> None:
    """Refuses what cannot be the name of a target."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ComputeTargetException(
            f"{str(name)[:60]!r} cannot be the name of a compute target",
            hint="Use 2 to 63 letters, digits or dashes, beginning with a letter.",
        )
    if name.lower() in _RESERVED:
        raise ComputeTargetException(f"'{name}' is a reserved name for compute targets", hint="Choose another name.")


def _put(workspace: Workspace, name: str, configuration: Any, wanted: type[Configuration]) -> ComputeTarget:
    check_name(name)
    if not isinstance(configuration, wanted):
        method = "attach_configuration" if wanted is ComputeTargetAttachConfiguration else "provisioning_configuration"
        raise ComputeTargetException(
            f"a {type(configuration).__name__} does not describe a compute target",
            hint=f"Use the result of {method}(...), for example of "
            f"{'RemoteCompute' if wanted is ComputeTargetAttachConfiguration else 'AmlCompute'}.",
        )
    record = configuration.record(name, workspace)
    configuration.keep_secrets(workspace, name)
    return ComputeTarget(workspace, name, _record=put_record(workspace, record))


def _records(workspace: Workspace) -> builtins.list[TargetRecord]:
    return [from_plain(TargetRecord, each) for each in workspace.connection.call("targets.list")]

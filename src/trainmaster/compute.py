"""Compute targets: named places with nodes of a given size."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.errors import ComputeTargetException
from trainmaster.machine import cpus, gpus
from trainmaster.plain import from_plain, to_plain
from trainmaster.records import ACTIVE, RunQuery, RunRecord, TargetRecord

if TYPE_CHECKING:
    from trainmaster.workspace import Workspace

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,62}", re.ASCII)
_RESERVED = ("amlcompute", "local", "containerinstance")


@dataclass(frozen=True)
class LocalConfiguration:
    """The size of a target on this machine."""

    nodes: int
    cpus_per_node: int
    gpus_per_node: int


class ComputeTarget:
    """A target of a workspace, by its name; a name that is not known raises ComputeTargetException."""

    def __new__(cls, workspace: Workspace, name: str, **kwargs: Any) -> ComputeTarget:
        # As in v1, ComputeTarget(ws, name) is of the class of its kind.
        return super().__new__(LocalCompute if cls is ComputeTarget else cls)

    def __init__(self, workspace: Workspace, name: str, **kwargs: Any) -> None:
        record = kwargs.get("_record") or _find(workspace, name)
        self._workspace = workspace
        self._record: TargetRecord = record

    @staticmethod
    def create(workspace: Workspace, name: str, provisioning_configuration: LocalConfiguration) -> ComputeTarget:
        """Makes a target, or gives an existing one another size.

        >>> ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=2))    # doctest: +SKIP
        """
        _check_name(name)
        configuration = provisioning_configuration
        if not isinstance(configuration, LocalConfiguration):
            raise ComputeTargetException(
                f"a {type(configuration).__name__} does not describe a compute target",
                hint="Use LocalCompute.configuration(nodes=...).",
            )
        record = TargetRecord(
            name=name,
            engine="local",
            nodes=configuration.nodes,
            cpus_per_node=configuration.cpus_per_node,
            gpus_per_node=configuration.gpus_per_node,
        )
        answer = workspace._call("targets.put", target=to_plain(record))
        return LocalCompute(workspace, name, _record=from_plain(TargetRecord, answer))

    @staticmethod
    def list(workspace: Workspace) -> builtins.list[ComputeTarget]:
        """All targets of a workspace."""
        return [LocalCompute(workspace, each.name, _record=each) for each in _records(workspace)]

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def type(self) -> str:
        """How its nodes are had."""
        return self._record.engine

    @property
    def workspace(self) -> Workspace:
        """The workspace it belongs to."""
        return self._workspace

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return self._record.nodes

    @property
    def provisioning_state(self) -> str:
        """Always `Succeeded`: there is nothing to wait for."""
        return "Succeeded"

    def wait_for_completion(self, show_output: bool = False, **v1: Any) -> None:
        """Returns at once: the target is ready when it is made."""
        if show_output:
            print(f"Compute target '{self.name}': {self.provisioning_state}")

    def get_status(self) -> dict[str, Any]:
        """How many nodes there are and which are busy."""
        query = RunQuery(
            target=self.name,
            statuses=tuple(sorted(str(status) for status in ACTIVE)),
            include_children=True,
            limit=1000,
        )
        found = self._workspace._call("runs.list", query=to_plain(query))
        runs = [from_plain(RunRecord, each) for each in found]
        busy = sum(len(run.nodes) for run in runs)
        return {
            "name": self.name,
            "nodes": self.nodes,
            "busy": busy,
            "idle": self.nodes - busy,
            "waiting": sum(1 for run in runs if not run.nodes),
        }

    def delete(self) -> None:
        """Removes the target from the workspace."""
        if self.name in _RESERVED:
            raise ComputeTargetException(f"target '{self.name}' is always there and cannot be deleted")
        self._workspace._call("targets.delete", name=self.name)

    detach = delete

    def serialize(self) -> dict[str, Any]:
        """The target as a dict."""
        plain: dict[str, Any] = to_plain(self._record)
        return plain

    def __repr__(self) -> str:
        return f"{type(self).__name__}(workspace={self._workspace!r}, name={self.name}, nodes={self.nodes})"


class LocalCompute(ComputeTarget):
    """Nodes of this machine: groups of processes that get their share of CPUs and GPUs."""

    @staticmethod
    def configuration(
        nodes: int = 1, cpus_per_node: int | None = None, gpus_per_node: int | None = None
    ) -> LocalConfiguration:
        """The size of a target; what is left out is this machine's, shared equally between the nodes."""
        for name, value in (
            ("nodes", nodes),
            ("cpus_per_node", cpus_per_node),
            ("gpus_per_node", gpus_per_node),
        ):
            least = 0 if name == "gpus_per_node" else 1
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise ComputeTargetException(f"{name} must be a whole number of at least {least}, not {value!r}")
        return LocalConfiguration(
            nodes=nodes,
            cpus_per_node=max(1, cpus() // nodes) if cpus_per_node is None else cpus_per_node,
            gpus_per_node=len(gpus()) // nodes if gpus_per_node is None else gpus_per_node,
        )


def _records(workspace: Workspace) -> builtins.list[TargetRecord]:
    return [from_plain(TargetRecord, each) for each in workspace._call("targets.list")]


def _find(workspace: Workspace, name: str) -> TargetRecord:
    known = {record.name: record for record in _records(workspace)}
    if name not in known:
        raise ComputeTargetException(
            f"ComputeTargetNotFound: there is no compute target '{str(name)[:60]}' in this workspace",
            hint=f"Known: {', '.join(sorted(known))}.",
        )
    return known[name]


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ComputeTargetException(
            f"{str(name)[:60]!r} cannot be the name of a compute target",
            hint="Use 2 to 63 letters, digits or dashes, a letter first.",
        )
    if name in _RESERVED:
        raise ComputeTargetException(f"'{name}' is a reserved name for compute targets", hint="Choose another name.")

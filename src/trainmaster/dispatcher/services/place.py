"""Where the replicas of a service run: processes of this machine, or pods of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.services.deployed import Deployed
from trainmaster.dispatcher.services.local_place import LocalPlace
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec

_ENGINE = "kubernetes"


class Place(Protocol):
    """Runs the replicas of one service. Every method can be repeated; the service goes on without a dispatcher."""

    async def deploy(
        self,
        record: ServiceRecord,
        spec: ServiceSpec,
        generation: int,
        sources: Mapping[str, str] | None,
        say: Callable[[str], None],
    ) -> Deployed:
        """Starts a generation and returns when it answers; the one before serves until then. Raises its error."""

    async def is_running(self) -> bool:
        """Whether there is something to watch. If not, the service has to be deployed again."""

    async def watch(self, tell: Callable[[], None]) -> None:
        """Returns when it is not running any more. `tell` hears when the result of `describe` changes."""

    async def remove(self) -> None:
        """Answers requests in progress, and removes everything but the folder on this machine."""

    async def change_keys(self, keys: Mapping[str, str]) -> None:
        """New keys take effect."""

    def describe(self, record: ServiceRecord) -> ServiceRecord:
        """The record with the current state."""

    async def close(self) -> None:
        """Lets go of it. The service goes on."""


def find_cluster(context: Context, record: ServiceRecord) -> TargetRecord | None:
    """The cluster that a service runs on; None for this machine."""
    name = record.settings.get("deployment_target")
    target = context.store.targets.get(str(name)) if name else None
    # A target without nodes is only recorded, for scripts of v1.
    return target if target is not None and target.engine == _ENGINE and target.nodes else None


def find_place(context: Context, record: ServiceRecord) -> Place:
    """Where the replicas of a service run."""
    target = find_cluster(context, record)
    if target is None:
        return LocalPlace(record.name, context)
    # It needs packages that only dispatchers with a cluster load.
    from trainmaster.dispatcher.services.cluster_place import ClusterPlace

    return ClusterPlace(record, target, context)

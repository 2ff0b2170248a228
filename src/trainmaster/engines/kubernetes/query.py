"""Whether a cluster can be used, without a run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.permissions import check_permissions, check_service_permissions
from trainmaster.engines.kubernetes.pods import labels_of, make_pod, names_of
from trainmaster.engines.kubernetes.probe import probe_image
from trainmaster.engines.kubernetes.storage_path import with_storage_path
from trainmaster.shared.records import TargetCheck, TargetRecord

_OLDEST = (1, 20)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
# A person waits for the answer.
_PATIENCE = 5.0


def complete_target(target: TargetRecord, workspace: Path) -> TargetRecord:
    """The target as it is stored. Refuses settings with which no pod can be made."""
    completed = with_storage_path(target, workspace)
    options = PodOptions.read(completed)
    names = names_of("trial", 1, 1)
    make_pod(names, 0, options, [options.python], labels_of("trial", names))
    return completed


async def query_cluster(target: TargetRecord, workspace: Path, starts_pod: bool) -> list[TargetCheck]:
    """What works and what does not, in the order in which it is needed. An unreachable server is an error.

    With `starts_pod`, a pod of the target's image is started and removed again, if there are the permissions for it,
    and what only services need is tried as well.
    """
    target = await asyncio.to_thread(complete_target, target, workspace)
    access = await asyncio.to_thread(read_access, target.options)
    api = Api(access, patience=_PATIENCE)
    try:
        checks = [_judge_version(api, str((await api.get("/version")).get("gitVersion") or ""))]
        checks += await check_permissions(api)
        if starts_pod and all(check.is_ok for check in checks):
            checks += await probe_image(api, PodOptions.read(target), workspace)
        return [*checks, *(await check_service_permissions(api) if starts_pod else ())]
    finally:
        await api.close()


def _judge_version(api: Api, version: str) -> TargetCheck:
    found = _VERSION.match(version)
    where = f"Kubernetes {version} at {api.access.server}, namespace {api.namespace}"
    if found is not None and (int(found[1]), int(found[2])) < _OLDEST:
        return TargetCheck("server", False, f"{where}: Kubernetes 1.20 or newer is needed")
    return TargetCheck("server", True, where)

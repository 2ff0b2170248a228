"""Removes what runs of this workspace have left in a namespace, such as after the loss of a dispatcher."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.engines.engine import EngineContext, Nodes
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.notes import read_note, write_note
from trainmaster.engines.kubernetes.pods import ATTEMPT, RUN_ID, names_of
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.attempts import current_attempt
from trainmaster.shared.folders import RunFolder

log = logging.getLogger("trainmaster.dispatch")


async def clean_up(cluster: Cluster, context: EngineContext) -> None:
    """Deletes the services of runs that no longer need them, and with them everything that they own."""
    await cluster.pods.wait_until_known()
    services, _ = await cluster.api.list_objects(cluster.api.services, labels=cluster.selector)
    for service in services:
        if not _is_needed(service["metadata"], context):
            name = service["metadata"]["name"]
            log.info("Kubernetes: removing %s, which no run needs", name)
            await cluster.api.delete(f"{cluster.api.services}/{name}", propagation="Background")


async def release_earlier(cluster: Cluster, nodes: Nodes, gang: int) -> None:
    """Deletes what earlier attempts of a run have in the cluster, except the pods that were created for attempt `gang`.

    Raises ComputeTargetException.
    """
    for number in range(1, nodes.folder.attempt):
        folder = replace(nodes.folder, attempt=number)
        note = read_note(folder)
        if note is not None and note.gang != gang and not note.is_released:
            await cluster.delete_gang(names_of(nodes.run_id, note.gang, note.count, cluster.workspace))
            write_note(folder, replace(note, is_released=True))


def _is_needed(metadata: Mapping[str, Any], context: EngineContext) -> bool:
    run_id = (metadata.get("annotations") or {}).get(RUN_ID, "")
    number = (metadata.get("labels") or {}).get(ATTEMPT, "")
    try:
        folder = context.folder.run(run_id)
    except TrainmasterError:
        return False
    return is_gang_needed(folder, number)


def is_gang_needed(folder: RunFolder, gang: str) -> bool:
    """Whether the current attempt of a run uses, or may use, the pods that were created for attempt `gang`."""
    if not folder.path.exists():
        return False
    current = current_attempt(folder)
    # An attempt that has not begun to start may take over the pods of the one before.
    note = read_note(current) or read_note(replace(current, attempt=current.attempt - 1))
    return note is not None and not note.is_released and str(note.gang) == gang

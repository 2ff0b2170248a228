"""Puts what a service needs on the target's claim, through a pod that mounts it: once per content."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.pod_host import PodHost
from trainmaster.engines.kubernetes.pods import workspace_label
from trainmaster.engines.kubernetes.reasons import waiting_words
from trainmaster.engines.kubernetes.services.manifests import (
    DRAIN_SECONDS,
    KEYS_FILE,
    KEYS_FOLDER,
    LINGER_SECONDS,
    PORT,
    Identity,
    make_loader,
    mount_path,
)
from trainmaster.engines.kubernetes.services.shape import Shape
from trainmaster.engines.kubernetes.watch import watch
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.contents import (
    Progress,
    Tree,
    ignore_progress,
    is_compiled,
    is_missing,
    scan,
    scan_data,
    upload_tree,
)
from trainmaster.engines.remote.environments import RemoteEnvironment, upload_environment
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.service_plan import ServicePlan

_MODELS = "azureml-models"
_MEGABYTE = 1024 * 1024
_START_SECONDS = 600.0
_LOOK_SECONDS = 0.2
_REMOVE = """
import os, shutil, sys
folder, keep = sys.argv[1], set(sys.argv[2:])
for name in os.listdir(folder) if os.path.isdir(folder) else ():
    if name not in keep:
        shutil.rmtree(os.path.join(folder, name))
if not keep:
    shutil.rmtree(folder, ignore_errors=True)
"""


@dataclass(frozen=True)
class Order:
    """What a generation of a service consists of, on this machine."""

    plan: ServicePlan
    stamp: str
    """Tells this service from an earlier one of the same name."""
    environment: str
    """The folder of its environment; empty for a Python of the image."""
    kit: Path
    variables: Mapping[str, str]
    """What the user has set, and the names of the workspace: nothing of this machine."""
    python_path: str = ""
    """What the user has put on PYTHONPATH."""


@dataclass(frozen=True)
class Loaded:
    """What a pod needs to start."""

    command: tuple[str, ...]
    variables: Mapping[str, str]


@contextlib.asynccontextmanager
async def open_loader(
    api: Api, identity: Identity, generation: int, shape: Shape, say: Callable[[str], None]
) -> AsyncIterator[Connection]:
    """A connection to the claim, by a pod that is gone at the end."""
    pod = make_loader(identity, generation, shape)
    name = pod["metadata"]["name"]
    try:
        # One that a killed dispatcher has left may be about to end.
        await api.delete(f"{api.pods}/{name}", grace=0)
        await _create(api, pod)
        await _wait_for(api, name, say)
        host = PodHost(api, name, shape.options.python)
        connection = await Connection.open(host, root_of(shape, identity.workspace))
        try:
            yield connection
        finally:
            await connection.close()
    finally:
        await asyncio.shield(api.delete(f"{api.pods}/{name}", grace=0))


async def _create(api: Api, pod: Mapping[str, Any]) -> None:
    async with asyncio.timeout(_START_SECONDS):
        while True:
            try:
                await api.create(api.pods, pod)
                return
            except ApiError as error:
                if error.status != 409:
                    raise
            await asyncio.sleep(_LOOK_SECONDS)


async def _wait_for(api: Api, name: str, say: Callable[[str], None]) -> None:
    """Returns when the pod runs. `say` gets what it waits for."""
    said = ""
    try:
        async with asyncio.timeout(_START_SECONDS):
            async for event in watch(api, api.pods, fields=f"metadata.name={name}"):
                for pod in event.objects:
                    phase = (pod.get("status") or {}).get("phase")
                    if phase == "Running":
                        return
                    if phase in ("Failed", "Succeeded") or event.kind == "deleted":
                        raise WebserviceException("the pod that loads the service's files has ended")
                    words = waiting_words([pod])
                    if words and words != said:
                        said = words
                        say(f"the pod that loads the files waits: {words}")
    except TimeoutError:
        raise WebserviceException(
            "the pod that loads the service's files does not start",
            cause=said,
            hint="Check the image and the claim of the compute target.",
        ) from None


def root_of(shape: Shape, workspace: str) -> str:
    """The folder of a workspace's services on the claim."""
    return f"{mount_path(shape)}/trainmaster-services/{workspace_label(workspace)}"


async def load(connection: Connection, order: Order, kept: set[int], say: Callable[[str], None]) -> Loaded:
    """Uploads what is missing, and removes generations that are not `kept`."""
    plan, root = order.plan, connection.facts.root
    folder = f"services/{plan.name}-{order.stamp}"
    await _remove(connection, f"{root}/{folder}", [str(each) for each in sorted({plan.generation, *kept})])
    await _upload(connection, f"kits/{order.kit.name}", order.kit, say)
    found = RemoteEnvironment()
    if order.environment:
        found = await upload_environment(connection, Path(order.environment), _reporter(say, "environment"))
    here = f"{folder}/{plan.generation}"
    await _upload(connection, f"{here}/server", Path(plan.server), say)
    await _upload(connection, f"{here}/code", Path(plan.scoring.working_folder), say)
    for model in sorted(Path(plan.models_root).glob("*/*")):
        await _upload_model(connection, f"{here}/models/{model.parent.name}/{model.name}", model, say)
    text = json.dumps(_order_of(plan, order, root, here))
    await upload_tree(
        connection, f"{here}/order", Tree(texts=(("order.json", text, 0o644),)), ignore_progress, copy=True
    )
    return _start_of(order, found, connection, here)


def _order_of(plan: ServicePlan, order: Order, root: str, here: str) -> dict[str, Any]:
    """What the server reads in a pod (`scoring/server/alone.py`)."""
    working = Path(plan.scoring.working_folder)
    models = f"{root}/{here}/models"
    scoring = to_plain(plan.scoring)
    if plan.scoring.model_dir:
        scoring["model_dir"] = plan.scoring.model_dir.replace(plan.models_root, models, 1)
    scoring["keys_file"] = f"{KEYS_FOLDER}/{KEYS_FILE}" if plan.scoring.keys_file else ""
    inner = Path(plan.scoring.code).relative_to(working)
    return {
        "scoring": scoring,
        "code": f"{root}/{here}/code",
        "code_folder": "" if str(inner) == "." else str(inner),
        "models": models if any(Path(plan.models_root).glob("*/*")) else "",
        "variables": {**order.variables, "AZUREML_MODEL_DIR": scoring.get("model_dir", "")},
        "host": "0.0.0.0",
        "port": PORT,
        "linger_seconds": LINGER_SECONDS,
        "drain_seconds": DRAIN_SECONDS,
    }


def _start_of(order: Order, found: RemoteEnvironment, connection: Connection, here: str) -> Loaded:
    root = connection.facts.root
    python = f"{root}/{found.folder}/bin/python" if found.folder else order.plan.python
    paths = [f"{root}/kits/{order.kit.name}", order.python_path]
    variables = {**found.variables, "PYTHONPATH": ":".join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
    usual = connection.facts.variables.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    if found.folder:
        variables |= {"PATH": f"{root}/{found.folder}/bin:{usual}", "VIRTUAL_ENV": f"{root}/{found.folder}"}
    server = f"{root}/{here}/server"
    # Containers cannot write compiled modules to the claim.
    command = (python, "-B", server, "alone", f"{root}/{here}/order/order.json")
    return Loaded(command, variables)


async def unload(connection: Connection, name: str, stamp: str) -> None:
    """Removes all files of a service. Packages stay, for others that use them."""
    await _remove(connection, f"{connection.facts.root}/services/{name}-{stamp}", [])


async def _remove(connection: Connection, folder: str, kept: list[str]) -> None:
    answer = await connection.call({"op": "try", "argv": [connection.facts.python, "-c", _REMOVE, folder, *kept]})
    if answer["code"]:
        raise WebserviceException("old files of the service cannot be removed from the claim", cause=answer["said"])


async def _upload(connection: Connection, path: str, folder: Path, say: Callable[[str], None]) -> None:
    if await is_missing(connection, path):
        tree = await asyncio.to_thread(scan, folder, lambda name: is_compiled(name) or name == _MODELS)
        await upload_tree(connection, path, tree, _reporter(say, "code"), copy=True)


async def _upload_model(connection: Connection, path: str, folder: Path, say: Callable[[str], None]) -> None:
    if await is_missing(connection, path):
        tree = await asyncio.to_thread(scan_data, folder)
        await upload_tree(connection, path, tree, _reporter(say, f"model {folder.parent.name}"), copy=False)


def _reporter(say: Callable[[str], None], what: str) -> Progress:
    """Says once that something large is being sent."""
    said = False

    def progress(done: int, total: int) -> None:
        nonlocal said
        if not said and total > _MEGABYTE:
            said = True
            say(f"uploading the {what}: {total // _MEGABYTE} MB")

    return progress

"""Prepares a run before its job starts, and uploads its data afterwards."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.credentials import options_for_stage
from trainmaster.dispatcher.processes import run_module
from trainmaster.dispatcher.runs import containers
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.resuming import copy_working_folder, find_resumed
from trainmaster.engines import Engine
from trainmaster.environments import prefix
from trainmaster.environments.containers import Container
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import Prefix
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import JobSpec, has_data
from trainmaster.shared.records import RunRecord
from trainmaster.storage.staging import DataPlan, plan_data, read_plan, write_plan
from trainmaster.storage.urls import local_folder


@dataclass(frozen=True)
class Preparation:
    """Everything that a run needs besides nodes."""

    prefix: Prefix
    kit: str
    data: DataPlan | None
    container: Container | None = None
    """The container of its processes, if it names an image."""


async def prepare(
    record: RunRecord,
    spec: JobSpec,
    context: Context,
    engine: Engine,
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Preparation:
    """Prepares environment and data of a run; builds the environment if it does not exist."""
    folder = context.folder.run(record.id)
    ready = await _find_environment(record, spec, context, engine, sources, say)
    origin = find_resumed(record)
    if origin and not folder.code.exists():
        say(f"copying the working folder of run {origin}")
        await asyncio.to_thread(copy_working_folder, context.folder, require_run(context.store, origin).id, record)
    data = _plan_data(spec, context, folder)
    if data is not None and data.before:
        say("copying the data")
        await _stage(folder, data, "before", folder.logs / "65_job_prep-0.txt", context)
    container = await _prepare_container(record, spec, context, engine, ready, data, say)
    return Preparation(ready, str(ensure_kit(context.folder.path)), data, container)


async def prepare_again(
    record: RunRecord,
    spec: JobSpec,
    context: Context,
    engine: Engine,
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Preparation:
    """Prepares another attempt, which uses the data as the previous attempt left them."""
    ready = await _find_environment(record, spec, context, engine, sources, say)
    data = read_plan(context.folder.run(record.id).data_plan) if has_data(spec) else None
    container = await _prepare_container(record, spec, context, engine, ready, data, say)
    return Preparation(ready, str(ensure_kit(context.folder.path)), data, container)


async def _prepare_container(
    record: RunRecord,
    spec: JobSpec,
    context: Context,
    engine: Engine,
    found: Prefix,
    data: DataPlan | None,
    say: Callable[[str], None],
) -> Container | None:
    image = spec.environment.container
    if image is None or getattr(engine, "uses_images", False):
        # In a pod, everything is in the container of the image already.
        return None
    folder = context.folder.run(record.id)
    folder.path.mkdir(parents=True, exist_ok=True)
    # The script may ask for datasets in these folders.
    places = [local_folder(store.url) for store in context.store.datastores.list_all()]
    read = [str(place) for place in places if place is not None and place.is_dir() and place != Path("/")]
    written = data.outside if data else ()
    container_engine = await asyncio.to_thread(containers.require_engine)
    if not engine.runs_here:
        # Other machines fetch images themselves.
        return containers.plan_container(container_engine, found, folder, context.folder, read, written)
    read.append(str(context.folder.socket.parent))
    container = containers.plan_container(container_engine, found, folder, context.folder, read, written)
    return await containers.ready(container, image, found, folder, say)


async def upload_data(record: RunRecord, spec: JobSpec, context: Context) -> str:
    """Uploads the data that the job wrote; returns the error message, empty if there was no error."""
    if not has_data(spec):
        return ""
    folder = context.folder.run(record.id)
    try:
        plan = read_plan(folder.data_plan)
        if plan.after:
            await _stage(folder, plan, "after", folder.logs / "75_job_post-0.txt", context)
    except TrainmasterError as error:
        return error.message
    return ""


def _plan_data(spec: JobSpec, context: Context, folder: RunFolder) -> DataPlan | None:
    if not has_data(spec):
        return None
    stores = {store.name: store for store in context.store.datastores.list_all()}
    plan = plan_data(spec.data, stores, folder.path, folder.code, spec.dataset_inputs, spec.dataset_outputs)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_plan(plan, folder.data_plan)
    if plan.inputs or plan.outputs:
        folder.datasets.write_text(json.dumps({"inputs": plan.inputs, "outputs": plan.outputs}, indent=1))
    return plan


async def _find_environment(
    record: RunRecord,
    spec: JobSpec,
    context: Context,
    engine: Engine,
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Prefix:
    """The environment of a run; built if it does not exist."""
    if spec.environment.user_managed and not engine.shares_files:
        return prefix.users_own_elsewhere(spec.environment)
    folder = context.folder.run(record.id)
    environment = spec.environment
    if getattr(engine, "uses_images", False) and not environment.is_of_image:
        # Its packages are brought into the pod of the image, with their own Python.
        environment = replace(environment, container=None)
    found = await environments.find_or_build(
        environment,
        context,
        folder,
        folder.logs / "20_image_build_log.txt",
        path=spec.environment_variables.get("PATH") or spec.inherited_variables.get("PATH", ""),
        inherited=spec.inherited_variables,
        sources=sources,
        say=say,
    )
    if found.warnings:
        context.store.runs.add_warnings(record.id, *found.warnings)
    return found


async def _stage(folder: RunFolder, plan: DataPlan, when: str, log: Path, context: Context) -> None:
    await run_module(
        ["trainmaster.storage.stage", str(folder.data_plan), when, str(os.getpid())],
        log,
        dict(os.environ),
        options_for_stage(plan.stores.values(), context.secrets),
    )

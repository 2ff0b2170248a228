"""Makes the plan of a service's supervisor: environment, code, models. All steps may be repeated."""

from __future__ import annotations

import asyncio
import glob
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import Prefix
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import ModelNotFoundException
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder, ServiceFolder, WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.service_plan import Batching, Limits, Scoring, ServicePlan
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec
from trainmaster.snapshots.model_contents import Contents

CODE = "code"
MODELS = "azureml-models"


@dataclass(frozen=True)
class Made:
    """Everything that a generation needs, on this machine."""

    plan: ServicePlan
    environment: Prefix

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.environment.warnings


async def make_plan(
    record: ServiceRecord,
    spec: ServiceSpec,
    generation: int,
    context: Context,
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Made:
    """Creates what is missing for a generation of a service."""
    folder = context.folder.service(record.name)
    here = folder.generation(generation)
    await asyncio.to_thread(_begin, here, spec)
    found = await find_environment(spec.environment, spec.inherited_variables, RunFolder(here), context, sources, say)
    await asyncio.to_thread(_lay_out_code, spec, context.folder, here)
    places = {each: await asyncio.to_thread(_model_place, each, context) for each in spec.models}
    await asyncio.to_thread(_link_models, places, here / MODELS)
    identity = context.folder.read_identity()
    plan = plan_of(record, spec, generation, folder, found, str(ensure_kit(context.folder.path)), identity)
    return Made(plan, found)


def plan_of(
    record: ServiceRecord,
    spec: ServiceSpec,
    generation: int,
    folder: ServiceFolder,
    found: Prefix,
    kit: str,
    identity: Mapping[str, Any],
) -> ServicePlan:
    """The plan of a generation whose environment is `found`. Pure."""
    here = folder.generation(generation)
    return ServicePlan(
        name=record.name,
        folder=str(folder.path),
        generation=generation,
        scoring=Scoring(
            name=record.name,
            code=str(code_place(here, spec)),
            working=str(here / CODE),
            entry_script=spec.code.entry_script,
            model_dir=model_dir(spec.models, here / MODELS),
            keys_file=str(folder.keys) if spec.auth_enabled else "",
            cors_origins=spec.cors_origins,
            batching=Batching(spec.max_batch_size, spec.max_batch_wait_ms),
            limits=Limits(body_bytes=int(spec.max_body_mb * 1024 * 1024), seconds=spec.timeout_ms / 1000),
            description=record.description,
            version=str(generation),
        ),
        python=found.python,
        variables=variables(spec, found, kit, identity),
        models_root=str(here / MODELS),
        host=record.host,
        port=record.port,
        replicas=spec.replicas,
    )


def model_dir(models: tuple[str, ...], root: Path) -> str:
    """v1's rule for AZUREML_MODEL_DIR: the folder of the model if there is only one, else the folder of all models.

    >>> model_dir(("mnist:3",), Path("/m")), model_dir(("a:1", "b:1"), Path("/m"))
    ('/m/mnist/3', '/m')
    """
    if len(models) != 1:
        return str(root)
    name, _, version = models[0].rpartition(":")
    return str(root / name / version)


def variables(spec: ServiceSpec, found: Prefix, kit: str, identity: Mapping[str, Any]) -> dict[str, str]:
    """The variables of the scoring script: of the machine, its environment and its workspace, and the user's."""
    own = dict(spec.environment_variables)
    path = os.pathsep.join(each for each in (kit, own.pop("PYTHONPATH", "")) if each)
    return {
        **spec.inherited_variables,
        "TRAINMASTER_WORKSPACE": str(identity["name"]),
        "AZUREML_ARM_WORKSPACE_NAME": str(identity["name"]),
        "AZUREML_ARM_SUBSCRIPTION": str(identity.get("subscription_id", "")),
        "AZUREML_ARM_RESOURCEGROUP": str(identity.get("resource_group", "")),
        **own,
        **found.variables,
        "PYTHONPATH": path,
    }


async def find_environment(
    spec: EnvironmentSpec,
    inherited: Mapping[str, str],
    place: RunFolder,
    context: Context,
    sources: Mapping[str, str] | None,
    say: Callable[[str], None],
) -> Prefix:
    """The environment; built if it does not exist, with the log in `place`/deploy.log."""
    return await environments.find_or_build(
        spec,
        context,
        place,
        place.path / "deploy.log",
        path=inherited.get("PATH", ""),
        inherited=inherited,
        sources=sources,
        say=say,
    )


def note(log: Path, sentence: str) -> None:
    """Appends a line to the log of a deployment or image."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf-8", errors="replace") as file:
        file.write(f"[{time.strftime('%H:%M:%S')}] {sentence}\n")


def code_place(here: Path, spec: ServiceSpec) -> Path:
    """The folder of a service's code: its source folder, under its own name, in the working folder.

    Single files are in the working folder itself.
    """
    return here / CODE / spec.code.folder_name


def _begin(here: Path, spec: ServiceSpec) -> None:
    """Creates the folder of a generation, and removes what a killed dispatcher left incomplete."""
    place = code_place(here, spec)
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in place.parent.glob(f"{glob.escape(place.name)}.partial-*"):
        beneath.remove_tree(place.parent, left.name)


def _lay_out_code(spec: ServiceSpec, workspace: WorkspaceFolder, here: Path) -> None:
    place = code_place(here, spec)
    if not place.is_dir():
        lay_out(workspace.snapshot(spec.code.snapshot_id), workspace.blobs, place)


def _model_place(model: str, context: Context) -> Path:
    name, _, version = model.rpartition(":")
    record = context.store.models.get(name, int(version))
    if record is None:
        raise ModelNotFoundException(f"model {model} is not in this workspace any more", hint="Deploy another version.")
    record = ModelFiles(context.store, context.folder).resolve(record)
    # Raises an error if the files of the model have changed on disk.
    return Contents(context.folder.models).sound(name, record.version, record.manifest)


def _link_models(places: Mapping[str, Path], root: Path) -> None:
    """Links `<root>/<name>/<version>` to the files of each model."""
    root.mkdir(exist_ok=True)
    for model, place in places.items():
        name, _, version = model.rpartition(":")
        link = root / name / version
        link.parent.mkdir(exist_ok=True)
        if link.is_symlink():
            link.unlink()
        link.symlink_to(place)

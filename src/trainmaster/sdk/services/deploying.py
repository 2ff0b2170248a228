"""Deploys services: models, a scoring script and settings become one description, which the dispatcher gets."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.sources import source_variables
from trainmaster.job.errors import RunNotFoundException, WebserviceException
from trainmaster.job.script.labels import check_tags
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.inherited import select_inherited
from trainmaster.sdk.models.model import Model
from trainmaster.sdk.services.configurations import WebserviceDeploymentConfiguration
from trainmaster.sdk.services.environment import with_server
from trainmaster.sdk.services.inference_config import InferenceConfig
from trainmaster.sdk.v1.image_configuration import ContainerImageConfig
from trainmaster.sdk.v1.service_configurations import (
    AciServiceDeploymentConfiguration,
    AksServiceDeploymentConfiguration,
)
from trainmaster.shared.job_spec import EnvironmentSpec, load_spec
from trainmaster.shared.notices import warn
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.shared.service_spec import ServiceCode, ServiceRecord, ServiceSpec, check_service_name

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def send(
    workspace: Workspace,
    name: str,
    spec: ServiceSpec,
    config: WebserviceDeploymentConfiguration,
    *,
    target: Any = None,
    overwrite: bool = False,
    image_id: str = "",
) -> ServiceRecord:
    """Requests a service from the dispatcher; returns its record when the request is stored."""
    check_service_name(name)
    record = ServiceRecord(
        name=name,
        compute_type=config.compute_type,
        spec=replace(spec, auth_enabled=config.wants_keys, **config.for_spec()),
        token=uuid.uuid4().hex,
        port=config.port or 0,
        host=config.host or "127.0.0.1",
        settings=_settings(config, target),
        tags=check_tags(config.tags or {}),
        properties=as_properties(config.properties or {}),
        description=str(config.description or ""),
        image_id=image_id,
    )
    keys = {"primary": config.primary_key, "secondary": config.secondary_key}
    answer = workspace.connection.call(
        "services.deploy",
        service=to_plain(record),
        keys=keys,
        sources=source_variables(os.environ),
        overwrite=bool(overwrite),
    )
    return from_plain(ServiceRecord, answer)


def send_update(
    workspace: Workspace, record: ServiceRecord, spec: ServiceSpec, changes: Mapping[str, Any]
) -> ServiceRecord:
    """Requests another generation of a service."""
    answer = workspace.connection.call(
        "services.update",
        name=record.name,
        token=uuid.uuid4().hex,
        changes={**changes, "spec": to_plain(spec)},
        sources=source_variables(os.environ),
    )
    return from_plain(ServiceRecord, answer)


def make_spec(workspace: Workspace, models: Sequence[Model], inference_config: Any) -> ServiceSpec:
    """What to serve: the models with a scoring script, their own or the built-in one of their kind."""
    with workspace.backend.pythons():
        return _make_spec(workspace, models, inference_config)


def _make_spec(workspace: Workspace, models: Sequence[Model], inference_config: Any) -> ServiceSpec:
    if inference_config is None:
        return _without_code(workspace, models)
    if not isinstance(inference_config, InferenceConfig | ContainerImageConfig):
        raise WebserviceException(
            f"inference_config must be an InferenceConfig, not {type(inference_config).__name__}",
            hint="Write InferenceConfig(entry_script='score.py', environment=environment).",
        )
    inference_config.validate_configuration()
    environment = inference_config.service_environment()
    code = inference_config.take_code(workspace.backend.contents)
    return spec_of(workspace, code, models, environment)


def spec_of(
    workspace: Workspace, code: ServiceCode, models: Sequence[Model], environment: Environment | None
) -> ServiceSpec:
    """The parts as one description. The default environment is the one in which the model was trained."""
    if environment is None:
        packages, name, variables = _models_own(workspace, models)
        made_in = None
    else:
        packages, name = environment.to_spec(), environment.name
        variables = {key: str(value) for key, value in environment.job_variables().items()}
        made_in = _find_training_environment(workspace, models)
    return ServiceSpec(
        code=code,
        models=tuple(model.id for model in models),
        environment=with_server(packages, made_in),
        environment_name=name,
        environment_variables=variables,
        inherited_variables=select_inherited(os.environ),
    )


def _find_training_environment(workspace: Workspace, models: Sequence[Model]) -> EnvironmentSpec:
    """The environment of the run that trained the models; plain Python if the run was deleted."""
    try:
        return _models_own(workspace, models)[0]
    except RunNotFoundException:
        return EnvironmentSpec()


def _models_own(workspace: Workspace, models: Sequence[Model]) -> tuple[EnvironmentSpec, str, dict[str, str]]:
    """The environment of the run that trained the first model with a run; else plain Python."""
    for model in models:
        if model.run_id:
            run = workspace.connection.call("runs.get", run_id=model.run_id)
            if run["spec"]:
                job = load_spec(run["spec"])
                return job.environment, job.environment_name, dict(job.environment_variables)
    return EnvironmentSpec(), "", {}


def _without_code(workspace: Workspace, models: Sequence[Model]) -> ServiceSpec:
    """A service without a script, for one model whose kind determines how requests look."""
    if len(models) != 1:
        raise WebserviceException(
            f"{len(models)} models cannot be deployed without an inference_config",
            hint="Only a single model can be served without code. Give an InferenceConfig with a scoring script.",
        )
    found: ServiceSpec = import_module("trainmaster.sdk.services.no_code").scoring_for(workspace, models[0])
    return found


def resolve_models(workspace: Workspace, models: Any) -> list[Model]:
    """The models that are given as objects, ids, names, or as files, which are registered first."""
    if isinstance(models, str | os.PathLike | Model) or not isinstance(models, Iterable):
        raise WebserviceException(
            f"models must be a list of models, not {type(models).__name__}", hint="Write models=[model]."
        )
    return [_resolve_model(workspace, model) for model in models]


def _resolve_model(workspace: Workspace, model: Any) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if path.exists():
            return Model.register(workspace, str(path), model_name_of(path))
        if isinstance(model, str) and re.fullmatch(r"[^:/]+(:\d+)?", model):
            return Model(workspace, id=model) if ":" in model else Model(workspace, model)
    raise WebserviceException(
        f"{str(model)[:200]!r} is not a model",
        hint="Give a Model, its name or name:version, or the path of its file or folder.",
    )


def model_name_of(path: Path) -> str:
    """The name under which a file that is deployed directly is registered.

    >>> model_name_of(Path("outputs/my model.pkl"))
    'my-model.pkl'
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.resolve().name).lstrip("-._")
    return name[:255] or "model"


def check_configuration(config: Any, target: Any) -> WebserviceDeploymentConfiguration:
    """The settings; by default those of the kind that belongs to the target."""
    _check_target(target)
    if config is None:
        return AksServiceDeploymentConfiguration() if target is not None else AciServiceDeploymentConfiguration()
    if not isinstance(config, WebserviceDeploymentConfiguration):
        raise WebserviceException(
            f"deployment_config must be the result of deploy_configuration(...), not {type(config).__name__}",
            hint="Write deployment_config=AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1).",
        )
    config.validate_configuration()
    if target is not None and config.compute_type != "AKS":
        raise WebserviceException(
            f"a deployment_target needs AksWebservice.deploy_configuration, not that of {config.compute_type}",
            hint="Leave deployment_target out.",
        )
    _warn_of_replicas(config, target)
    return config


def _warn_of_replicas(config: WebserviceDeploymentConfiguration, target: Any) -> None:
    """On this machine, nothing follows the load."""
    if isinstance(config, AksServiceDeploymentConfiguration) and config.wants_autoscale and not _is_cluster(target):
        warn(
            "the number of replicas does not follow the load: the service has autoscale_min_replicas of them "
            "(default 1); use num_replicas instead, or a deployment_target on Kubernetes"
        )


def _is_cluster(target: Any) -> bool:
    record = getattr(target, "_record", None)
    return record is not None and record.engine == "kubernetes" and record.nodes > 0


def _check_target(target: Any) -> None:
    """Refuses targets on other machines: the service would silently run on this one."""
    from trainmaster.sdk.compute.kubernetes import KubernetesCompute
    from trainmaster.sdk.compute.local import LocalCompute
    from trainmaster.sdk.compute.target import ComputeTarget
    from trainmaster.sdk.v1.azure_targets import AksCompute

    if target is None or isinstance(target, AksCompute | KubernetesCompute | LocalCompute):
        return
    if not isinstance(target, ComputeTarget):
        raise WebserviceException(
            f"deployment_target must be a compute target, not {target!r}",
            hint="Leave it out, or write AksCompute(workspace, name).",
        )
    raise WebserviceException(
        f"compute target '{target.name}' ({target.type}) cannot run services",
        cause="Services run on this machine.",
        hint="Leave deployment_target out. For another machine, use Model.package(...).",
    )


def as_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as they are stored: strings."""
    return {str(key): str(value) for key, value in properties.items()}


def _settings(config: WebserviceDeploymentConfiguration, target: Any) -> dict[str, Any]:
    settings = config.settings()
    if target is not None:
        settings["deployment_target"] = str(getattr(target, "name", target))
    return settings

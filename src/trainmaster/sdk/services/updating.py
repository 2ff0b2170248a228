"""Updates of services: another generation if something else is to be served, else only new labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.job.script.labels import check_tags
from trainmaster.sdk.models.model import Model
from trainmaster.sdk.services import deploying
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord, ServiceSpec, ServiceState

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def change(
    workspace: Workspace,
    name: str,
    *,
    models: Any = None,
    inference_config: Any = None,
    image: ImageRecord | None = None,
    spec: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    **labels: Any,
) -> ServiceRecord:
    """Makes the changes that are not None, and returns the service once they are stored.

    `spec` has fields of the description, `settings` what is only recorded, `labels` tags, properties and description.
    """
    asked, noted, said = _drop_none(spec), _drop_none(settings), _drop_none(labels)
    stays = models is None and inference_config is None and image is None and not asked
    if stays and not noted and not said:
        raise WebserviceException("update was given nothing to change")
    record = from_plain(ServiceRecord, workspace.connection.call("services.get", name=name))
    changes = {**_check_labels(said), "settings": {**record.settings, **noted}}
    if stays:
        return from_plain(ServiceRecord, workspace.connection.call("services.label", name=name, **changes))
    if image is not None:
        changes["image_id"] = image.id
    following = _following(workspace, base_of(record), models, inference_config, image)
    return deploying.send_update(workspace, record, replace(following, **asked), changes)


def base_of(record: ServiceRecord) -> ServiceSpec:
    """The description that an update changes: the last one requested, or the one served now if that failed. Pure."""
    return record.served if record.state is ServiceState.FAILED and record.served is not None else record.spec


def _following(
    workspace: Workspace, base: ServiceSpec, models: Any, inference_config: Any, image: ImageRecord | None
) -> ServiceSpec:
    """The new description, with the settings of `base`."""
    spec = base if image is None else _with_settings(image.spec, base)
    if models is None and inference_config is None:
        return spec
    if models is None:
        used = [Model(workspace, id=each) for each in base.models]
    else:
        used = deploying.resolve_models(workspace, models)
    if inference_config is None and not base.code.is_ready_made:
        return replace(spec, models=tuple(model.id for model in used))
    return _with_settings(deploying.make_spec(workspace, used, inference_config), base)


def _with_settings(spec: ServiceSpec, base: ServiceSpec) -> ServiceSpec:
    """The description with other code, models or packages, and the settings it had."""
    return replace(
        base,
        code=spec.code,
        models=spec.models,
        environment=spec.environment,
        environment_name=spec.environment_name,
        environment_variables=spec.environment_variables,
        inherited_variables=spec.inherited_variables,
    )


def _check_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    checks = {"tags": check_tags, "properties": deploying.as_properties}
    return {key: checks[key](value) if key in checks else value for key, value in labels.items()}


def _drop_none(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (values or {}).items() if value is not None}

"""Old names of parameters, and deprecated parameters. They work, with a warning."""

from __future__ import annotations

import dataclasses

from trainmaster.job.errors import TrainingException
from trainmaster.sdk.estimators.settings import Settings
from trainmaster.shared.notices import warn, warn_deprecated

_RENAMED = {
    "custom_docker_base_image": "custom_docker_image",
    "conda_dependencies_file_path": "conda_dependencies_file",
    "pip_requirements_file_path": "pip_requirements_file",
}
_COUNTS = {
    "process_count_per_node": "use distributed_training=Mpi(process_count_per_node=...) instead",
    "worker_count": "use distributed_training=ParameterServer(worker_count=...) instead",
    "parameter_server_count": "use distributed_training=ParameterServer(parameter_server_count=...) instead",
}


def with_new_names(settings: Settings) -> Settings:
    """`settings` with values of old names moved to the new ones."""
    moved: dict[str, object] = {}
    for old, new in _RENAMED.items():
        value = getattr(settings, old)
        if value is None:
            continue
        if getattr(settings, new) is not None:
            raise TrainingException(f"{old} and {new} are the same parameter", hint=f"Give {new} only.")
        warn_deprecated(old, f"use {new} instead")
        moved.update({old: None, new: value})
    return dataclasses.replace(settings, **moved) if moved else settings


def warn_about(settings: Settings) -> None:
    """Warns of deprecated and ignored settings."""
    if settings.distributed_backend is not None:
        warn_deprecated("distributed_backend", "use distributed_training=Mpi(), for instance, instead")
    for name, instead in _COUNTS.items():
        if getattr(settings, name) != 1:
            warn_deprecated(name, instead)
    if not settings.use_docker:
        warn_deprecated("use_docker=False", "leave it out")
    _warn_ignored(settings)


def _warn_ignored(settings: Settings) -> None:
    training = settings.distributed_training
    if training is not None and settings.distributed_backend is not None:
        warn("distributed_backend is ignored, because distributed_training is given")
    is_servers = training is None and str(settings.distributed_backend).lower() == "ps"
    ignored = [name for name in ("worker_count", "parameter_server_count") if getattr(settings, name) != 1]
    if ignored and not is_servers:
        warn(f"{' and '.join(ignored)}: ignored, because distributed_backend is not 'ps'")
    nodes = getattr(training, "node_count", 1)
    if nodes not in (1, settings.node_count):
        warn(f"node_count={nodes} of distributed_training is ignored: node_count={settings.node_count} applies")
    per_node = getattr(training, "process_count_per_node", None)
    if per_node is not None and settings.process_count_per_node not in (1, per_node):
        warn(f"process_count_per_node is ignored, because distributed_training has {per_node}")

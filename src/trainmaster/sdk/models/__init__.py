"""Models: files with a name, a version, and where they come from.

model = Model.register(workspace, "outputs/model.pkl", "mnist", tags={"stage": "trial"})
Model(workspace, "mnist").download("here")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.job.script.resource_configuration import ResourceConfiguration as ResourceConfiguration
    from trainmaster.sdk.models.model import Model as Model

_HOMES = {
    "Model": "trainmaster.sdk.models.model",
    "ResourceConfiguration": "trainmaster.job.script.resource_configuration",
}

__all__ = ["Model", "ResourceConfiguration"]


def __getattr__(name: str) -> Any:
    # The dispatcher keeps contents of models, and knows nothing of the class.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""Converts a registered model to a new model in ONNX, in an environment that has its framework, and compares both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.frameworks import PYTORCH, SKLEARN, TENSORFLOW, Framework, release_in
from trainmaster.environments.requirement import package_name
from trainmaster.environments.sources import source_variables
from trainmaster.job.errors import WebserviceException
from trainmaster.job.onnx.exported import Exported
from trainmaster.job.onnx.needed import packages_for
from trainmaster.job.onnx.reading import make_exported
from trainmaster.job.script.registered_model import describe_model
from trainmaster.sdk.estimators.inherited import select_inherited
from trainmaster.sdk.long_work import follow_work
from trainmaster.sdk.models.model import Model
from trainmaster.sdk.models.references import References
from trainmaster.sdk.services.code import take_files
from trainmaster.sdk.services.no_code.inputs import find_inputs
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised, recognise, torch_file
from trainmaster.sdk.services.no_code.packages import find_training_environment, make_environment
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_FRAMEWORKS: Mapping[str, tuple[Framework, tuple[str, ...]]] = {
    Kind.SKLEARN: (SKLEARN, packages_for("scikit-learn")),
    Kind.SAVED_MODEL: (TENSORFLOW, packages_for("TensorFlow")),
    Kind.TORCHSCRIPT: (PYTORCH, packages_for("PyTorch")),
    Kind.TORCH_PROGRAM: (PYTORCH, packages_for("PyTorch")),
    Kind.TORCH_PICKLE: (PYTORCH, packages_for("PyTorch")),
}


@dataclass(frozen=True)
class Conversion:
    """How to convert a model."""

    name: str = ""
    """The name of the new model; if empty, the old one's name with `-onnx`."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """The `name`, `type` and `shape` of each input; if empty, what is known of the model."""
    sample: str = ""
    """A file with a sample: .npy, .npz or .json."""
    code: tuple[str, ...] = ()
    """Folders with modules that the model needs, beside the code of its run."""
    packages: tuple[str, ...] = ()
    """Further requirements for pip."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Options for `trainmaster.onnx.export`: opset, tolerance, dynamic_batch, quantize."""


def convert(workspace: Workspace, model: Model, wanted: Conversion) -> tuple[Model, Exported]:
    """Converts `model` on the dispatcher's machine and registers the result, if its outputs agree with the model's."""
    found = _recognise_model(model)
    contents = workspace.backend.contents
    description = describe_model(
        References(),
        wanted.name or f"{model.name}-onnx",
        properties={"converted_from": model.id},
        framework=Model.Framework.ONNX,
    )
    answer = follow_work(
        workspace,
        "models.convert",
        name=model.name,
        version=model.version,
        order={
            "kind": str(found.kind),
            "path": found.path,
            "inputs": [dict(each) for each in wanted.inputs or find_inputs(model)],
            "settings": dict(wanted.settings),
        },
        model=description,
        environment=to_plain(environment_for(workspace, model, found.kind, wanted.packages)),
        code=[contents.take_snapshot(Path(each)).id for each in wanted.code],
        sample=take_files(contents, Path(os.path.abspath(wanted.sample))).snapshot_id if wanted.sample else "",
        variables=select_inherited(os.environ),
        sources=source_variables(os.environ),
    )
    record = from_plain(ModelRecord, answer["model"])
    return Model(workspace, _record=record), make_exported(record.entry, answer["facts"])


def environment_for(workspace: Workspace, model: Model, kind: Kind, more: Sequence[str]) -> EnvironmentSpec:
    """The environment of the model, with the packages that convert it."""
    framework, converters = _FRAMEWORKS[kind]
    with workspace.backend.pythons():
        spec = find_training_environment(workspace, model, framework) or make_environment(model, framework)
    release = release_in(framework, (*spec.pip_packages, *spec.conda_packages))
    if framework is PYTORCH and release is not None and not _has_newer_exporter(release.requirement):
        converters = tuple(each for each in converters if each != "onnxscript")
    named = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages, *more)}
    added = [each for each in converters if each not in named]
    return replace(spec, pip_packages=(*spec.pip_packages, *more, *added), horovod="", open_mpi=False)


def _has_newer_exporter(requirement: str) -> bool:
    numbers = requirement.lstrip("=").split(".")
    return (int(numbers[0]), int(numbers[1])) >= (2, 5)


def _recognise_model(model: Model) -> Recognised:
    if model.model_framework == Model.Framework.ONNX:
        raise WebserviceException(f"model {model.id} is ONNX already")
    file = torch_file(model)
    if file:
        return file
    found = recognise(model)
    if found.kind is Kind.ONNX:
        raise WebserviceException(f"model {model.id} is ONNX already")
    if found.kind is Kind.MLFLOW:
        raise WebserviceException(
            f"model {model.id} is in MLflow's format, which is not converted",
            hint="Register the file of the model in it, with its model_framework.",
        )
    return found

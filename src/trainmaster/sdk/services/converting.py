"""Converts a registered model to a new model in ONNX, in an environment that has its framework, and compares both."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.environments.frameworks import PYTORCH, SKLEARN, TENSORFLOW, Framework, release_in
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import open_prefix
from trainmaster.environments.requirement import package_name
from trainmaster.environments.sources import source_variables
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import OnnxException, SnapshotException, WebserviceException, from_wire
from trainmaster.job.onnx.exported import Exported
from trainmaster.job.onnx.needed import packages_for
from trainmaster.job.onnx.reading import read_exported
from trainmaster.job.script.registered_model import describe_model
from trainmaster.sdk.estimators.inherited import select_inherited
from trainmaster.sdk.models.model import Model
from trainmaster.sdk.models.references import References
from trainmaster.sdk.models.registering import register_sources
from trainmaster.sdk.services.no_code.inputs import find_inputs
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised, recognise, torch_file
from trainmaster.sdk.services.no_code.packages import find_training_environment, make_environment
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain
from trainmaster.snapshots.model_sources import files_at

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
    """Converts `model` and registers the result, if its outputs agree with those of the model."""
    found = _recognise_model(model)
    name = wanted.name or f"{model.name}-onnx"
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as work:
        target = Path(work) / f"{model.name}.onnx"
        _run(workspace, model, found, wanted, target)
        exported = read_exported(target)
        references = References()
        description = describe_model(
            references,
            name,
            description=f"{model.id} as ONNX: {exported.parity}",
            properties={"converted_from": model.id},
            framework=Model.Framework.ONNX,
        )
        # The metadata of the file becomes facts of the model, too.
        description.update(run_id=model.run_id or "", facts={"converted_from": model.id})
        record = register_sources(workspace, files_at(target), description, references)
    return Model(workspace, _record=record), exported


def environment_for(workspace: Workspace, model: Model, kind: Kind, more: Sequence[str]) -> EnvironmentSpec:
    """The environment of the model, with the packages that convert it."""
    framework, converters = _FRAMEWORKS[kind]
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
    return found


def _run(workspace: Workspace, model: Model, found: Recognised, wanted: Conversion, target: Path) -> None:
    spec = environment_for(workspace, model, found.kind, wanted.packages)
    answer = workspace.connection.call("environments.build", spec=to_plain(spec), sources=source_variables(os.environ))
    prefix = open_prefix(Path(answer["folder"]), os.environ.get("PATH", ""))
    told = target.with_name("answer.json")
    order = {
        "kind": str(found.kind),
        "path": str(model.materialise() / found.path),
        "target": str(target),
        "answer": str(told),
        "code": [*(os.path.abspath(each) for each in wanted.code), *_code_of_run(workspace, model, target.parent)],
        "inputs": [dict(each) for each in wanted.inputs or find_inputs(model)],
        "sample": os.path.abspath(wanted.sample) if wanted.sample else "",
        "settings": dict(wanted.settings),
    }
    done = subprocess.run(
        [prefix.python, "-m", "trainmaster.job.onnx"],
        input=json.dumps(order),
        cwd=target.parent,
        env={**select_inherited(os.environ), **prefix.variables, "PYTHONPATH": str(ensure_kit(workspace.path))},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    try:
        said = json.loads(told.read_text())
    except (OSError, ValueError):
        raise OnnxException(
            f"model {model.id} could not be converted: the process ended with {done.returncode}",
            cause="\n".join(done.stderr.splitlines()[-20:]),
        ) from None
    if "error" in said:
        raise from_wire(said["error"])


def _code_of_run(workspace: Workspace, model: Model, work: Path) -> list[str]:
    """The code of the run that trained the model: pickled objects may need its modules."""
    snapshot = model.lineage.get("snapshot_id")
    if not snapshot:
        return []
    own = WorkspaceFolder(workspace.path)
    try:
        lay_out(own.snapshot(snapshot), own.blobs, work / "code")
    except SnapshotException:
        # The code may have been removed. If the model needs it, loading the model fails.
        return []
    return [str(work / "code")]

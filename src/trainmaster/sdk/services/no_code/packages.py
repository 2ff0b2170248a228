"""The environment of a service without code: that of the run that trained the model, or what its framework needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.environments import pythons
from trainmaster.environments.frameworks import (
    PYTORCH,
    SKLEARN,
    TENSORFLOW,
    Framework,
    choose_python,
    is_named,
    is_version,
    release_of,
)
from trainmaster.job.errors import RunNotFoundException, WebserviceException
from trainmaster.sdk.services.no_code import mlflow_files
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised
from trainmaster.shared.job_spec import EnvironmentSpec, load_spec
from trainmaster.shared.notices import warn

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace

_FRAMEWORK_OF = {
    Kind.SKLEARN: SKLEARN,
    Kind.TORCHSCRIPT: PYTORCH,
    Kind.TORCH_PROGRAM: PYTORCH,
    Kind.SAVED_MODEL: TENSORFLOW,
}
_ONNX = ("onnxruntime>=1.18", "numpy")


def environment_for(workspace: Workspace, model: Model, found: Recognised) -> EnvironmentSpec:
    """The environment of the service."""
    if found.kind is Kind.ONNX:
        # ONNX Runtime reads the files of all earlier releases.
        return EnvironmentSpec(pip_packages=_ONNX, accelerator="cpu")
    if found.kind is Kind.MLFLOW:
        return mlflow_files.make_environment(model.id, model.materialise() / found.path)
    framework = _FRAMEWORK_OF[found.kind]
    return find_training_environment(workspace, model, framework) or make_environment(model, framework)


def find_training_environment(workspace: Workspace, model: Model, framework: Framework) -> EnvironmentSpec | None:
    """The environment in which the model was trained, if it can be built and has the framework."""
    if not model.run_id:
        return None
    try:
        run = workspace.connection.call("runs.get", run_id=model.run_id)
    except RunNotFoundException:
        # MLflow does not check the run that a client names.
        return None
    if not run["spec"]:
        return None
    spec = load_spec(run["spec"]).environment
    if spec.user_managed or spec.container is not None:
        return None
    return spec if is_named(framework, (*spec.pip_packages, *spec.conda_packages)) else None


def make_environment(model: Model, framework: Framework) -> EnvironmentSpec:
    """An environment with the release of the framework that the model names, else with the newest one."""
    version = (model.model_framework_version or "").strip()
    if not version:
        version = framework.default
        warn(
            f"model {model.id} does not name its release of {framework.name}: the service uses {version}. "
            "Register models with model_framework_version."
        )
    if not is_version(version):
        raise WebserviceException(
            f"model {model.id} has model_framework_version {version!r}, which is not a release of {framework.name}",
            hint="Register it again, with a number such as 1.9.1.",
        )
    release = release_of(framework, version.partition("+")[0])
    python = choose_python(release, pythons.running_version(), pythons.all_pythons())
    return EnvironmentSpec(
        python_version="" if python == pythons.running_version() else python,
        pip_packages=release.packages(use_gpu=False),
        accelerator="cpu",
    )

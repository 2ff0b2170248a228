"""`Model.package`: a service as a folder that runs with plain uvicorn anywhere, or as an image."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from trainmaster.environments import build_record, lock
from trainmaster.environments.cleanup import log_of
from trainmaster.environments.containers import EngineName, find_engine
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import python_version
from trainmaster.environments.sources import mask_passwords, pip_settings, source_variables
from trainmaster.environments.tools import Tools
from trainmaster.job.agent import durable
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.models.model import Model
from trainmaster.sdk.services import package_texts as texts
from trainmaster.sdk.services.deploying import make_spec, resolve_models
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.service_plan import SERVER
from trainmaster.shared.service_spec import ServiceSpec
from trainmaster.shared.terminal import clean, is_terminal

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_ABOUT = "package.json"
_IMAGE = "package"
# The settings of pip that say where packages come from.
_OF_BUILD = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "timeout", "proxy")


class ModelPackage:
    """A service in a folder. `save` copies the folder, `pull` builds an image from it."""

    def __init__(self, workspace: Workspace, operation_id: str, environment: Any) -> None:
        self.workspace = workspace
        self.operation_id = operation_id
        self.environment = environment
        self._place = _packages(workspace) / operation_id
        try:
            self._about: dict[str, Any] = json.loads((self._place / _ABOUT).read_text())
        except (OSError, ValueError):
            raise WebserviceException(f"there is no package {operation_id[:60]!r} in this workspace") from None

    @staticmethod
    def create(
        workspace: Workspace,
        models: Sequence[Any],
        inference_config: Any = None,
        generate_dockerfile: bool = False,
        image_name: str | None = None,
        image_label: str | None = None,
    ) -> ModelPackage:
        """Writes models, their scoring script, its packages and the server to one folder."""
        chosen = resolve_models(workspace, models)
        spec = make_spec(workspace, chosen, inference_config)
        spec = replace(spec, environment=_for_package(spec.environment))
        folder = _build_environment(workspace, spec.environment)
        requirements = hash_requirements(folder, spec.environment)
        about = {
            "image": f"{image_name or _IMAGE}:{image_label or 'latest'}",
            "dockerfile": bool(generate_dockerfile),
            "environment": folder.name.partition(".")[0],
            "python": built.python if (built := build_record.read(folder)) else python_version(spec.environment),
            "environment_name": spec.environment_name,
            "models": list(spec.models),
        }
        name = _write(workspace, spec, chosen, requirements, about)
        return ModelPackage(workspace, name, getattr(inference_config, "environment", None))

    @property
    def state(self) -> str:
        """v1's state of a package. It is always complete."""
        return "Succeeded"

    @property
    def location(self) -> str:
        """The folder in the workspace; after `pull`, the image."""
        return str(self._about["image"] if self._about.get("built") else self._place / "files")

    @property
    def models(self) -> list[str]:
        """`name:version` of each model in it."""
        return list(self._about["models"])

    def update_creation_state(self) -> None:
        """Reads the package again."""
        self._about = json.loads((self._place / _ABOUT).read_text())

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Returns at once: `Model.package` has already waited. `show_output` prints the log."""
        if show_output:
            logs = self.get_logs()
            print(clean(logs) if is_terminal(sys.stdout) else logs, end="")
            print(f"Package creation {self.state}: {self.location}")

    def get_logs(self, decode: bool = True, offset: int = 0) -> Any:
        """The log of installing and locking its packages; bytes without `decode`."""
        text = (self._place / "log.txt").read_bytes()[offset:]
        return text.decode(errors="replace") if decode else text

    def save(self, output_directory: str | os.PathLike[str]) -> None:
        """Copies it into a folder that is empty or does not exist yet."""
        target = Path(output_directory)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise WebserviceException(f"{target} already exists and is not empty", hint="Give a new folder.")
        try:
            shutil.copytree(self._place / "files", target, dirs_exist_ok=True, copy_function=_copy_writable)
        except OSError as error:
            raise WebserviceException(f"the package cannot be copied to {target}", cause=str(error)) from None

    def pull(self) -> None:
        """Builds the image on this machine. It needs docker or podman."""
        engine, told = find_engine(os.environ)
        if engine is None or engine.name == "apptainer":
            raise WebserviceException(
                "an image cannot be built on this machine: neither docker nor podman answers",
                cause=told,
                hint="save(folder) writes the same service with a Dockerfile; it also runs with plain uvicorn.",
            )
        with tempfile.TemporaryDirectory() as secrets:
            options = build_options(engine.name, pip_settings(os.environ), Path(secrets))
            done = subprocess.run(
                [engine.program, "build", *options, "--tag", self._about["image"], str(self._place / "files")],
                env={**os.environ, "DOCKER_BUILDKIT": "1"},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        with open(self._place / "log.txt", "a") as log:
            log.write(mask_passwords(done.stdout + done.stderr))
        if done.returncode:
            raise WebserviceException(
                f"{engine.name} cannot build the image",
                cause=mask_passwords("\n".join((done.stdout + done.stderr).splitlines()[-20:])),
                hint="save(folder) writes the folder with the Dockerfile, which you can change or build elsewhere.",
            )
        self._about = {**self._about, "built": True}
        (self._place / _ABOUT).write_text(json.dumps(self._about))

    def get_container_registry(self) -> NoReturn:
        """Not here: images stay on this machine."""
        raise WebserviceException(
            "packages are not in a registry: an image stays on this machine",
            hint="After pull(), 'docker push' copies it to your registry; save(folder) needs no registry.",
        )

    def __repr__(self) -> str:
        return f"ModelPackage(workspace={self.workspace.name}, location={self.location}, models={self.models})"


def build_options(engine: EngineName, settings: Mapping[str, str], secrets: Path) -> list[str]:
    """Options with which pip finds the same packages in a build as it does here. `secrets` is a temporary folder.

    Only builds with podman can see folders of this machine.
    """
    kept = {name: settings[name] for name in _OF_BUILD if settings.get(name)}
    options = ["--network", "host"]
    if engine == "podman":
        # The OCI format has no HEALTHCHECK.
        options += ["--format", "docker"]
        for place in local_sources(kept):
            options += ["--volume", f"{place}:{place}:ro"]
    if settings.get("cert") and os.path.isfile(settings["cert"]):
        kept["cert"] = f"/run/secrets/{texts.CERTIFICATES}"
        options += ["--secret", f"id={texts.CERTIFICATES},src={settings['cert']}"]
    if kept:
        file = secrets / "pip.conf"
        file.touch(0o600)
        file.write_text("[global]\n" + "".join(f"{name} = {' '.join(kept[name].split())}\n" for name in kept))
        options += ["--secret", f"id={texts.PIP},src={file}"]
    return options


def local_sources(settings: Mapping[str, str]) -> list[str]:
    """The folders of this machine in which pip looks for packages. The files of a local index are usually beside it."""
    found = set()
    for name in ("index-url", "extra-index-url", "find-links"):
        for word in settings.get(name, "").split():
            place = os.path.normpath(unquote(word.removeprefix("file://")))
            if os.path.isabs(place) and os.path.isdir(place):
                found.add(place if name == "find-links" or os.path.dirname(place) == "/" else os.path.dirname(place))
    return sorted(found)


@dataclass(frozen=True)
class Requirements:
    """The text of `requirements.lock`, and its packages that came from a folder of this machine."""

    text: str
    local: tuple[str, ...]


def hash_requirements(folder: Path, spec: EnvironmentSpec) -> Requirements:
    """The lock of a built environment with the hashes of all files that may be installed from it."""
    kept = (folder / lock.LOCK_NAME).read_text()
    pins = lock.pins(kept)
    tools = Tools(dict(os.environ))
    sources = lock.sources_of(spec, tools)
    # Nothing is resolved again: every release is given, and no package is added.
    command = ["pip", "compile", "--python", f"{folder}/bin/python", "--no-header", "--no-annotate", "--no-deps"]
    asked = subprocess.run(
        tools.uv_command([*command, "--generate-hashes", *sources.options, "/dev/stdin"]),
        input="\n".join(_requirement(pin) for pin in pins) + "\n",
        env=dict(sources.variables),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if asked.returncode:
        raise WebserviceException(
            "the packages of the service cannot be locked with their hashes",
            cause=mask_passwords("\n".join(asked.stderr.splitlines()[-20:])),
            hint="They were installed before. Check that their package index is still available.",
        )
    return with_hashes_of_files(mask_passwords(asked.stdout), pins)


def with_hashes_of_files(text: str, pins: Sequence[lock.Pin]) -> Requirements:
    """Adds the hashes that no index reports: those of files in folders of this machine."""
    lines, local = [], []
    sources = {_requirement(pin): pin for pin in pins}
    for line in text.splitlines():
        pin = sources.get(line.strip())
        if pin is None:
            lines.append(line)
            continue
        hashes = _hashes_in_folder(pin)
        if not hashes:
            raise WebserviceException(
                f"{line.strip()} cannot be locked: its source reports no hashes",
                cause=f"It comes from {mask_passwords(pin.source) or 'an unknown source'}.",
                hint="Use packages from an index, or from a folder of this machine.",
            )
        local.append(line.strip())
        lines += [" \\\n".join([line, *(f"    --hash=sha256:{each}" for each in hashes)])]
    return Requirements("\n".join(lines) + "\n", tuple(local))


def _hashes_in_folder(pin: lock.Pin) -> list[str]:
    folder = Path(unquote(pin.source.removeprefix("file://")))
    if not folder.is_dir():
        return []
    found = [
        path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip")) and _names(path.name, pin)
    ]
    return sorted({_sha256(path) for path in found})


def _names(file: str, pin: lock.Pin) -> bool:
    """Whether a file such as `torch-2.13.0+cpu-cp311-...whl` belongs to that release."""
    stem = re.sub(r"[-_.]+", "-", unquote(file)).lower()
    return stem.startswith(re.sub(r"[-_.]+", "-", f"{pin.name}-{pin.version}").lower() + "-")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _requirement(pin: lock.Pin) -> str:
    return f"{pin.name}=={pin.version}" if pin.version else f"{pin.name} @ {pin.source}"


def _for_package(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment of a package: pip packages only, which can be locked."""
    if spec.user_managed:
        raise WebserviceException(
            "a user-managed Python cannot be packaged: its packages are not known",
            hint="Give an InferenceConfig with an environment of packages.",
        )
    if spec.conda_packages:
        raise WebserviceException(
            f"conda packages cannot be packaged: {', '.join(spec.conda_packages[:5])}",
            cause="A package is installed with pip.",
            hint="Give an InferenceConfig with an environment of pip packages.",
        )
    # A service does not need what training on several nodes needs.
    return replace(spec, horovod="", open_mpi=False)


def _build_environment(workspace: Workspace, spec: EnvironmentSpec) -> Path:
    answer = workspace.connection.call("environments.build", spec=to_plain(spec), sources=source_variables(os.environ))
    return Path(answer["folder"])


def _write(
    workspace: Workspace, spec: ServiceSpec, models: Sequence[Model], requirements: Requirements, about: dict[str, Any]
) -> str:
    """Writes the folder under another name first, so that it is either complete or absent."""
    name = uuid.uuid4().hex[:16]
    contents = texts.Contents(
        name=spec.models[0].partition(":")[0].lower() if spec.models else "service",
        entry_script=spec.code.entry_script,
        folder_name=spec.code.folder_name,
        models=spec.models,
        python=about["python"],
        variables=spec.environment_variables,
        local=requirements.local,
    )
    making = _packages(workspace) / f".making-{name}"
    try:
        files = making / "files"
        files.mkdir(parents=True)
        _lay_out(workspace, spec, models, files)
        _write_texts(files, contents, requirements)
        (making / _ABOUT).write_text(json.dumps(about))
        log = log_of(WorkspaceFolder(workspace.path).environments, str(about["environment"]))
        (making / "log.txt").write_text(log.read_text() if log.exists() else "its packages were installed before\n")
        durable.flush_below(making)
        making.rename(_packages(workspace) / name)
        durable.flush({_packages(workspace), workspace.path})
    except OSError as error:
        raise WebserviceException("the package cannot be written", cause=str(error)) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return name


def _lay_out(workspace: Workspace, spec: ServiceSpec, models: Sequence[Model], files: Path) -> None:
    own = WorkspaceFolder(workspace.path)
    if spec.code.folder_name:
        (files / texts.CODE).mkdir()
    lay_out(own.snapshot(spec.code.snapshot_id), own.blobs, files / texts.CODE / spec.code.folder_name)
    for model in models:
        model.download(files / texts.MODELS / model.name / str(model.version))
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SERVER, files / "server", ignore=unwanted)
    shutil.copytree(ensure_kit(workspace.path), files / "kit", ignore=unwanted)


def _write_texts(files: Path, contents: texts.Contents, requirements: Requirements) -> None:
    (files / "app.py").write_text(texts.APP)
    (files / "server.json").write_text(texts.server_settings(contents))
    (files / "requirements.lock").write_text(requirements.text)
    (files / "Dockerfile").write_text(texts.dockerfile(contents))
    (files / ".dockerignore").write_text(texts.IGNORED)
    (files / "README.md").write_text(texts.readme(contents))
    (files / "start.sh").write_text(texts.START)
    (files / "start.sh").chmod(0o755)


def _copy_writable(source: str, target: str) -> str:
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return target


def _packages(workspace: Workspace) -> Path:
    return Path(workspace.path) / "packages"

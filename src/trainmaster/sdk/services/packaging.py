"""`Model.package`: a service as a folder that runs with plain uvicorn anywhere, or as an image."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from trainmaster.environments.containers import EngineName, find_engine
from trainmaster.environments.sources import mask_passwords, pip_settings, source_variables
from trainmaster.job.errors import DatastoreException, WebserviceException
from trainmaster.sdk.long_work import follow_work
from trainmaster.sdk.services.deploying import make_spec, resolve_models
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.package_texts import CERTIFICATES, PIP
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.terminal import clean, is_terminal

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_IMAGE = "package"
# The settings of pip that say where packages come from.
_OF_BUILD = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "timeout", "proxy")


class ModelPackage:
    """A service in a folder. `save` copies the folder, `pull` builds an image from it."""

    def __init__(self, workspace: Workspace, operation_id: str, environment: Any) -> None:
        self.workspace = workspace
        self.operation_id = operation_id
        self.environment = environment
        self.update_creation_state()

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
        spec = make_spec(workspace, resolve_models(workspace, models), inference_config)
        name = follow_work(
            workspace,
            "packages.create",
            spec=to_plain(replace(spec, environment=_for_package(spec.environment))),
            image=f"{image_name or _IMAGE}:{image_label or 'latest'}",
            dockerfile=bool(generate_dockerfile),
            sources=source_variables(os.environ),
        )
        return ModelPackage(workspace, name, getattr(inference_config, "environment", None))

    @property
    def state(self) -> str:
        """v1's state of a package. It is always complete."""
        return "Succeeded"

    @property
    def location(self) -> str:
        """The folder in the workspace; after `pull`, the image."""
        return str(self._about["image"] if self._about.get("built") else self._about["folder"])

    @property
    def models(self) -> list[str]:
        """`name:version` of each model in it."""
        return list(self._about["models"])

    def update_creation_state(self) -> None:
        """Reads the package again."""
        self._about: dict[str, Any] = self._call("packages.get")

    def wait_for_creation(self, show_output: bool = False) -> None:
        """Returns at once: `Model.package` has already waited. `show_output` prints the log."""
        if show_output:
            logs = self.get_logs()
            print(clean(logs) if is_terminal(sys.stdout) else logs, end="")
            print(f"Package creation {self.state}: {self.location}")

    def get_logs(self, decode: bool = True, offset: int = 0) -> Any:
        """The log of installing and locking its packages; bytes without `decode`."""
        text = str(self._call("packages.log")).encode()[offset:]
        return text.decode(errors="replace") if decode else text

    def save(self, output_directory: str | os.PathLike[str]) -> None:
        """Copies it into a folder that is empty or does not exist yet."""
        target = Path(output_directory)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise WebserviceException(f"{target} already exists and is not empty", hint="Give a new folder.")
        files = self.workspace.backend.open_package(self.operation_id)
        try:
            for file, is_executable in files.list_all():
                path = target / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                files.get(file.path, path)
                path.chmod(0o755 if is_executable else 0o644)
        except (OSError, DatastoreException) as error:
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
        with tempfile.TemporaryDirectory() as secrets, self._open_folder() as folder:
            options = build_options(engine.name, pip_settings(os.environ), Path(secrets))
            done = subprocess.run(
                [engine.program, "build", *options, "--tag", self._about["image"], folder],
                env={**os.environ, "DOCKER_BUILDKIT": "1"},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        log = mask_passwords(done.stdout + done.stderr)
        self._call("packages.note_build", log=log, built=not done.returncode)
        if done.returncode:
            raise WebserviceException(
                f"{engine.name} cannot build the image",
                cause="\n".join(log.splitlines()[-20:]),
                hint="save(folder) writes the folder with the Dockerfile, which you can change or build elsewhere.",
            )
        self.update_creation_state()

    @contextlib.contextmanager
    def _open_folder(self) -> Iterator[str]:
        """The files of the package in a folder of this machine."""
        own = self.workspace.backend.open_package(self.operation_id).local_path()
        if own is not None:
            yield own
            return
        with tempfile.TemporaryDirectory(prefix="trainmaster-") as folder:
            self.save(folder)
            yield folder

    def _call(self, op: str, **args: Any) -> Any:
        return self.workspace.connection.call(op, name=self.operation_id, **args)

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
        kept["cert"] = f"/run/secrets/{CERTIFICATES}"
        options += ["--secret", f"id={CERTIFICATES},src={settings['cert']}"]
    if kept:
        file = secrets / "pip.conf"
        file.touch(0o600)
        file.write_text("[global]\n" + "".join(f"{name} = {' '.join(kept[name].split())}\n" for name in kept))
        options += ["--secret", f"id={PIP},src={file}"]
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

"""Runs a process in a container image: finds the container engine and builds its command line.

docker and podman share most options; apptainer has its own and runs the process as a child. Folders are mounted at the
paths they have outside, so every path in a variable or argument stays valid. An image has its own Python and packages.
If the run requests packages, an environment is built outside and mounted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainmaster.environments.pythons import newer_for, python_for
from trainmaster.job.agent.tree import INSIDE_VARIABLE
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec

EngineName = Literal["docker", "podman", "apptainer"]

SETTING = "TRAINMASTER_CONTAINER_ENGINE"
"""The engine to use if there are several: docker, podman or apptainer."""
_QUESTIONS: dict[EngineName, tuple[str, ...]] = {
    "docker": ("info", "--format", "{{.ServerVersion}}"),
    "podman": ("info", "--format", "{{.Version.Version}}"),
    "apptainer": ("version",),
}
_ANSWER_SECONDS = 20.0
# The variables by which the engines' programs find their service and settings.
_OF_ENGINES = re.compile(r"(DOCKER|CONTAINER|CONTAINERS|APPTAINER|SINGULARITY)_\w+|XDG_RUNTIME_DIR|REGISTRY_AUTH_FILE")


@dataclass(frozen=True)
class Engine:
    """A working container engine."""

    name: EngineName
    program: str
    version: str = ""


@dataclass(frozen=True)
class Mount:
    """A folder that the process sees at the same path inside the container."""

    path: str
    read_only: bool = False


@dataclass(frozen=True)
class Container:
    """What the containers of all processes of a run have in common."""

    engine: Engine
    mounts: tuple[Mount, ...]
    user: str
    """`uid:gid`: files that a process writes belong to the user who submitted the run."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables for the engine's program."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a built environment sets for the processes inside."""
    programs: str = ""
    """The `bin` folder of that environment."""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """The image's PATH; until it is known, a common default."""

    @property
    def own(self) -> dict[str, str]:
        """Variables of the processes inside that are not secret."""
        # The user of this machine has no home folder in the image.
        path = {"PATH": f"{self.programs}:{self.path}"} if self.programs else {}
        return {"HOME": "/tmp", **self.environment, **path}


@dataclass(frozen=True)
class Command:
    """The command that starts a process in a container."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    remove: tuple[str, ...] = ()
    """The command that removes the container by force; empty if the container ends with its process."""


def check(spec: EnvironmentSpec, environ: Mapping[str, str]) -> None:
    """Refuse images that cannot run on this machine, and packages that cannot be used in an image."""
    container = spec.container
    if container is None:
        return
    engine, found = find_engine(environ)
    if engine is None:
        raise EnvironmentException(
            f"the run uses image {container.image!r}, but no container engine runs on this machine",
            cause=found,
            hint="To run without an image, remove custom_docker_image and list the packages in pip_packages or "
            "conda_packages, or use your own Python with user_managed=True.",
        )
    if not spec.is_of_image and not spec.conda_packages and not newer_for(spec):
        python_for(spec)


def find_engine(environ: Mapping[str, str]) -> tuple[Engine | None, str]:
    """Find a working engine; if there is none, also say why. A client without a running service does not count."""
    chosen = environ.get(SETTING, "").strip().lower()
    told = []
    for name, question in _QUESTIONS.items():
        if chosen and name != chosen:
            continue
        program = shutil.which(name, path=environ.get("PATH"))
        if program is None and name == "apptainer":
            # apptainer's name until 2021.
            program = shutil.which("singularity", path=environ.get("PATH"))
        if program is None:
            told.append(f"{name}: not installed")
            continue
        answers, said = _ask((program, *question), environ)
        if answers:
            return Engine(name, program, said), ""
        told.append(f"{name}: {said}")
    return None, "; ".join(told) or f"{SETTING} is not a known engine: {chosen!r}"


def _ask(command: Sequence[str], environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether an engine works, and its version or its error."""
    try:
        asked = subprocess.run(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False, f"did not answer within {_ANSWER_SECONDS:g} s"
    except OSError as error:
        return False, str(error.strerror)
    if asked.returncode == 0:
        return True, asked.stdout.strip().partition("\n")[0]
    lines = (asked.stderr.strip() or asked.stdout.strip()).splitlines()
    return False, lines[-1] if lines else f"ended with {asked.returncode}"


def mounts(read: Iterable[str], written: Iterable[str]) -> tuple[Mount, ...]:
    """The folders to mount; a folder inside another one comes after it.

    >>> [mount.path for mount in mounts(["/ws", "/ws", "/data"], ["/ws/runs/r1", "/data"])]
    ['/data', '/ws', '/ws/runs/r1']
    """
    writable = set(written)
    return tuple(Mount(path, read_only=path not in writable) for path in sorted({*read, *writable}))


def engine_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which an engine's program finds its service.

    >>> engine_variables({"DOCKER_HOST": "unix:///run/docker.sock", "PATH": "/bin"})
    {'DOCKER_HOST': 'unix:///run/docker.sock'}
    """
    return {name: value for name, value in environ.items() if _OF_ENGINES.fullmatch(name)}


def inside(
    container: Container,
    spec: ContainerSpec,
    name: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    passed: Sequence[str],
    gpus: bool = False,
) -> Command:
    """The command that runs `argv` in the image; `passed` names the variables of `env` to set inside.

    Values are passed in the environment, never on the command line, which every user can read.
    """
    outside = {**env, **container.variables}
    own = {each: value for each, value in container.own.items() if each not in passed}
    # Only processes inside have this variable: agents use it to tell them from the engine's own programs.
    own[INSIDE_VARIABLE] = spec.image
    if container.engine.name == "apptainer":
        return Command(
            (*_apptainer(container, spec, cwd, gpus), *argv),
            {**outside, **_for_apptainer({**own, **{each: env[each] for each in passed}})},
        )
    options = _docker(container, spec, name, cwd, gpus)
    variables = [word for each in (*passed, *map("=".join, own.items())) for word in ("--env", each)]
    return Command((*options, *variables, *spec.arguments, spec.image, *argv), outside, _remove(container.engine, name))


def _docker(container: Container, spec: ContainerSpec, name: str, cwd: str, gpus: bool) -> list[str]:
    """The options of docker and podman, which differ in a few."""
    podman = container.engine.name == "podman"
    # With the host's process ids agents find the processes, and the container needs no init process. The output goes
    # to the run's log, so the engine does not need to keep it.
    options = [container.engine.program, "run", "--rm", "--name", name, "--network", "host", "--pid", "host"]
    options += ["--log-driver", "none"]
    options += ["--shm-size", spec.shm_size] if spec.shm_size else []
    # Do not wait when a container is removed by force. (podman before 4 accepts this only here.)
    options += ["--stop-timeout", "0"] if podman else []
    if podman and not container.user.startswith("0:"):
        # Rootless podman would otherwise map the user to root inside.
        options += ["--userns", "keep-id"]
    options += ["--user", container.user, "--workdir", cwd]
    for mount in container.mounts:
        read_only = ",readonly" if mount.read_only else ""
        options += ["--mount", f"type=bind,source={mount.path},target={mount.path}{read_only}"]
    if gpus:
        options += ["--device", "nvidia.com/gpu=all"] if podman else ["--gpus", "all"]
    return options


def _remove(engine: Engine, name: str) -> tuple[str, ...]:
    return (engine.program, "rm", "--force", *(("--ignore",) if engine.name == "podman" else ()), name)


def _for_apptainer(variables: Mapping[str, str]) -> dict[str, str]:
    """apptainer sets variables inside from prefixed variables outside."""
    return {f"APPTAINERENV_{name}": value for name, value in variables.items()}


def _apptainer(container: Container, spec: ContainerSpec, cwd: str, gpus: bool) -> list[str]:
    options = [container.engine.program, "exec", "--cleanenv", "--no-home", "--pwd", cwd]
    for mount in container.mounts:
        options += ["--bind", f"{mount.path}:{mount.path}{':ro' if mount.read_only else ''}"]
    if gpus:
        options.append("--nv")
    image = spec.image
    if "://" not in image and not image.endswith(".sif") and not os.path.isabs(image):
        image = f"docker://{image}"
    return [*options, *spec.arguments, image]

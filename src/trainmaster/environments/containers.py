"""Running a process in a container image: which engine there is, and the command line for it.

docker and podman are told by options; apptainer has options of its own and runs the process as a child. Folders are
mounted under the paths they have outside, so that every path in a variable or an argument stays true. An image brings
its own Python and packages; where packages are asked for, an environment of them is built outside and seen inside.
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
"""Which engine to use where there are several: docker, podman or apptainer."""
_QUESTIONS: dict[EngineName, tuple[str, ...]] = {
    "docker": ("info", "--format", "{{.ServerVersion}}"),
    "podman": ("info", "--format", "{{.Version.Version}}"),
    "apptainer": ("version",),
}
_ANSWER_SECONDS = 20.0
# How the engines' own programs find their service and their settings.
_OF_ENGINES = re.compile(r"(DOCKER|CONTAINER|CONTAINERS|APPTAINER|SINGULARITY)_\w+|XDG_RUNTIME_DIR|REGISTRY_AUTH_FILE")


@dataclass(frozen=True)
class Engine:
    """A container engine that answers."""

    name: EngineName
    program: str
    version: str = ""


@dataclass(frozen=True)
class Mount:
    """A folder of the machine that the process sees under the same path."""

    path: str
    read_only: bool = False


@dataclass(frozen=True)
class Container:
    """What all processes of a run have in common inside their containers."""

    engine: Engine
    mounts: tuple[Mount, ...]
    user: str
    """`uid:gid`: what a process writes belongs to who submitted it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For the engine's own program."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What a built environment sets for the processes inside."""
    programs: str = ""
    """The folder of the programs of that environment."""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """The image's own PATH; until it is known, the one that most have."""

    @property
    def own(self) -> dict[str, str]:
        """Variables of the processes inside that nobody has to keep secret."""
        # The user of this machine has no home in the image.
        path = {"PATH": f"{self.programs}:{self.path}"} if self.programs else {}
        return {"HOME": "/tmp", **self.environment, **path}


@dataclass(frozen=True)
class Command:
    """A process as the machine starts it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    remove: tuple[str, ...] = ()
    """The command that takes its container away, whatever it is doing; none where that ends with its process."""


def check(spec: EnvironmentSpec, environ: Mapping[str, str]) -> None:
    """Refuses an image that cannot be run here, and packages that cannot be seen in one."""
    container = spec.container
    if container is None:
        return
    engine, found = find_engine(environ)
    if engine is None:
        raise EnvironmentException(
            f"image {container.image!r} was asked for, and no container engine runs on this machine",
            cause=found,
            hint="Without an image: leave custom_docker_image out and name the packages in pip_packages or "
            "conda_packages, or use a Python of your own with user_managed=True.",
        )
    if not spec.is_of_image and not spec.conda_packages and not newer_for(spec):
        python_for(spec)


def find_engine(environ: Mapping[str, str]) -> tuple[Engine | None, str]:
    """The engine to use, and what was found on the way. A client whose service does not run is none."""
    chosen = environ.get(SETTING, "").strip().lower()
    told = []
    for name, question in _QUESTIONS.items():
        if chosen and name != chosen:
            continue
        program = shutil.which(name, path=environ.get("PATH"))
        if program is None and name == "apptainer":
            # Its name until 2021.
            program = shutil.which("singularity", path=environ.get("PATH"))
        if program is None:
            told.append(f"{name}: not installed")
            continue
        answers, said = _ask((program, *question), environ)
        if answers:
            return Engine(name, program, said), ""
        told.append(f"{name}: {said}")
    return None, "; ".join(told) or f"{SETTING} names no engine: {chosen!r}"


def _ask(command: Sequence[str], environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether an engine answers, and what: its version, or what is wrong."""
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
    """Folders that are seen in a container; those that lie in others come after them.

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
    """`argv` as a command that runs it in the image; `passed` are the variables of `env` that are seen inside.

    Their values travel in the environment and never on the command line, which everybody can read.
    """
    outside = {**env, **container.variables}
    own = {each: value for each, value in container.own.items() if each not in passed}
    # The engine's programs do not have it: by this, agents tell them from what runs inside.
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
    """The options that docker and podman share, and the two in which they differ."""
    podman = container.engine.name == "podman"
    # Its processes have the numbers that they have outside: agents find them, and it needs no init of its own. What is
    # printed comes to the run's log and is not kept by the engine as well.
    options = [container.engine.program, "run", "--rm", "--name", name, "--network", "host", "--pid", "host"]
    options += ["--log-driver", "none"]
    options += ["--shm-size", spec.shm_size] if spec.shm_size else []
    # Who removes it by force has waited already. (Releases before 4 cannot be told so then.)
    options += ["--stop-timeout", "0"] if podman else []
    if podman and not container.user.startswith("0:"):
        # Without root, podman would show the user as root inside.
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
    """It takes what is to be set inside from variables outside."""
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

"""What options for docker that a run names mean for a pod. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trainmaster.job.errors import ComputeTargetException

_FLAGS = ("--privileged", "--init", "--rm")
_VALUES = {"-e": "--env", "-u": "--user", "-m": "--memory"}
_KNOWN = ("--cap-add", "--cpus", "--env", "--gpus", "--ipc", "--memory", "--shm-size", "--user")
_HINT = "Set it for all runs of the target with the option --pod-patch, which can change every part of a pod."


@dataclass(frozen=True)
class DockerArguments:
    """Options of docker that have a counterpart in a pod."""

    shm_size: str = ""
    memory: str = ""
    cpus: str = ""
    user: str = ""
    env: dict[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    is_privileged: bool = False
    has_host_ipc: bool = False


def read_arguments(arguments: Sequence[str]) -> DockerArguments:
    """The options of a run for docker; refuses one that a pod cannot have.

    >>> read_arguments(["--shm-size=8g", "--env", "A=1"]).env
    {'A': '1'}
    """
    found = DockerArguments()
    left = list(arguments)
    while left:
        name, equals, value = left.pop(0).partition("=")
        name = _VALUES.get(name, name)
        if name in _FLAGS:
            found = replace(found, is_privileged=found.is_privileged or name == "--privileged")
            continue
        if name not in _KNOWN:
            raise ComputeTargetException(f"docker's option '{name}' has no counterpart on Kubernetes", hint=_HINT)
        if not equals and not left:
            raise ComputeTargetException(f"docker's option '{name}' has no value")
        found = _add(found, name, value if equals else left.pop(0))
    return found


def _add(found: DockerArguments, name: str, value: str) -> DockerArguments:
    if name == "--env":
        variable, _, text = value.partition("=")
        return replace(found, env={**found.env, variable: text})
    if name == "--cap-add":
        return replace(found, capabilities=(*found.capabilities, value.upper().removeprefix("CAP_")))
    if name == "--ipc":
        return replace(found, has_host_ipc=value == "host")
    if name == "--gpus":
        # The target says how many GPUs a pod has.
        return found
    if name == "--shm-size":
        return replace(found, shm_size=value)
    if name == "--memory":
        return replace(found, memory=value)
    if name == "--cpus":
        return replace(found, cpus=value)
    return replace(found, user=value)

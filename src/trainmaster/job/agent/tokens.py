"""Tokens in a plan for what is unknown before there are nodes. The node replaces them when it executes the plan."""

import os

from trainmaster.job.agent import jsonfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

_HOST = "{trainmaster:host:%d}"
_GPU = "{trainmaster:gpu:%d}"
_THREADS = "{trainmaster:threads:%d}"
_MOST_MATES = 128
_MARK = "{trainmaster:"
# Set by the launcher of another machine for the GPUs that the node may use.
_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def host_token(number: int) -> str:
    """Stands for the name of the host of node `number`.

    >>> host_token(2)
    '{trainmaster:host:2}'
    """
    return _HOST % number


def gpu_token(number: int) -> str:
    """Stands for the GPU `number` among those assigned to the node, whatever its name there."""
    return _GPU % number


def threads_token(mates: int) -> str:
    """Stands for the share of a node's CPUs that one of `mates` equal processes gets."""
    return _THREADS % min(mates, _MOST_MATES)


def fill_plan(data: "Any") -> "Any":
    """The plan with its tokens replaced. Raises OSError or ValueError if the names of its hosts cannot be read."""
    if not isinstance(data, dict) or not data.get("hosts"):
        return data
    hosts = jsonfile.read(data["hosts"])["hosts"]
    return replace_tokens(data, token_values(hosts, gpus_of_node(os.environ), cpus_of_node(os.environ)))


def gpus_of_node(environment: "Mapping[str, str]") -> "list[str]":
    """The GPUs assigned to this node.

    >>> gpus_of_node({"CUDA_VISIBLE_DEVICES": "2,3"})
    ['2', '3']
    """
    return [each for each in environment.get(_GPUS_VARIABLE, "").split(",") if each]


def cpus_of_node(environment: "Mapping[str, str]") -> int:
    """The number of CPUs of this node that the run may use."""
    count = environment.get("SLURM_CPUS_ON_NODE", "")
    return int(count) if count.isdigit() else len(os.sched_getaffinity(0))


def token_values(hosts: "Iterable[str]", gpus: "Iterable[str]", cpus: int = 1) -> "dict[str, str]":
    """The text for each token."""
    values = {_HOST % number: host for number, host in enumerate(hosts)}
    values.update({_GPU % number: gpu for number, gpu in enumerate(gpus)})
    values.update({_THREADS % mates: str(max(1, cpus // mates)) for mates in range(2, _MOST_MATES + 1)})
    return values


def replace_tokens(data: "Any", values: "Mapping[str, str]") -> "Any":
    """`data` with the tokens in every text replaced; unknown tokens stay.

    >>> replace_tokens({"a": ["{trainmaster:host:1}:80", 7]}, token_values(["x", "y"], []))
    {'a': ['y:80', 7]}
    """
    if isinstance(data, str):
        return _replace_in_text(data, values)
    if isinstance(data, list):
        return [replace_tokens(item, values) for item in data]
    if isinstance(data, dict):
        return {name: replace_tokens(value, values) for name, value in data.items()}
    return data


def _replace_in_text(text: str, values: "Mapping[str, str]") -> str:
    if _MARK not in text:
        return text
    for token, value in values.items():
        text = text.replace(token, value)
    return text

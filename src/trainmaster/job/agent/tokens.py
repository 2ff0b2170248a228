"""What a plan cannot know before there are nodes: it has tokens for it, which are filled in where it is carried out."""

import os

from trainmaster.job.agent import jsonfile

_HOST = "{trainmaster:host:%d}"
_GPU = "{trainmaster:gpu:%d}"
_THREADS = "{trainmaster:threads:%d}"
_MOST_MATES = 128
_MARK = "{trainmaster:"
# What the launcher of another machine may have told of its own GPUs.
_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def host_token(number):
    """Stands for the name of the host of node `number`.

    >>> host_token(2)
    '{trainmaster:host:2}'
    """
    return _HOST % number


def gpu_token(number):
    """Stands for the GPU `number` among those that a node was given, whatever it is called there."""
    return _GPU % number


def threads_token(mates):
    """Stands for the CPUs of a node that one of `mates` equal processes there has."""
    return _THREADS % min(mates, _MOST_MATES)


def fill_plan(data):
    """The same plan without tokens. Raises OSError or ValueError if the names of its hosts cannot be read."""
    if not isinstance(data, dict) or not data.get("hosts"):
        return data
    hosts = jsonfile.read(data["hosts"])["hosts"]
    return replace_tokens(data, token_values(hosts, gpus_of_node(os.environ), cpus_of_node(os.environ)))


def gpus_of_node(environment):
    """The GPUs that this node was given.

    >>> gpus_of_node({"CUDA_VISIBLE_DEVICES": "2,3"})
    ['2', '3']
    """
    return [each for each in environment.get(_GPUS_VARIABLE, "").split(",") if each]


def cpus_of_node(environment):
    """How many CPUs of this node the run was given."""
    told = environment.get("SLURM_CPUS_ON_NODE", "")
    return int(told) if told.isdigit() else len(os.sched_getaffinity(0))


def token_values(hosts, gpus, cpus=1):
    """Token to text."""
    known = {_HOST % number: host for number, host in enumerate(hosts)}
    known.update({_GPU % number: gpu for number, gpu in enumerate(gpus)})
    known.update({_THREADS % mates: str(max(1, cpus // mates)) for mates in range(2, _MOST_MATES + 1)})
    return known


def replace_tokens(data, known):
    """Every text in `data` with its tokens replaced; those that are not known stay as they are.

    >>> replace_tokens({"a": ["{trainmaster:host:1}:80", 7]}, token_values(["x", "y"], []))
    {'a': ['y:80', 7]}
    """
    if isinstance(data, str):
        return _replace_in_text(data, known)
    if isinstance(data, list):
        return [replace_tokens(item, known) for item in data]
    if isinstance(data, dict):
        return {name: replace_tokens(value, known) for name, value in data.items()}
    return data


def _replace_in_text(text, known):
    if _MARK not in text:
        return text
    for token, value in known.items():
        text = text.replace(token, value)
    return text

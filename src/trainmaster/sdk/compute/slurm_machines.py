"""The machines of a Slurm cluster and their states, from the output of sinfo. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

QUESTION = ("--noheader", "--Node", "--format=%N|%T|%P|%c|%m|%G|%E")
_COLUMNS = 7
# Signs that follow the word for a state.
_SIGNS = {
    "*": "not responding",
    "~": "powered off",
    "#": "powering up",
    "!": "to be powered off",
    "%": "powering off",
    "$": "reserved for maintenance",
    "@": "to be rebooted",
    "^": "rebooting",
    "-": "planned for a job",
}


@dataclass(frozen=True)
class SlurmMachine:
    """One machine of a Slurm cluster."""

    name: str
    state: str
    """Slurm's word: idle, mixed, allocated, drained, down, ..."""
    partitions: tuple[str, ...]
    cpus: int
    gpus: int
    memory_gb: float
    reason: str
    """Why it takes no jobs, if an administrator gave a reason."""


def parse(text: str) -> list[SlurmMachine]:
    """The machines in the output of sinfo, which has one line for each machine and partition.

    >>> parse("n1|idle|main*|4|4000|gpu:2|none\\nn1|idle|long|4|4000|gpu:2|none\\nn2|down*|main*|4|4000|(null)|broken")
    ... # doctest: +NORMALIZE_WHITESPACE
    [SlurmMachine(name='n1', state='idle', partitions=('main', 'long'), cpus=4, gpus=2, memory_gb=3.9, reason=''),
     SlurmMachine(name='n2', state='down, not responding', partitions=('main',), cpus=4, gpus=0, memory_gb=3.9,
     reason='broken')]
    """
    found: dict[str, SlurmMachine] = {}
    for line in text.splitlines():
        words = line.split("|", _COLUMNS - 1)
        if len(words) != _COLUMNS:
            continue
        name, state, partition, cpus, memory, gres, reason = (word.strip() for word in words)
        partitions = (*(found[name].partitions if name in found else ()), partition.rstrip("*"))
        told = "" if reason.lower() == "none" else reason
        size = round(_number(memory) / 1024, 1)
        found[name] = SlurmMachine(name, describe_state(state), partitions, _number(cpus), gpus_of(gres), size, told)
    return [replace(each, partitions=tuple(dict.fromkeys(each.partitions))) for each in found.values()]


def describe_state(state: str) -> str:
    """Slurm's word for a state, and the meaning of the sign that follows it.

    >>> describe_state("idle"), describe_state("down*"), describe_state("idle~")
    ('idle', 'down, not responding', 'idle, powered off')
    """
    word = state.rstrip("".join(_SIGNS))
    return ", ".join([word, *(_SIGNS[sign] for sign in state[len(word) :])])


def gpus_of(gres: str) -> int:
    """The number of GPUs in a list of devices.

    >>> gpus_of("gpu:a100:4(S:0-1),shard:8"), gpus_of("(null)"), gpus_of("gpu:2")
    (4, 0, 2)
    """
    total = 0
    for part in gres.split(","):
        kind, *rest = part.partition("(")[0].split(":")
        if kind == "gpu":
            total += int(rest[-1]) if rest and rest[-1].isdigit() else 1
    return total


def _number(text: str) -> int:
    digits = text.rstrip("+")
    return int(digits) if digits.isdigit() else 0

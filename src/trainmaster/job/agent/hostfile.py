"""Writes the files that launchers of other projects read: `hostfile`, and `deepspeed_env` beside it."""

import os

from trainmaster.job.agent import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping, Tuple

HOSTFILE = "hostfile"
DEEPSPEED = "deepspeed_env"


class Hostfile(object):
    """What the files have in them, and their folder. All agents of a run write the same."""

    def __init__(self, folder: str, hosts: "list[Tuple[str, int]]", variables: "Mapping[str, str]") -> None:
        self.folder = folder
        self.hosts = hosts
        self.variables = variables

    def write(self) -> None:
        """Writes both files. Raises OSError."""
        os.makedirs(self.folder, exist_ok=True)
        texts = {HOSTFILE: host_lines(self.hosts), DEEPSPEED: variable_lines(self.variables)}
        for name, text in texts.items():
            # Variables may contain passwords.
            path = os.path.join(self.folder, name)
            durable.write_unflushed(path, text.encode("utf-8", "surrogateescape"), 0o600)


def host_lines(hosts: "Iterable[Tuple[str, int]]") -> str:
    """One line for each machine: DeepSpeed refuses a host that appears twice.

    >>> host_lines([("a", 2), ("b", 2), ("a", 1)])
    'a slots=3\\nb slots=2\\n'
    """
    slots: "dict[str, int]" = {}
    for name, count in hosts:
        slots[name] = slots.get(name, 0) + count
    return "".join("{} slots={}\n".format(name, count) for name, count in slots.items())


def variable_lines(variables: "Mapping[str, str]") -> str:
    """`NAME=value` for every value that fits on a line.

    >>> variable_lines({"B": "x=1", "A": "two\\nlines"})
    'B=x=1\\n'
    """
    return "".join("{}={}\n".format(name, value) for name, value in variables.items() if "\n" not in value)

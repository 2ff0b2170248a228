"""The command line of a process, and the name of its log."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmaster.shared.job_spec import JobSpec

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


def command_line(spec: JobSpec, python: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """What is executed: the script with its arguments, or the user's own command through a shell, as in v1."""
    if spec.command:
        return ("/bin/sh", "-c", " ".join((*spec.command, *spec.arguments)))
    return (python, spec.script, *(expand(argument, variables) for argument in spec.arguments))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}` replaced by the job's variables; unknown names stay as they are.

    >>> expand("--data=$AZUREML_DATAREFERENCE_d/train", {"AZUREML_DATAREFERENCE_d": "/data"})
    '--data=/data/train'
    """
    if "$" not in text:
        return text
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), text)


def log_name(rank: int, processes: int) -> str:
    """v1's name for what process `rank` prints."""
    return "70_driver_log.txt" if processes == 1 else f"70_driver_log_{rank}.txt"

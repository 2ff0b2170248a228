"""The command line of a process, and the name of its log."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmaster.shared.job_spec import JobSpec

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


def command_line(spec: JobSpec, python: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The script with its arguments, or the user's own command through a shell, as in v1."""
    if spec.command:
        return ("/bin/sh", "-c", " ".join((*spec.command, *spec.arguments)))
    return (*_program(spec, python), spec.script, *(expand(argument, variables) for argument in spec.arguments))


def _program(spec: JobSpec, python: str) -> tuple[str, ...]:
    """What stands before the script on the command line."""
    if spec.entry == "program":
        return spec.program
    if spec.entry == "module":
        return (python, "-m")
    # Our program runs the cells in a kernel of the same Python.
    return (python, "-m", "trainmaster.job.notebook") if spec.entry == "notebook" else (python,)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replaces `$NAME` and `${NAME}` by the job's variables; unknown names stay as they are.

    >>> expand("--data=$AZUREML_DATAREFERENCE_d/train", {"AZUREML_DATAREFERENCE_d": "/data"})
    '--data=/data/train'
    """
    if "$" not in text:
        return text
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)


def log_name(rank: int, processes: int) -> str:
    """v1's name for the log of process `rank`."""
    return "70_driver_log.txt" if processes == 1 else f"70_driver_log_{rank}.txt"

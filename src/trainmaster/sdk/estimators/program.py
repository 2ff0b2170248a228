"""What a run starts: a script, a notebook, a module or a command."""

from __future__ import annotations

from typing import Any, NamedTuple

from trainmaster.job.errors import ExperimentExecutionException, UserErrorException
from trainmaster.sdk.estimators import values
from trainmaster.sdk.estimators.arguments import Arguments, from_list
from trainmaster.sdk.estimators.compile import Program
from trainmaster.sdk.estimators.source import find_entry, find_module, source_folder


class Names(NamedTuple):
    """How a class calls the parameters that say what runs."""

    script: str
    module: str


ENTRY_NAMES = Names("entry_script", "entry_module")


def find_program(
    source_directory: str, names: Names, script: Any, module: Any, command: Any, arguments: Arguments
) -> Program:
    """The one of script, module and command that is given, checked."""
    check_exclusive(names, script, module, command, arguments.words)
    folder = source_folder(source_directory)
    if command:
        words = command_words(command)
        return Program(str(folder), command=words.words, arguments=Arguments((), words.data))
    if module:
        return Program(str(folder), find_module(folder, names.module, module), arguments=arguments)
    if not script:
        raise ExperimentExecutionException(
            f"{names.script} is missing",
            hint=f"Write {names.script}='train.py', a path inside source_directory, or {names.module}='package.train'.",
        )
    return Program(str(folder), find_entry(folder, names.script, script), arguments=arguments)


def check_exclusive(names: Names, script: Any, module: Any, command: Any, arguments: Any) -> None:
    """Refuses two programs at once, and arguments of a command, which has them in itself."""
    if script and module:
        raise UserErrorException(f"{names.script} cannot be given together with {names.module}", hint="Leave one out.")
    if command and (script or module or arguments):
        what = names.script if script else names.module if module else "arguments"
        raise UserErrorException(
            f"command cannot be given together with {what}",
            hint="Write the whole command line in command, or use a script and arguments.",
        )


def command_words(command: Any) -> Arguments:
    """The words of a command; a text is one of them, because a shell reads it."""
    if isinstance(command, str):
        return from_list("command", [values.text("command", command)])
    return from_list("command", values.items("command", command))

"""Finding the command and reading its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from trainmaster.cli.commands import Command, all_commands, groups
from trainmaster.job.errors import UserErrorException

Options = argparse.Namespace


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for the options, so that most fit on a line with what they do."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class Parser(argparse.ArgumentParser):
    """An argparse parser whose mistakes are errors of ours."""

    def error(self, message: str) -> NoReturn:
        hint = f"{self._guess(message)}'{self.prog} --help' shows how it is used."
        if message.startswith("unrecognized arguments") and self.get_default("arguments") is not None:
            hint = f"What is meant for the script stands behind two dashes: -- --lr 0.1\n{hint}"
        raise UserErrorException(message, hint=hint)

    def _guess(self, message: str) -> str:
        """The option that was meant, by its beginning or its letters."""
        from trainmaster.shared.spelling import closest

        prefix, _, given = message.partition(": ")
        word = given.split()[0].partition("=")[0].replace("_", "-") if given.split() else ""
        if prefix != "unrecognized arguments" or not word.startswith("--"):
            return ""
        word, known = word[2:], [option[2:] for option in self._option_string_actions if option.startswith("--")]
        longer = [option for option in known if word.startswith(f"{option}-") or option.startswith(word)]
        close = longer[0] if longer else closest(word, known)
        return f"Did you mean --{close}? " if close else ""


def parse(argv: Sequence[str]) -> tuple[Callable[[Options], int], Options]:
    """The function of the command that `argv` names, and its options."""
    command, rest = find_command(argv)
    module = import_module(command.module if "." in command.module else f"trainmaster.cli.{command.module}")
    function: Callable[[Options], int] = getattr(module, command.function)
    parser = Parser(prog=f"trainmaster {command.name}", formatter_class=_Formatter, allow_abbrev=False)
    getattr(module, f"{command.function}_arguments")(parser)
    parser.add_argument("--workspace", metavar="NAME_OR_PATH", help="another workspace than this folder's")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on standard output")
    own, behind = split_arguments(rest)
    if "-h" in own or "--help" in own:
        # Here and not in argparse, which while it reads intermixed words has forgotten the positional ones.
        parser.description = _description(function)
        parser.print_help()
        parser.exit()
    # Options between the words, as people write them: plain argparse takes an optional word too early.
    options = parser.parse_intermixed_args(own)
    if behind and "arguments" not in options:
        parser.error(f"unrecognized arguments: {' '.join(behind)}")
    options.arguments = behind
    return function, options


def _description(function: Callable[[Options], int]) -> str:
    from inspect import getdoc

    return getdoc(function) or ""


def add_run(parser: Parser) -> None:
    """The argument RUN."""
    parser.add_argument("run", metavar="RUN", help="a run's id, the beginning of one, an experiment, 'last', or @N")


def find_command(argv: Sequence[str]) -> tuple[Command, list[str]]:
    """The command and the words behind its name.

    >>> command, rest = find_command(["compute", "list", "--json"])
    >>> command.name, rest
    ('compute list', ['--json'])
    """
    known = all_commands()
    for count in (2, 1):
        name = " ".join(argv[:count])
        if len(argv) >= count and name in known:
            return known[name], list(argv[count:])
    raise _unknown(argv)


def split_arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those behind the first `--`, which are the script's.

    >>> split_arguments([".", "train.py", "--", "--lr", "0.1"])
    (['.', 'train.py'], ['--lr', '0.1'])
    """
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def _unknown(argv: Sequence[str]) -> UserErrorException:
    from difflib import get_close_matches

    first = argv[0]
    if first.startswith("-"):
        return UserErrorException(
            f"there is no option {first} before the command",
            hint="Options stand behind the command, as in 'trainmaster runs --json'.",
        )
    if first in groups():
        below = [name for name in all_commands() if name.startswith(f"{first} ")]
        return UserErrorException(f"'trainmaster {first}' needs one of: {', '.join(below)}")
    close = get_close_matches(" ".join(argv[:2]), all_commands(), 1) or get_close_matches(first, all_commands(), 1)
    guess = f"Did you mean 'trainmaster {close[0]}'? " if close else ""
    return UserErrorException(f"there is no command '{first}'", hint=f"{guess}'trainmaster --help' lists the commands.")

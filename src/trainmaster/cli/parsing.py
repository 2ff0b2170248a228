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
    """Help with a wide column for the options, so that most fit on one line with their description."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises wrong usage as our own error."""

    def error(self, message: str) -> NoReturn:
        hint = f"{self._guess(message)}'{self.prog} --help' shows the usage."
        if message.startswith("unrecognized arguments") and self.get_default("arguments") is not None:
            hint = f"Put the arguments of the script after two dashes: -- --lr 0.1\n{hint}"
        raise UserErrorException(message, hint=hint)

    def _guess(self, message: str) -> str:
        """A suggestion: the known option with the same beginning or a similar spelling."""
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
    add_arguments: Callable[[Parser], None] | None = getattr(module, f"{command.function}_arguments", None)
    if add_arguments is not None:
        add_arguments(parser)
    parser.add_argument("--workspace", metavar="NAME", help="another workspace: its name, folder or address")
    parser.add_argument("--json", action="store_true", help="print only JSON on standard output")
    own, script_arguments = split_arguments(rest)
    if "-h" in own or "--help" in own:
        # Not left to argparse: while it parses intermixed arguments, its help lacks the positional ones.
        parser.description = _description(function)
        parser.print_help()
        parser.exit()
    # Options may stand between positional arguments. Plain argparse would fill an optional argument too early.
    options = parser.parse_intermixed_args(own)
    if script_arguments and "arguments" not in options:
        parser.error(f"unrecognized arguments: {' '.join(script_arguments)}")
    options.arguments = script_arguments
    return function, options


def _description(function: Callable[[Options], int]) -> str:
    from inspect import getdoc

    return getdoc(function) or ""


def add_run(parser: Parser) -> None:
    """Adds the argument RUN."""
    parser.add_argument("run", metavar="RUN", help="a run's id or its beginning, an experiment, 'last' or @N")


def find_command(argv: Sequence[str]) -> tuple[Command, list[str]]:
    """The command and the words after its name.

    >>> command, rest = find_command(["compute", "list", "--json"])
    >>> command.name, rest
    ('compute list', ['--json'])
    """
    known = all_commands()
    for count in (3, 2, 1):
        name = " ".join(argv[:count])
        if len(argv) >= count and name in known:
            return known[name], list(argv[count:])
    raise _unknown(argv)


def split_arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those after the first `--`, which are the script's.

    >>> split_arguments([".", "train.py", "--", "--lr", "0.1"])
    (['.', 'train.py'], ['--lr', '0.1'])
    """
    if "--" not in words:
        return list(words), []
    dashes = list(words).index("--")
    return list(words[:dashes]), list(words[dashes + 1 :])


def _unknown(argv: Sequence[str]) -> UserErrorException:
    from difflib import get_close_matches

    first = argv[0]
    if first.startswith("-"):
        return UserErrorException(
            f"option {first} cannot stand before the command",
            hint="Put options after the command, as in 'trainmaster runs --json'.",
        )
    if first in groups():
        members = [name for name in all_commands() if name.startswith(f"{first} ")]
        return UserErrorException(f"'trainmaster {first}' needs one of: {', '.join(members)}")
    close = get_close_matches(" ".join(argv[:2]), all_commands(), 1) or get_close_matches(first, all_commands(), 1)
    guess = f"Did you mean 'trainmaster {close[0]}'? " if close else ""
    return UserErrorException(f"there is no command '{first}'", hint=f"{guess}'trainmaster --help' lists the commands.")

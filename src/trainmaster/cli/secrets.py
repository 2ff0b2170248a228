"""`trainmaster secret list`, `set` and `delete`. No command shows a value."""

from __future__ import annotations

import sys

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json


def listing_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def listing(options: Options) -> int:
    """The names of the workspace's secrets. JSON: a list of names."""
    names = open_workspace(options.workspace).get_default_keyvault().list_secrets()
    if options.json:
        say_json(names)
    elif names:
        for name in names:
            say(name)
    else:
        note("There is none yet; 'trainmaster secret set NAME' keeps one.")
    return exits.OK


def put_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def put(options: Options) -> int:
    """Keep a secret. Its value is asked for, or read from standard input; one line end at its end is dropped.
    JSON: {"set": name}.
    """
    workspace = open_workspace(options.workspace)
    workspace.get_default_keyvault().set_secret(options.name, _value(options.name))
    if options.json:
        say_json({"set": options.name})
    else:
        say(f"Secret '{options.name}' is kept.")
    return exits.OK


def _value(name: str) -> str:
    """Never from the command line: that can be read by everybody on this machine."""
    if sys.stdin.isatty():
        from getpass import getpass

        value = getpass(f"Value of secret '{name}': ")
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        raise UserErrorException(
            f"there is no value for secret '{name}'", hint="Type it, or pipe it in: trainmaster secret set NAME < file"
        )
    return value


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def delete(options: Options) -> int:
    """Forget a secret. JSON: {"deleted": name}."""
    vault = open_workspace(options.workspace).get_default_keyvault()
    if options.name not in vault.list_secrets():
        raise UserErrorException(
            f"there is no secret '{options.name[:130]}' in this workspace", hint="'trainmaster secret list' lists them."
        )
    vault.delete_secret(options.name)
    if options.json:
        say_json({"deleted": options.name})
    else:
        say(f"Secret '{options.name}' is forgotten.")
    return exits.OK

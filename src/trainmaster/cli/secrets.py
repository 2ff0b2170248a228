"""`trainmaster secret list`, `set` and `delete`. No command shows a value."""

from __future__ import annotations

import sys

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json


def list_secrets(options: Options) -> int:
    """List the names of the workspace's secrets.

    JSON: a list of names.

      trainmaster secret list
    """
    names = open_workspace(options.workspace).get_default_keyvault().list_secrets()
    if options.json:
        say_json(names)
    elif names:
        for name in names:
            say(name)
    else:
        note("There are no secrets yet. 'trainmaster secret set NAME' stores one.")
    return exits.OK


def put_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the secret's name")


def put(options: Options) -> int:
    """Store a secret. Type its value, or pipe it in; one line break at the end is removed.

    JSON: {"set": name}.

      trainmaster secret set api-key
      trainmaster secret set api-key < key.txt
    """
    workspace = open_workspace(options.workspace)
    workspace.get_default_keyvault().set_secret(options.name, _read_value(options.name))
    return show_result(options, {"set": options.name}, f"Secret '{options.name}' is stored.")


def _read_value(name: str) -> str:
    """The value, never from the command line: every user of this machine could read it there."""
    if sys.stdin.isatty():
        from getpass import getpass

        value = getpass(f"Value of secret '{name}': ")
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        raise UserErrorException(
            f"the value of secret '{name}' is empty", hint="Type it, or pipe it in: trainmaster secret set NAME < file"
        )
    return value


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the secret's name")


def delete(options: Options) -> int:
    """Delete a secret.

    JSON: {"deleted": name}.

      trainmaster secret delete api-key
    """
    vault = open_workspace(options.workspace).get_default_keyvault()
    if options.name not in vault.list_secrets():
        raise UserErrorException(
            f"this workspace has no secret '{options.name[:130]}'", hint="'trainmaster secret list' lists them."
        )
    vault.delete_secret(options.name)
    return show_result(options, {"deleted": options.name}, f"Secret '{options.name}' is deleted.")

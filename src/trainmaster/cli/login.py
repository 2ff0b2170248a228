"""`trainmaster login`, `logout` and `whoami`: who you are on a server."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.output import show_facts, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.remote.address import SERVER, ServerAddress, check_encrypted, parse_server
from trainmaster.sdk.backend.remote.server import Server
from trainmaster.sdk.backend.remote.tokens import check_token, forget_token, keep_token, read_tokens, tokens_file
from trainmaster.sdk.display.screen import note, say_json
from trainmaster.sdk.workspace.files import find_config, read_config


def login_arguments(parser: Parser) -> None:
    parser.add_argument("server", metavar="SERVER", help="its address, such as https://gpu.example.org:8443")
    parser.add_argument("--token-stdin", action="store_true", help="read the token from standard input")


def login(options: Options) -> int:
    """Sign in to a server. Asks for your token, checks it, and keeps it for this user of this machine only.

    JSON: {"server", "user", "file"}.

      trainmaster login https://trainmaster.example.org
      trainmaster login https://trainmaster.example.org --token-stdin < token.txt
    """
    address = parse_server(options.server)
    check_encrypted(address)
    token = _read_token(address, options.token_stdin)
    user = str(Server(address, token).me()["user"])
    keep_token(address, token)
    code = show_result(
        options,
        {"server": str(address), "user": user, "file": str(tokens_file())},
        f"Signed in to {address} as {user}.",
    )
    note(f'Use it with {SERVER}={address}, or with "server": "{address}" in .azureml/config.json.')
    return code


def _read_token(address: ServerAddress, from_pipe: bool) -> str:
    """The token, never from the command line: every user of this machine could read it there."""
    if from_pipe:
        return check_token(sys.stdin.readline().strip())
    if not sys.stdin.isatty():
        raise UserErrorException("there is no terminal to type the token", hint="Pipe it in, with --token-stdin.")
    from getpass import getpass

    return check_token(getpass(f"Token for {address}: ").strip())


def logout_arguments(parser: Parser) -> None:
    parser.add_argument("server", metavar="SERVER", nargs="?", help="its address (default: the only one you use)")


def logout(options: Options) -> int:
    """Forget the token for a server. The token stays valid; an administrator can revoke it.

    JSON: {"server", "forgotten"}.

      trainmaster logout https://trainmaster.example.org
    """
    address = _find_server(options)
    was_known = forget_token(address)
    text = f"The token for {address} is forgotten." if was_known else f"There is no token for {address}."
    return show_result(options, {"server": str(address), "forgotten": was_known}, text)


def whoami_arguments(parser: Parser) -> None:
    logout_arguments(parser)


def whoami(options: Options) -> int:
    """Show who you are on a server.

    JSON: {"server"} and what the server answers.

      trainmaster whoami
    """
    address = _find_server(options)
    found = {"server": str(address), **Server(address).me()}
    found.pop("csrf_token", None)
    if options.json:
        say_json(found)
        return exits.OK
    show_facts(
        [
            ("Server", str(address)),
            ("User", str(found["user"])),
            ("Roles", _describe_roles(found)),
            ("Token", str(found.get("credential", "")).removeprefix("token ")),
        ]
    )
    return exits.OK


def _describe_roles(me: dict[str, Any]) -> str:
    roles = [f"{role} of {'all workspaces' if name == '*' else name}" for name, role in me.get("roles", {}).items()]
    return ", ".join((["administrator"] if me.get("is_admin") else []) + roles) or "none"


def _find_server(options: Options) -> ServerAddress:
    """The server that is named, or that of this folder's config.json, or the only one you are signed in to."""
    given = options.server or os.environ.get(SERVER, "") or _read_configured()
    if given:
        return parse_server(given)
    known = sorted(read_tokens())
    if len(known) == 1:
        return parse_server(known[0])
    if not known:
        raise UserErrorException("you are not signed in to a server", hint="Sign in: trainmaster login SERVER")
    raise UserErrorException(
        "no server is named",
        cause=f"You are signed in to {', '.join(known)}.",
        hint=f"Give the address of one, or set {SERVER}.",
    )


def _read_configured() -> str:
    config = find_config(Path.cwd())
    return read_config(config)[0].get("server", "") if config is not None else ""

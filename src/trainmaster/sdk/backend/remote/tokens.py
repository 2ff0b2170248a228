"""The tokens of this user, one per server: `~/.config/trainmaster/tokens.json`, readable by its owner only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.job.errors import AuthenticationException, UserErrorException
from trainmaster.sdk.backend.remote.address import SERVER, TOKEN, ServerAddress, parse_server
from trainmaster.sdk.backend.remote.notices import notify
from trainmaster.shared.private import make_private


def tokens_file() -> Path:
    """Where the tokens are kept. `XDG_CONFIG_HOME` sets another folder."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "trainmaster" / "tokens.json"


def find_token(address: ServerAddress) -> str:
    """The token for this server: that of the environment if it is for this server, else the one of `login`.

    `TRAINMASTER_TOKEN` is sent to the server of `TRAINMASTER_SERVER` only: a config file in somebody else's project
    may name any server.
    """
    given = os.environ.get(TOKEN, "").strip()
    named = os.environ.get(SERVER, "").strip()
    if given and named and parse_server(named) == address:
        return check_token(given)
    kept = read_tokens().get(str(address), "")
    if kept:
        return kept
    if given:
        raise AuthenticationException(
            f"{TOKEN} is not used for {address}",
            cause=f"{SERVER} is {named}." if named else f"{SERVER}, which says whose token it is, is not set.",
            hint=f"Set {SERVER}={address}, or sign in with 'trainmaster login {address}'.",
        )
    raise AuthenticationException(
        f"you are not signed in to {address}",
        hint=f"Sign in with 'trainmaster login {address}', or set {SERVER} and {TOKEN}.",
    )


def check_token(token: str) -> str:
    """The token, if it can be sent. The error does not repeat it."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UserErrorException(
            "this is not a token", cause="A token is one line of letters, digits, dashes and underscores."
        )
    return token


def read_tokens() -> dict[str, str]:
    """Server to token."""
    file = tokens_file()
    try:
        with open(file, encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            data = json.load(opened)
        tokens = {str(server): str(token) for server, token in data["tokens"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserErrorException(
            f"{file} cannot be read", cause=str(error), hint="Repair or remove it, then sign in again."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        notify(f"other users can read your tokens; 'chmod 600 {file}' prevents that")
    return tokens


def keep_token(address: ServerAddress, token: str) -> None:
    """Keeps the token for this server; it replaces an earlier one."""
    with _lock_file():
        _write(read_tokens() | {str(address): check_token(token)})


def forget_token(address: ServerAddress) -> bool:
    """Removes the token for this server. False if there was none."""
    with _lock_file():
        tokens = read_tokens()
        was_known = tokens.pop(str(address), None) is not None
        if was_known:
            _write(tokens)
    return was_known


@contextlib.contextmanager
def _lock_file() -> Iterator[None]:
    """One program at a time changes the file."""
    folder = tokens_file().parent
    try:
        make_private(folder)
        handle = os.open(folder / "tokens.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserErrorException(f"tokens cannot be kept in {folder}", cause=str(error)) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(tokens: dict[str, str]) -> None:
    durable.write(tokens_file(), (json.dumps({"tokens": tokens}, indent=1) + "\n").encode(), mode=0o600)

"""`trainmaster server user|token|role|login-link`: on the database of a root folder, while the server runs or not."""

from __future__ import annotations

import argparse
import getpass
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.server.command import add_root, check_packages, find_root
from trainmaster.server.settings import read_settings

if TYPE_CHECKING:
    from trainmaster.server.identity.service import IdentityService


def add_user_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user's name or e-mail address")
    parser.add_argument("--admin", action="store_true", help="make the user an administrator of the server")
    parser.add_argument("--subject", metavar="ID", help="who the user is at the OpenID Connect provider")
    add_root(parser)


def add_user(options: argparse.Namespace) -> int:
    """Add a user to a server. The user has no token and no role yet.

    JSON: {"name", "is_admin", "created_at", "subject"}

      trainmaster server user add ada
    """
    with _open(options) as identity:
        made = identity.users.add(options.name, is_admin=options.admin, subject=options.subject)
        _record(identity, "user add", made.name)
    if options.json:
        say_json(asdict(made))
    else:
        say(f"Added {made.name}")
        note(f"Create a token: trainmaster server token create {made.name}")
    return 0


def list_users_arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)


def list_users(options: argparse.Namespace) -> int:
    """List the users of a server.

    JSON: a list of {"name", "is_admin", "created_at", "subject"}

      trainmaster server user list
    """
    with _open(options) as identity:
        users = identity.users.list()
    if options.json:
        say_json([asdict(user) for user in users])
        return 0
    rows = [(user.name, "yes" if user.is_admin else "", iso(user.created_at) or "") for user in users]
    _show([Column("NAME"), Column("ADMINISTRATOR"), Column("ADDED")], rows)
    return 0


def remove_user_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user's name")
    add_root(parser)


def remove_user(options: argparse.Namespace) -> int:
    """Remove a user with all tokens, roles and sessions. Runs and the audit log stay.

    JSON: {"removed": name}

      trainmaster server user remove ada
    """
    with _open(options) as identity:
        identity.users.remove(options.name)
        _record(identity, "user remove", options.name)
    _say(options, {"removed": options.name}, f"Removed {options.name}")
    return 0


def create_token_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="whose token it is")
    parser.add_argument("--label", metavar="TEXT", default="", help="what it is for")
    parser.add_argument("--days", metavar="N", type=float, default=365.0, help="valid for (default: 365); 0: no end")
    parser.add_argument("--role", choices=("reader", "contributor", "owner"), help="never more than this role")
    parser.add_argument("--run", metavar="RUN", help="only for this run of --workspace, as its job")
    add_root(parser)


def create_token(options: argparse.Namespace) -> int:
    """Create a token for a user. It is printed once; only its SHA-256 is kept.

    With --workspace it is valid in that workspace only. A token never has more rights than its user.

    JSON: {"token", "id", "expires_at"}

      trainmaster server token create ada --label laptop --days 90
      trainmaster server token create ci --workspace team --role contributor
    """
    from trainmaster.server.identity.accounts import Scope

    with _open(options) as identity:
        scope = Scope(options.workspace, options.role, options.run)
        made, text = identity.tokens.create(options.user, label=options.label, days=options.days or None, scope=scope)
        _record(identity, "token create", made.id)
    if options.json:
        say_json({"token": text, "id": made.id, "expires_at": made.expires_at})
        return 0
    note(f"The token {made.id} of {made.user}, which is not shown again:")
    say(text)
    return 0


def list_tokens_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", nargs="?", help="only this user's")
    add_root(parser)


def list_tokens(options: argparse.Namespace) -> int:
    """List the tokens of a server's users, without their texts.

    JSON: a list of {"id", "user", "label", "created_at", "expires_at", "last_used_at", "revoked_at", "scope"}

      trainmaster server token list ada
    """
    with _open(options) as identity:
        tokens = identity.tokens.list(options.user)
    if options.json:
        say_json([asdict(token) for token in tokens])
        return 0
    rows = []
    for token in tokens:
        is_over = token.expires_at is not None and token.expires_at < time.time()
        state = "revoked" if token.revoked_at else "expired" if is_over else iso(token.expires_at) or "no end"
        scope = " ".join(part for part in (token.scope.workspace, token.scope.role, token.scope.run_id) if part)
        rows.append((token.id, token.user, token.label, state, iso(token.last_used_at) or "", scope))
    columns = [Column("ID"), Column("USER"), Column("LABEL", flexible=True), Column("UNTIL"), Column("LAST USE")]
    _show([*columns, Column("SCOPE")], rows)
    return 0


def revoke_token_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the token's id, as in the list")
    add_root(parser)


def revoke_token(options: argparse.Namespace) -> int:
    """End a token for ever. A running server refuses it within a second.

    JSON: {"revoked": id}

      trainmaster server token revoke 12
    """
    with _open(options) as identity:
        identity.tokens.revoke(options.id)
        _record(identity, "token revoke", options.id)
    _say(options, {"revoked": options.id}, f"Revoked {options.id}")
    return 0


def grant_role_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="the user's name")
    parser.add_argument(
        "role", metavar="ROLE", choices=("reader", "contributor", "owner"), help="what the user becomes"
    )
    add_root(parser)


def grant_role(options: argparse.Namespace) -> int:
    """Give a user a role in the workspace of --workspace: reader, contributor or owner.

    JSON: {"workspace", "user", "role"}

      trainmaster server role grant ada contributor --workspace team
    """
    workspace = _check_workspace(options)
    with _open(options) as identity:
        identity.members.grant(workspace, options.user, options.role)
        _record(identity, "role grant", options.user, workspace)
    granted = {"workspace": workspace, "user": options.user, "role": options.role}
    _say(options, granted, f"{options.user} is {options.role} of {workspace}")
    return 0


def revoke_role_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="the user's name")
    add_root(parser)


def revoke_role(options: argparse.Namespace) -> int:
    """Take away the role that a user has in the workspace of --workspace.

    JSON: {"workspace", "user"}

      trainmaster server role revoke ada --workspace team
    """
    workspace = _check_workspace(options)
    with _open(options) as identity:
        identity.members.revoke(workspace, options.user)
        _record(identity, "role revoke", options.user, workspace)
    _say(options, {"workspace": workspace, "user": options.user}, f"{options.user} has no role in {workspace}")
    return 0


def list_roles_arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)


def list_roles(options: argparse.Namespace) -> int:
    """List who has which role in the workspace of --workspace.

    JSON: a list of {"user", "role", "is_by_group"}

      trainmaster server role list --workspace team
    """
    workspace = _check_workspace(options)
    with _open(options) as identity:
        members = identity.members.list(workspace)
    if options.json:
        say_json([asdict(member) for member in members])
        return 0
    rows = [(member.user, str(member.role), "by group" if member.is_by_group else "") for member in members]
    _show([Column("USER"), Column("ROLE"), Column("")], rows)
    return 0


def create_link_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="who signs in (default: the only administrator)")
    parser.add_argument("--url", metavar="URL", help="the server's address, as the browser reaches it")
    add_root(parser)


def create_link(options: argparse.Namespace) -> int:
    """Print a link that signs a browser in. It works once, for 15 minutes.

    JSON: {"url"}

      trainmaster server login-link --user ada
    """
    settings = read_settings(find_root(options))
    scheme = "https" if settings.has_tls else "http"
    address = options.url or settings.public_url or f"{scheme}://{settings.host}:{settings.port}"
    with _open(options) as identity:
        user = options.user or _find_only_administrator(identity)
        code = identity.sessions.create_link(user)
        _record(identity, "login-link", user)
    url = f"{address.rstrip('/')}/login#code={code}"
    _say(options, {"url": url}, url)
    return 0


@contextmanager
def _open(options: argparse.Namespace) -> Iterator[IdentityService]:
    check_packages()
    # SQLAlchemy takes long to import: help does not need it.
    from trainmaster.server.identity.service import open_identity

    root = find_root(options)
    identity = open_identity(root.path, read_settings(root).database)
    try:
        yield identity
    finally:
        identity.close()


def _record(identity: IdentityService, command: str, target: str, workspace: str = "") -> None:
    """Put a change that was made at the server's machine into the audit log."""
    from trainmaster.server.identity.audit import Change

    account = f"account {getpass.getuser()}"
    change = Change(account, "command", "", f"trainmaster server {command}", workspace=workspace, target=target)
    identity.audit.record(change, 200)


def _check_workspace(options: argparse.Namespace) -> str:
    """The workspace of --workspace, if this server has it."""
    from trainmaster.server.errors import HttpError
    from trainmaster.server.workspaces import Workspaces

    root = find_root(options)
    if not options.workspace:
        raise UserErrorException("the workspace is missing", hint="Name it: --workspace NAME.")
    elsewhere = {name: Path(folder) for name, folder in read_settings(root).workspaces.items()}
    try:
        return Workspaces(root.workspaces, elsewhere).get(options.workspace).name
    except HttpError as error:
        raise error.error from None


def _find_only_administrator(identity: IdentityService) -> str:
    found = [user.name for user in identity.users.list() if user.is_admin]
    if len(found) != 1:
        raise UserErrorException(f"the server has {len(found)} administrators", hint="Say who signs in: --user NAME.")
    return found[0]


def _show(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    for line in render(columns, rows, width_of_terminal(), paint):
        say(line)


def _say(options: argparse.Namespace, data: dict[str, str], text: str) -> None:
    if options.json:
        say_json(data)
    else:
        say(text)

"""Where the database of a workspace is, if it is not the file in its folder.

`database.json` decides: a workspace that has it is on PostgreSQL, one that has not uses the file `trainmaster.db`. Only
its owner can read it, because it may contain a password. `workspace.json`, which others may read, says only which kind
of database it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.shared.folders import WorkspaceFolder

POSTGRESQL = "postgresql"
"""The value of `database` in `workspace.json`."""

_SCHEMES = ("postgresql", "postgres")
_SECRETS = re.compile(r"(?i)((?:password|sslpassword)=)[^&]*")


@dataclass(frozen=True)
class DatabaseAddress:
    """A schema of a PostgreSQL database."""

    url: str = field(repr=False)
    """May contain a password."""
    schema: str = ""
    """The first schema of the user's search path if it is empty."""

    def __str__(self) -> str:
        return f"{hide_password(self.url)}, schema {self.schema}" if self.schema else hide_password(self.url)


def schema_of(workspace_id: str) -> str:
    """The name of a workspace's schema.

    >>> schema_of("0A1B-2c")
    'trainmaster_0a1b2c'
    """
    return "trainmaster_" + re.sub(r"[^0-9a-z]", "", workspace_id.lower())[:48]


def check_url(url: Any) -> str:
    """The URL, if it is one of a PostgreSQL database."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _SCHEMES or not parts.path.strip("/"):
        raise UserErrorException(
            "the address of the database is not the URL of a PostgreSQL database",
            hint="Write it as postgresql://USER@HOST:PORT/DATABASE.",
        )
    # SQLAlchemy knows only the longer name.
    return POSTGRESQL + str(url)[len(parts.scheme) :]


def hide_password(url: str) -> str:
    """The URL without its password.

    >>> hide_password("postgresql://me:secret@db.example/team?sslpassword=x&sslmode=require")
    'postgresql://me:***@db.example/team?sslpassword=***&sslmode=require'
    """
    head, separator, rest = url.partition("://")
    if not separator:
        return "***"
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}:***" if colon else name
    options = _SECRETS.sub(r"\1***", path)
    return f"{head}://{shown}{at}{host}{slash}{options}"


def read_address(folder: WorkspaceFolder) -> DatabaseAddress | None:
    """Where the workspace's database is; None if it is the file in its folder."""
    try:
        url = json.loads(folder.database_address.read_text())["url"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceException(
            f"{folder.database_address} cannot be read",
            cause=type(error).__name__,
            hint='It contains {"url": "postgresql://..."}.',
        ) from None
    return DatabaseAddress(check_url(url), schema_of(folder.read_identity()["id"]))


def write_address(folder: WorkspaceFolder, url: str) -> None:
    """Make the workspace use this database. The file is complete and private at any time."""
    try:
        durable.write(folder.database_address, json.dumps({"url": check_url(url)}).encode(), 0o600)
    except OSError as error:
        raise WorkspaceException(f"{folder.database_address} cannot be written", cause=str(error)) from None


def remove_address(folder: WorkspaceFolder) -> None:
    """Make the workspace use the file in its folder."""
    folder.database_address.unlink(missing_ok=True)
    durable.flush_one(folder.path)

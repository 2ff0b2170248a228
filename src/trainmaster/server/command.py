"""`trainmaster server`: create and run a server."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.server.settings import Root, Settings, read_settings, read_settings_file, write_settings
from trainmaster.shared.database_address import check_url
from trainmaster.shared.folders import home
from trainmaster.shared.private import open_private
from trainmaster.shared.retry import Backoff, retry

_DATABASE_SECONDS = 60.0


def init_arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument(
        "--database",
        metavar="URL",
        help="a PostgreSQL database, or - to read its URL from standard input, so that no other user sees its password "
        "(default: SQLite files in the root)",
    )
    parser.add_argument("--administrator", metavar="NAME", default="admin", help="the first user (default: admin)")
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="use the settings of this file, and accept a server that exists already: it gets the settings, too. "
        "For containers, at each start: waits a minute for the database, and creates no token",
    )


def init(options: argparse.Namespace) -> int:
    """Create the folder of a server, its settings and database, and the first administrator's token.

    The token is printed once; only its SHA-256 is kept.

    JSON: {"root", "token"}

      trainmaster server init --root /srv/trainmaster
      trainmaster server init --root /srv/trainmaster --database postgresql://trainmaster@db.example.org/server
    """
    check_packages()
    from trainmaster.server.identity.service import open_identity

    root = find_root(options)
    if options.settings:
        return _init_with_settings(root, options)
    database = read_database_url(options.database)
    if root.settings.exists():
        raise UserErrorException(f"there is a server in {root.path} already")
    durable.make_folder(root.path, mode=0o700)
    durable.make_folder(root.workspaces, mode=0o700)
    identity = open_identity(root.path, database)
    identity.users.add(options.administrator, is_admin=True)
    _, token = identity.tokens.create(options.administrator, label="server init")
    identity.close()
    # Last: a folder with settings is a complete server.
    write_settings(root, Settings(database=database))
    if options.json:
        say_json({"root": str(root.path), "token": token})
        return 0
    say(f"Created a server in {root.path}")
    say("The token of its administrator, which is not shown again:")
    say(token)
    note(f"Start it: trainmaster server run --root {root.path}")
    return 0


def _init_with_settings(root: Root, options: argparse.Namespace) -> int:
    """Bring a root folder to the settings of a file, whatever an earlier start has left there."""
    from trainmaster.server.identity.service import open_identity

    if options.database:
        raise UserErrorException("--database and --settings cannot be combined", hint="Put 'database' into the file.")
    settings = read_settings_file(Path(options.settings))
    if settings.database:
        check_url(settings.database)
    durable.make_folder(root.path, mode=0o700)
    durable.make_folder(root.workspaces, mode=0o700)
    opening = partial(asyncio.to_thread, open_identity, root.path, settings.database)
    # In a cluster, the database and the server start at the same time.
    seconds = _DATABASE_SECONDS if settings.database else 0.0
    identity = asyncio.run(retry(opening, WorkspaceException, backoff=Backoff(0.5, 2.0), seconds=seconds))
    try:
        if not any(user.is_admin for user in identity.users.list()):
            identity.users.add(options.administrator, is_admin=True)
    finally:
        identity.close()
    write_settings(root, settings)
    if options.json:
        say_json({"root": str(root.path), "token": None})
    else:
        say(f"The server in {root.path} has the settings of {options.settings}")
        note(f"For a token: trainmaster server token create {options.administrator} --root {root.path}")
    return 0


def run_arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="0 takes a free one (default: 8765)")
    parser.add_argument("--database", metavar="URL", help="another PostgreSQL database than server.json, or -")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate chain, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="the private key of the certificate, PEM")
    parser.add_argument(
        "--mlflow-ui",
        metavar="FOLDER",
        nargs="?",
        const="installed",
        help="show MLflow's own pages, read-only, from the installed package mlflow, or from its folder",
    )
    parser.add_argument(
        "--mlflow-open",
        action="store_true",
        help="no sign-in for MLflow's API, on a server that only this machine reaches",
    )
    parser.add_argument("--insecure", action="store_true", help="listen on other addresses even without TLS")


def run(options: argparse.Namespace) -> int:
    """Serve the workspaces of a root folder over HTTP, until SIGTERM.

    Without TLS the server listens only on this machine, unless --insecure is given. Options override server.json.
    Runs and dispatchers continue when the server ends.

      trainmaster server run --root /srv/trainmaster --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      trainmaster server run --root /srv/trainmaster --mlflow-ui
    """
    check_packages()
    from trainmaster.server.assembly import make_app
    from trainmaster.server.process import Process, check_address, write_logs

    root = find_root(options)
    settings = merge_options(read_settings(root), options)
    check_address(settings)
    write_logs()
    lock = None if settings.database else lock_root(root)
    process = Process(make_app(root, settings), settings)
    process.run()
    if lock is not None:
        lock.close()
    return 0 if process.started else 5


def lock_root(root: Root) -> IO[str]:
    """Refuse a second server on the same root folder; the lock ends with the process."""
    lock = open(root.lock, "w", opener=open_private)  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise UserErrorException(
            f"a server runs on {root.path} already", hint="Stop it first, or use another root folder."
        ) from None
    return lock


def types_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="write to this file instead of standard output")


def types(options: argparse.Namespace) -> int:
    """Write the types of the server's routes as TypeScript, generated from the table of routes.

    JSON: the OpenAPI document

      trainmaster server types --output types.ts
    """
    check_packages()
    from trainmaster.server.api.openapi import describe_table
    from trainmaster.server.api.typescript import write_types
    from trainmaster.server.assembly import make_table

    document = describe_table(make_table())
    if options.json:
        say_json(document)
    elif options.output:
        durable.write(Path(options.output), write_types(document).encode())
    else:
        say(write_types(document).rstrip("\n"))
    return 0


def merge_options(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings with the options that were given."""
    names = ("host", "port", "database", "tls_cert", "tls_key", "mlflow_ui")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if "database" in given:
        given["database"] = read_database_url(given["database"])
    insecure, is_open = settings.insecure or options.insecure, settings.mlflow_open or options.mlflow_open
    return replace(settings, insecure=insecure, mlflow_open=is_open, **given)


def read_database_url(given: str | None) -> str:
    """The URL of a database as it was given, or from standard input; empty for SQLite."""
    if not given:
        return ""
    return check_url(sys.stdin.readline().strip() if given == "-" else given)


def check_packages() -> None:
    """Refuse with a hint if the extra is not installed."""
    try:
        import orjson  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserErrorException(
            f"the server needs the package {error.name}", hint="Install it: pip install 'trainmaster[server]'"
        ) from None


def add_root(parser: argparse.ArgumentParser) -> None:
    """Add the option --root."""
    parser.add_argument("--root", metavar="FOLDER", help="the server's folder (default: server in TRAINMASTER_HOME)")


def find_root(options: argparse.Namespace) -> Root:
    """The server's folder."""
    return Root(Path(options.root).resolve() if options.root else home() / "server")

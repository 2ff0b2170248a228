"""Changes of a workspace's database as a whole, made by a process of their own: programs never open a database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from trainmaster.job.errors import ServiceException, WorkspaceException, from_wire
from trainmaster.sdk.backend.local.connection import call_once, stop_dispatcher
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder


def move_database(folder: WorkspaceFolder, to: str, tell: Callable[[str, int, int], None]) -> str:
    """Move to `sqlite` or a PostgreSQL database, and return where the old one is. The dispatcher must be idle.

    `tell` is called with a table, how many of its rows are done, and how many it has: first copied, then compared.
    """
    _stop_idle_dispatcher(folder)
    return str(_run("move", folder, tell, to))


def drop_database(folder: WorkspaceFolder) -> None:
    """Delete what the workspace has on a PostgreSQL server. Nothing happens if its database is a file."""
    if folder.database_address.exists():
        _run("drop", folder, lambda *_: None)


def _stop_idle_dispatcher(folder: WorkspaceFolder) -> None:
    line = try_line(folder)
    if line is None:
        return
    line.close()
    status = call_once(folder, "status")
    if status["active"]:
        raise WorkspaceException(
            f"the workspace has {len(status['active'])} runs that have not ended, such as {status['active'][0]['id']}",
            hint="Cancel them, or wait for them.",
        )
    stop_dispatcher(folder, int(status["pid"]))


def _run(command: str, folder: WorkspaceFolder, tell: Callable[[str, int, int], None], to: str = "") -> Any:
    words = [sys.executable, "-P", "-m", "trainmaster.dispatcher.database_command", command, str(folder.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(to + "\n")
        process.stdin.close()
        for line in process.stdout:
            message = json.loads(line)
            if "error" in message:
                raise from_wire(message["error"])
            if "result" in message:
                return message["result"]
            tell(message["table"], message["done"], message["total"])
    raise ServiceException("the process that changes the database was killed", hint="Nothing was changed. Try again.")

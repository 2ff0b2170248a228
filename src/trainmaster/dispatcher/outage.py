"""What a dispatcher does when the connection to its database is lost: it starts over from what the database has.

The right to write is lost with the connection, so another dispatcher may have written meanwhile; and nobody knows
whether the last commit was done. All parts are therefore created again, as after a restart of the dispatcher. Only the
socket stays: clients wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from trainmaster.dispatcher.opening import open_store
from trainmaster.dispatcher.server import Server
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.connection import is_lost
from trainmaster.dispatcher.store.leaders import OtherLeaderError
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.retry import Backoff

log = logging.getLogger("trainmaster.dispatch")

# How often an idle dispatcher checks that it still has its connection.
_CHECK_SECONDS = 2.0
_RESTART_SECONDS = 15.0
# The server of the database notices within 11 seconds that the machine of a connection is gone.
_OTHER_LEADER_SECONDS = 15.0


async def wait_until_lost(store: Store, lost: asyncio.Event) -> None:
    """Return when this process may no longer write to the store."""
    while await asyncio.to_thread(store.check):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CHECK_SECONDS):
                await lost.wait()
        lost.clear()


async def open_again(folder: WorkspaceFolder, server: Server) -> Store | None:
    """The store, as soon as this process may write to it. None if the dispatcher is told to stop first.

    Raises OtherLeaderError if another dispatcher serves the workspace now.
    """
    backoff, since = Backoff(0.05, 2.0), time.monotonic()
    while not server.stopping.is_set():
        try:
            return await asyncio.to_thread(_open_unless_wanted, folder)
        except OtherLeaderError as error:
            # Our own lost connection may hold the lock until the server notices.
            is_old = error.leader is None or error.leader.is_this_process
            if not is_old or time.monotonic() - since > _OTHER_LEADER_SECONDS:
                raise
            server.explain(error)
        except WorkspaceException as error:
            if not is_lost(error):
                raise
            server.explain(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(backoff.next_pause()):
                await server.stopping.wait()
    return None


def _open_unless_wanted(folder: WorkspaceFolder) -> Store:
    address = read_address(folder)
    if address is not None:
        from trainmaster.dispatcher.store import sessions

        with contextlib.suppress(*sessions.ERRORS):
            if sessions.is_wanted(address):
                raise OtherLeaderError(str(address), None)
    return open_store(folder)


def open_first(folder: WorkspaceFolder, stay: bool) -> Store:
    """The store of a dispatcher that starts. It waits a while for a database that is being restarted.

    Without `stay` an agent started the dispatcher. It waits as long as it takes, because nobody else may ever bring the
    agent's run to its end. The address of a new workspace may be wrong, so that it does not wait.
    """
    patience = (_RESTART_SECONDS if folder.datastore.exists() else 0.0) if stay else float("inf")
    backoff, since = Backoff(0.05, 2.0), time.monotonic()
    while True:
        try:
            return open_store(folder)
        except WorkspaceException as error:
            if not is_lost(error) or time.monotonic() - since > patience:
                raise
            log.warning("waiting for the database: %s", error.message)
        backoff.block()

"""The dispatcher as a process: one per workspace, started on demand. It ends when it has been idle for a while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trainmaster.dispatcher.api.operations import Operations
from trainmaster.dispatcher.assembly import Dispatcher, assemble
from trainmaster.dispatcher.outage import open_again, open_first, wait_until_lost
from trainmaster.dispatcher.server import Server
from trainmaster.dispatcher.socket_place import make_place
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.connection import is_lost
from trainmaster.dispatcher.store.leaders import OtherLeaderError
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.store_version import StoreVersion
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# How long a dispatcher stays without work. A submit within that time is faster.
_IDLE_SECONDS = 900.0
# How often it checks that the workspace still exists.
_LOOK_SECONDS = 1.0


async def serve(folder: WorkspaceFolder, ready: Callable[[], None], stay: bool = True) -> None:
    """Serve the workspace until a request, a signal or idleness ends it. `ready` is called when it listens.

    Without `stay` it ends at once if nothing is active: another dispatcher may already have served the agent that
    started this one.
    """
    # Another machine can take over a database on a server before this dispatcher notices, so that has no version.
    version = StoreVersion(folder.store_version) if read_address(folder) is None else None
    store = open_first(folder, stay)
    if version is not None:
        store.publish(version)
    dispatcher = assemble(folder, store)
    is_open = True
    server = Server(Operations(dispatcher), dispatcher.watchers)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stopping.set)
    place = make_place(folder)
    # Only the owner can use the socket, from its first moment.
    mask = os.umask(0o177)
    try:
        listener = await server.listen(str(place))
    finally:
        os.umask(mask)
    log.info("dispatcher %d serves %s", os.getpid(), folder.path)
    try:
        while await _serve_store(server, dispatcher, place, ready, stay):
            log.warning("the connection to the database is lost")
            await server.suspend(None)
            await _close(dispatcher)
            is_open = False
            opened = await _open_again(server, dispatcher)
            if opened is None:
                return
            dispatcher = assemble(folder, opened)
            is_open = True
            server.resume(Operations(dispatcher), dispatcher.watchers)
            log.info("the database is back")
    finally:
        # First remove the socket, then release the lock: a client that finds no socket starts the next dispatcher,
        # which waits for the lock.
        place.unlink(missing_ok=True)
        listener.close()
        await server.close()
        if is_open:
            await _close(dispatcher)
        if version is not None:
            version.close()
        log.info("dispatcher %d ends", os.getpid())


async def _serve_store(
    server: Server, dispatcher: Dispatcher, place: Path, ready: Callable[[], None], stay: bool
) -> bool:
    """Serve until the dispatcher has to stop, or until the connection to the database is lost: then return True."""
    try:
        dispatcher.resume()
        ready()
        if stay or dispatcher.is_busy:
            return await _serve_until_stop(server, dispatcher, place)
    except WorkspaceException as error:
        if not is_lost(error):
            raise
        return True
    return False


async def _open_again(server: Server, closed: Dispatcher) -> Store | None:
    try:
        return await open_again(closed.context.folder, server)
    except OtherLeaderError:
        # The other dispatcher reports them as lost: it cannot see processes of this machine.
        await closed.runs.kill_all("local")
        raise


async def _close(dispatcher: Dispatcher) -> None:
    await dispatcher.close()
    dispatcher.context.store.close()


async def _serve_until_stop(server: Server, dispatcher: Dispatcher, place: Path) -> bool:
    stopped = asyncio.ensure_future(_wait_until_stop(server, dispatcher, place))
    removed = start_task("looking for the workspace", partial(_wait_until_removed, dispatcher.context.folder))
    tasks = {stopped, removed}
    lost: asyncio.Task[None] | None = None
    if read_address(dispatcher.context.folder) is not None:
        work = partial(wait_until_lost, dispatcher.context.store, server.lost)
        lost = start_task("checking the connection to the database", work)
        tasks.add(lost)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if _is_removed(dispatcher.context.folder):
            log.warning("the workspace %s was removed: its runs are ended", dispatcher.context.folder.path)
            await dispatcher.runs.kill_all()
        elif stopped.done():
            stopped.result()
        return lost is not None and lost.done() and not stopped.done() and not removed.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_until_removed(folder: WorkspaceFolder) -> None:
    """Return when the workspace was removed: its identity and its database are missing, at two checks in a row."""
    missed = 0
    while missed < 2:
        await asyncio.sleep(_LOOK_SECONDS)
        missed = missed + 1 if _is_removed(folder) else 0


def _is_removed(folder: WorkspaceFolder) -> bool:
    return not any(map(os.path.lexists, (folder.identity, folder.database, folder.database_address)))


async def _wait_until_stop(server: Server, dispatcher: Dispatcher, place: Path) -> None:
    limit = float(os.environ.get("TRAINMASTER_IDLE_SECONDS", _IDLE_SECONDS))
    seen, since = server.requests, time.monotonic()
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.stopping.wait(), timeout=max(0.05, min(limit / 4, 60.0)))
            return
        if not place.exists():
            # The folder for sockets is removed with the user's last login: no client can reach this dispatcher.
            log.warning("the socket %s is gone", place)
            return
        if dispatcher.is_busy or server.requests != seen:
            seen, since = server.requests, time.monotonic()
        elif time.monotonic() - since >= limit:
            log.info("idle for %.0f s", limit)
            return


def start_logging(folder: WorkspaceFolder) -> None:
    """Log to dispatcher.log, which is limited to a few megabytes."""
    handler = logging.handlers.RotatingFileHandler(folder.log, maxBytes=2_000_000, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("trainmaster", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("trainmaster").setLevel(logging.INFO)

"""The dispatcher as a process: one per workspace, started on demand. It ends when it has been idle for a while."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import logging.handlers
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from trainmaster.dispatcher.api.operations import Operations
from trainmaster.dispatcher.assembly import Dispatcher, assemble
from trainmaster.dispatcher.opening import open_store
from trainmaster.dispatcher.server import Server
from trainmaster.dispatcher.socket_place import make_place
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# How long a dispatcher stays without work. A submit within that time is faster.
_IDLE_SECONDS = 900.0
# How often it checks that the workspace still exists.
_LOOK_SECONDS = 1.0


@contextlib.contextmanager
def ownership(folder: WorkspaceFolder) -> Iterator[bool]:
    """Take the lock of the workspace and yield whether this process has it. The lock ends with the process."""
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        yield True
    finally:
        os.close(lock)


async def serve(folder: WorkspaceFolder, ready: Callable[[], None], stay: bool = True) -> None:
    """Serve the workspace until a request, a signal or idleness ends it. `ready` is called when it listens.

    Without `stay` it ends at once if nothing is active: another dispatcher may already have served the agent that
    started this one.
    """
    store = open_store(folder)
    dispatcher = assemble(folder, store)
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
        dispatcher.resume()
        ready()
        if stay or dispatcher.is_busy:
            await _serve_until_stop(server, dispatcher, place)
    finally:
        # First remove the socket, then release the lock: a client that finds no socket starts the next dispatcher,
        # which waits for the lock.
        place.unlink(missing_ok=True)
        listener.close()
        await server.close()
        await dispatcher.close()
        store.close()
        log.info("dispatcher %d ends", os.getpid())


async def _serve_until_stop(server: Server, dispatcher: Dispatcher, place: Path) -> None:
    stopped = asyncio.ensure_future(_wait_until_stop(server, dispatcher, place))
    removed = start_task("looking for the workspace", partial(_wait_until_removed, dispatcher.context.folder))
    try:
        await asyncio.wait({stopped, removed}, return_when=asyncio.FIRST_COMPLETED)
        if _is_removed(dispatcher.context.folder):
            log.warning("the workspace %s was removed: its runs are ended", dispatcher.context.folder.path)
            await dispatcher.runs.kill_all()
        elif stopped.done():
            stopped.result()
    finally:
        stopped.cancel()
        removed.cancel()
        await asyncio.gather(stopped, removed, return_exceptions=True)


async def _wait_until_removed(folder: WorkspaceFolder) -> None:
    """Return when the workspace was removed: its identity and its database are missing, at two checks in a row."""
    missed = 0
    while missed < 2:
        await asyncio.sleep(_LOOK_SECONDS)
        missed = missed + 1 if _is_removed(folder) else 0


def _is_removed(folder: WorkspaceFolder) -> bool:
    return not os.path.lexists(folder.identity) and not os.path.lexists(folder.database)


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

"""Which server has the dispatcher of a workspace, if several servers share a root folder and a PostgreSQL database.

The lock in the database says on which machine the dispatcher runs. Each server writes its own address to
`servers/<machine>.json` in the root folder, so the others know where to pass requests on to. If nobody has the lock
although runs are active, the machine of the dispatcher has failed, and this server starts a dispatcher.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.dispatcher.store.leaders import LONGEST_HOST, Leader
from trainmaster.job.agent import durable
from trainmaster.job.errors import ServiceException, TrainmasterError
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.shared.database_address import DatabaseAddress, read_address
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.host import host_name

if TYPE_CHECKING:
    from trainmaster.dispatcher.store.sessions import Candidacy

log = logging.getLogger("trainmaster.server")

# How long it is remembered where a dispatcher is, and how often workspaces without one are looked for.
_KEEP_SECONDS = 1.0
_LOOK_SECONDS = 2.0
# How long the server of a dispatcher may be silent until this server takes the workspace over.
_SILENCE_SECONDS = 5.0


NOWHERE = "http://"
"""In place of the address of a server that does not run."""


class Leaders:
    """Finds the servers of dispatchers on other machines."""

    def __init__(self, root: Path, is_shared: bool) -> None:
        self._folder = root / "servers"
        self._is_shared = is_shared
        self._known: dict[WorkspaceFolder, tuple[float, str]] = {}
        self._silent_since: dict[WorkspaceFolder, float] = {}

    def announce(self, address: str) -> None:
        """Tell the other servers of this root where this one is."""
        if self._is_shared:
            durable.make_folder(self._folder, mode=0o700)
            durable.write(self._file(host_name()), json.dumps({"url": address}).encode(), 0o600)

    def withdraw(self) -> None:
        """This server stops."""
        if self._is_shared:
            self._file(host_name()).unlink(missing_ok=True)

    async def find(self, folder: WorkspaceFolder) -> str:
        """The address of the server that has the dispatcher of a workspace. Empty if it is this one, or may be."""
        if not self._is_shared:
            return ""
        known = self._known.get(folder)
        if known is not None and time.monotonic() - known[0] < _KEEP_SECONDS:
            return known[1]
        found = await asyncio.to_thread(self._look, folder) if folder.database_address.exists() else ""
        self._known[folder] = (time.monotonic(), found)
        return found

    def note_answer(self, folder: WorkspaceFolder) -> None:
        """The other server answers."""
        self._silent_since.pop(folder, None)

    async def note_silence(self, folder: WorkspaceFolder, dispatchers: Dispatchers) -> None:
        """The other server did not answer. After a while, its dispatcher is replaced by one on this machine."""
        self._known.pop(folder, None)
        since = self._silent_since.setdefault(folder, time.monotonic())
        if time.monotonic() - since < _SILENCE_SECONDS:
            return
        del self._silent_since[folder]
        candidacy = await asyncio.to_thread(_stand_for, folder)
        if candidacy is None:
            return
        log.warning("the server that has the dispatcher of %s is silent: taking over", folder.path.name)
        try:
            await dispatchers.call(folder, "status", {})
        finally:
            await asyncio.to_thread(candidacy.close)

    def _look(self, folder: WorkspaceFolder) -> str:
        line = try_line(folder)
        if line is not None:
            line.close()
            return ""
        leader = _find_leader(folder)
        if leader is None or leader.is_here:
            return ""
        try:
            address: str = json.loads(self._file(leader.host).read_text())["url"]
        except (OSError, ValueError, KeyError):
            # No server runs there.
            return NOWHERE
        return address

    def _file(self, host: str) -> Path:
        return self._folder / f"{host[:LONGEST_HOST]}.json"

    async def take_over(self, list_folders: Callable[[], Iterable[WorkspaceFolder]], dispatchers: Dispatchers) -> None:
        """Start dispatchers for workspaces whose runs nobody drives, until cancelled."""
        while self._is_shared:
            await asyncio.sleep(_LOOK_SECONDS)
            for folder in await asyncio.to_thread(_find_abandoned, list(list_folders())):
                log.warning("the runs of %s have no dispatcher: starting one", folder.path.name)
                try:
                    await dispatchers.call(folder, "status", {})
                except TrainmasterError as error:
                    # Another server may have been faster.
                    log.warning("%s: %s", folder.path.name, error.headline)


def _stand_for(folder: WorkspaceFolder) -> Candidacy | None:
    """Begin to take over, unless that would end runs, or another server does so already."""
    from trainmaster.dispatcher.store import sessions

    address = read_address(folder)
    leader = _find_leader(folder)
    if address is None or leader is None or leader.is_here:
        return None
    if sessions.has_runs_there(address):
        raise ServiceException(
            f"the dispatcher of the workspace is on {leader.host}, whose server does not answer",
            cause="Runs on that machine itself are active. They would end if this server took over.",
            hint=f"Start the server on {leader.host}.",
        )
    candidacy = sessions.Candidacy(address)
    if candidacy.is_held:
        return candidacy
    candidacy.close()
    return None


def _find_leader(folder: WorkspaceFolder) -> Leader | None:
    from trainmaster.dispatcher.store import sessions

    address = read_address(folder)
    try:
        return None if address is None else sessions.find_leader(address)
    except sessions.ERRORS:
        # The dispatcher that is started then waits for the database, and says what is wrong.
        return None


def _find_abandoned(folders: list[WorkspaceFolder]) -> list[WorkspaceFolder]:
    from trainmaster.dispatcher.store import sessions

    by_url: dict[str, dict[DatabaseAddress, WorkspaceFolder]] = {}
    for folder in folders:
        address = read_address(folder)
        if address is not None:
            by_url.setdefault(address.url, {})[address] = folder
    abandoned = []
    for workspaces in by_url.values():
        try:
            abandoned += [workspaces[address] for address in sessions.find_abandoned(list(workspaces))]
        except sessions.ERRORS as error:
            log.warning("the database %s cannot be asked: %s", next(iter(workspaces)), error)
    return abandoned

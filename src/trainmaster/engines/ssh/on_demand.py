"""Files that a script asks for while it runs: brought to its host by a connection of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from trainmaster.engines.ssh.patience import patiently
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.engines.ssh.upload import Tree, bring_tree, content
from trainmaster.job.script.dataset_files import is_pattern, local_files, matcher, wildcard_base, without_all


class OnDemand:
    """To one host: many scripts may ask at once, and sshd drops those who come in crowds."""

    def __init__(self, connect: Callable[[], Awaitable[tuple[Session, HostFacts]]], patience: float) -> None:
        self._connect = connect
        self._patience = patience
        self._turn = asyncio.Lock()

    async def lend(self, run_id: str, name: str, paths: Sequence[str]) -> list[str]:
        """As below, when it is its turn."""
        async with self._turn:
            return await patiently(lambda: self._lend(run_id, name, paths), self._patience)

    async def _lend(self, run_id: str, name: str, paths: Sequence[str]) -> list[str]:
        session, facts = await self._connect()
        try:
            return await lend(session, facts, run_id, name, paths)
        finally:
            await session.close()


async def lend(session: Session, facts: HostFacts, run_id: str, name: str, paths: Sequence[str]) -> list[str]:
    """Brings what `paths` say to the folder of a run there; they may have wildcards. `name` is that of the letter.

    It has the same path there, below a folder of its own: what the names of a dataset's files leave out is the same.
    """
    top = f"runs/{run_id}/lent/{name}"
    tree = await asyncio.to_thread(tree_of, paths)
    await bring_tree(session, top, tree, lambda done, total: None, copy=False)
    return [f"{facts.root}/{top}{path}" for path in paths]


def tree_of(paths: Sequence[str]) -> Tree:
    """Of all files that fit one of `paths`, by their whole paths here."""
    found = sorted({file for path in paths for file in _fitting(path.strip("/"))})
    folders = sorted({os.path.dirname(file) for file in found})
    return Tree(tuple(folders), tuple((file, content(Path("/", file))) for file in found))


def _fitting(pattern: str) -> list[str]:
    wanted = without_all(pattern)
    base = wildcard_base(wanted) if is_pattern(wanted) else wanted
    listed = [path for path, _ in local_files().list(base)]
    return [path for path in listed if matcher(pattern)(path)] if is_pattern(wanted) else listed

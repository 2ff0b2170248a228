"""Files that a script requests while it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from trainmaster.engines.remote.contents import Tree, content, ignore_progress, upload_tree
from trainmaster.engines.remote.retrying import retry_unreachable
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.job.script.dataset_files import is_pattern, local_files, matcher, wildcard_base, without_all


async def upload_on_demand(
    pool: UploadPool, run_id: str, request: str, silence: float, paths: Sequence[str]
) -> list[str]:
    """Uploads files, folders and what matches patterns, and returns their paths on the host.

    Retries for up to `silence` seconds while the host is unreachable.
    """
    return await retry_unreachable(lambda: _upload(pool, run_id, request, paths), silence)


async def _upload(pool: UploadPool, run_id: str, request: str, paths: Sequence[str]) -> list[str]:
    """Each file keeps its whole path, below a folder for this request: the names in a dataset depend on the path."""
    top = f"runs/{run_id}/lent/{request}"
    tree = await asyncio.to_thread(scan_paths, paths)
    async with pool.turn() as connection:
        await upload_tree(connection, top, tree, ignore_progress, copy=False)
        return [f"{connection.facts.root}/{top}{path}" for path in paths]


def scan_paths(paths: Sequence[str]) -> Tree:
    """All files that match one of `paths`, by their whole paths here."""
    found = sorted({file for path in paths for file in _find_files(path.strip("/"))})
    folders = sorted({os.path.dirname(file) for file in found})
    return Tree(tuple(folders), tuple((file, content(Path("/", file))) for file in found))


def _find_files(pattern: str) -> list[str]:
    wanted = without_all(pattern)
    base = wildcard_base(wanted) if is_pattern(wanted) else wanted
    files = [path for path, _ in local_files().list(base)]
    return [path for path in files if matcher(pattern)(path)] if is_pattern(wanted) else files

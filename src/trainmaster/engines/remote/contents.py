"""Files and folders by the digests of their contents: only what a host lacks is sent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainmaster.engines.remote.connection import Connection

_PIECE = 1024 * 1024
_BATCH = 16 * 1024 * 1024

Progress = Callable[[int, int], None]
"""Called with the number of bytes sent so far and the number of all bytes."""


def ignore_progress(done: int, total: int) -> None:
    """For small uploads."""


@dataclass(frozen=True)
class Content:
    """A file by its content."""

    name: str
    """Its digest; that of an executable file ends with an x."""
    path: Path
    size: int


@dataclass(frozen=True)
class Tree:
    """A folder as it will be on a host."""

    folders: tuple[str, ...] = ()
    files: tuple[tuple[str, Content], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, str, int], ...] = ()
    """Files whose text depends on the host: path, text, mode."""

    def as_json(self) -> bytes:
        plain: dict[str, Any] = {
            "folders": self.folders,
            "files": [(name, content.name) for name, content in self.files],
            "links": self.links,
            "texts": self.texts,
        }
        return json.dumps(plain).encode()


def scan_data(path: Path) -> Tree:
    """A file or folder of data; links are replaced by what they point to."""
    if path.is_file():
        return Tree(files=((path.name, content(path)),))
    folders, files = [], []
    for top, subfolders, names in os.walk(path, followlinks=True):
        subfolders.sort()
        folders += [str(Path(top, name).relative_to(path)) for name in subfolders]
        paths = [Path(top, name) for name in sorted(names)]
        files += [(str(each.relative_to(path)), content(each)) for each in paths if each.is_file()]
    return Tree(tuple(folders), tuple(files))


def scan(folder: Path, is_excluded: Callable[[str], bool] = lambda name: False) -> Tree:
    """The folder as it is here, with the digest of every file. Excluded folders are left out with all they contain."""
    folders, files, links = [], [], []
    for path, name in _walk(folder, is_excluded):
        if path.is_symlink():
            links.append((name, os.readlink(path)))
        elif path.is_dir():
            folders.append(name)
        elif path.is_file():
            files.append((name, content(path)))
    return Tree(tuple(folders), tuple(files), tuple(links))


def _walk(folder: Path, is_excluded: Callable[[str], bool]) -> Iterator[tuple[Path, str]]:
    for top, subfolders, names in os.walk(folder):
        place = os.path.relpath(top, folder)
        prefix = "" if place == "." else f"{place}/"
        subfolders[:] = sorted(name for name in subfolders if not is_excluded(prefix + name))
        for name in sorted([*subfolders, *(name for name in names if not is_excluded(prefix + name))]):
            yield Path(top, name), prefix + name


def content(path: Path) -> Content:
    """A file of this machine by its digest."""
    found = os.stat(path)
    digest = _digest(str(path), found.st_size, found.st_mtime_ns, found.st_ino)
    return Content(digest + ("x" if found.st_mode & 0o100 else ""), path, found.st_size)


@lru_cache(maxsize=100_000)
def _digest(path: str, size: int, changed: int, inode: int) -> str:
    # Slow to import, and needed only here.
    from blake3 import blake3

    hasher = blake3()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return str(hasher.hexdigest())


async def upload_contents(connection: Connection, contents: Iterable[Content], progress: Progress) -> None:
    """Sends the contents that the host lacks."""
    by_name = {each.name: each for each in contents}
    missing = await _find_missing(connection, by_name.values())
    total, done = sum(each.size for each in missing), 0

    def on_sent(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    for batch in batches(missing):
        await _upload_batch(connection, batch, on_sent)


async def _find_missing(connection: Connection, contents: Iterable[Content]) -> list[Content]:
    by_name = {each.name: each for each in contents}
    if not by_name:
        return []
    answer = await connection.call_for_bytes({"op": "lacking"}, "\n".join(by_name).encode())
    return [by_name[name] for name in answer.decode().split()]


def batches(contents: Iterable[Content]) -> Iterator[list[Content]]:
    """Batches that another connection can wait for; the largest files come last, each in a batch of its own."""
    batch: list[Content] = []
    size = 0
    for each in sorted(contents, key=lambda content: content.size):
        if batch and size + each.size > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch


async def _upload_batch(connection: Connection, batch: Sequence[Content], on_sent: Callable[[int], None]) -> None:
    """Waits for contents that another connection is sending; sends them only if that transfer failed."""
    rest = list(batch)
    while rest:
        others = [each for each in rest if each.name in connection.transfers]
        mine = [each for each in rest if each.name not in connection.transfers]
        with connection.transfers.claim(each.name for each in mine):
            missing = await _find_missing(connection, mine)
            on_sent(sum(each.size for each in mine) - sum(each.size for each in missing))
            for each in missing:
                await connection.send_file({"op": "blob", "name": each.name}, each.path, each.size, on_sent)
            if missing:
                await connection.call({"op": "flush"})
        await connection.transfers.wait_for(each.name for each in others)
        rest = others


async def upload_tree(connection: Connection, path: str, tree: Tree, progress: Progress, copy: bool) -> None:
    """Creates the folder `path` in the workspace's folder on the host, whole or not at all."""
    await upload_contents(connection, (content for _, content in tree.files), progress)
    await connection.call({"op": "tree", "path": path, "copy": copy}, tree.as_json())


async def is_missing(connection: Connection, path: str) -> bool:
    """Whether the host has nothing at `path` yet."""
    answer = await connection.call({"op": "missing", "paths": [path]})
    return bool(answer["missing"])


def is_compiled(name: str) -> bool:
    """Whether a file is a compiled module. Such files hold the time of their source, which differs on the host."""
    return "__pycache__" in name.split("/") or name.endswith(".pyc")

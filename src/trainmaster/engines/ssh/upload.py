"""What has to travel to a host before a run can start there: contents by their digest, only those that it lacks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainmaster.engines.ssh import conda
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.job.errors import EnvironmentException

_PIECE = 1024 * 1024
_BATCH = 16 * 1024 * 1024
_LONGEST_SCRIPT = 1024 * 1024
_LONGEST_FIRST_LINE = 127
# Of a Python: what no program needs.
_LEFT_OUT = re.compile(r"(^|/)(__pycache__|test|tests|idle_test|idlelib|turtledemo|ensurepip)$")
_LEFT_OUT_FILES = (".a", ".pyc")


@dataclass(frozen=True)
class Content:
    """A file by what is in it."""

    name: str
    """Its digest; one that is executable ends with an x."""
    path: Path
    size: int


@dataclass(frozen=True)
class Tree:
    """A folder as it is to be on a host."""

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


@dataclass(frozen=True)
class Settled:
    """Where an environment came to lie on a host."""

    folder: str = ""
    """In the workspace's folder there; empty for none."""
    variables: dict[str, str] = field(default_factory=dict)


def scan_data(path: Path) -> Tree:
    """A file or folder of data, with what its links lead to."""
    if path.is_file():
        return Tree(files=((path.name, content(path)),))
    folders, files = [], []
    for top, below, names in os.walk(path, followlinks=True):
        below.sort()
        folders += [str(Path(top, name).relative_to(path)) for name in below]
        places = [Path(top, name) for name in sorted(names)]
        files += [(str(place.relative_to(path)), content(place)) for place in places if place.is_file()]
    return Tree(tuple(folders), tuple(files))


def scan(folder: Path, is_left_out: Callable[[str], bool] = lambda name: False) -> Tree:
    """The folder as it is here, with the digest of every file."""
    folders, files, links = [], [], []
    for path, name in _walk(folder):
        if is_left_out(name):
            continue
        if path.is_symlink():
            links.append((name, os.readlink(path)))
        elif path.is_dir():
            folders.append(name)
        elif path.is_file():
            files.append((name, content(path)))
    return Tree(tuple(folders), tuple(files), tuple(links))


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    for top, below, names in os.walk(folder):
        below.sort()
        for name in sorted([*below, *names]):
            path = Path(top, name)
            yield path, str(path.relative_to(folder))


def content(path: Path) -> Content:
    """A file of this machine by its digest."""
    found = os.stat(path)
    digest = _digest(str(path), found.st_size, found.st_mtime_ns, found.st_ino)
    return Content(digest + ("x" if found.st_mode & 0o100 else ""), path, found.st_size)


@lru_cache(maxsize=100_000)
def _digest(path: str, size: int, changed: int, inode: int) -> str:
    # Dear to import, and needed only here.
    from blake3 import blake3

    hasher = blake3()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return str(hasher.hexdigest())


async def bring_contents(session: Session, contents: Iterable[Content], say: Callable[[int, int], None]) -> None:
    """Sends those that the host lacks; `say` hears how many bytes of how many are there."""
    known = {each.name: each for each in contents}
    lacking = await _lacking(session, known.values())
    total, done = sum(each.size for each in lacking), 0

    def sent(count: int) -> None:
        nonlocal done
        done += count
        say(done, total)

    for batch in batches(lacking):
        await _bring_batch(session, batch, sent)


async def _lacking(session: Session, contents: Iterable[Content]) -> list[Content]:
    known = {each.name: each for each in contents}
    if not known:
        return []
    answer = await session.call_for_bytes({"op": "lacking"}, "\n".join(known).encode())
    return [known[name] for name in answer.decode().split()]


def batches(contents: Iterable[Content]) -> Iterator[list[Content]]:
    """So much at a time as another connection may well wait for; what is large comes last, and alone."""
    batch: list[Content] = []
    for each in sorted(contents, key=lambda content: content.size):
        if batch and sum(known.size for known in batch) + each.size > _BATCH:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


async def _bring_batch(session: Session, batch: Sequence[Content], sent: Callable[[int], None]) -> None:
    """What another connection sends just now is waited for, and sent only if that came to nothing."""
    rest = list(batch)
    while rest:
        others = [each for each in rest if each.name in session.under_way]
        mine = [each for each in rest if each.name not in session.under_way]
        with session.under_way.claim(each.name for each in mine):
            lacking = await _lacking(session, mine)
            sent(sum(each.size for each in mine) - sum(each.size for each in lacking))
            for each in lacking:
                await session.send_file({"op": "blob", "name": each.name}, each.path, each.size, sent)
            if lacking:
                await session.call({"op": "flush"})
        await session.under_way.gone(each.name for each in others)
        rest = others


async def bring_tree(session: Session, place: str, tree: Tree, say: Callable[[int, int], None], copy: bool) -> None:
    """The folder `place` in the workspace's folder of the host, which appears whole."""
    await bring_contents(session, (content for _, content in tree.files), say)
    await session.call({"op": "tree", "path": place, "copy": copy}, tree.as_json())


async def is_missing(session: Session, place: str) -> bool:
    """Whether the host has nothing there yet."""
    answer = await session.call({"op": "missing", "paths": [place]})
    return bool(answer["missing"])


async def bring_kit(session: Session, kit: Path) -> None:
    """The job side of Trainmaster."""
    place = f"kits/{kit.name}"
    if await is_missing(session, place):
        tree = await asyncio.to_thread(scan, kit, _is_compiled)
        await bring_tree(session, place, tree, lambda done, total: None, copy=True)


async def bring_snapshot(session: Session, snapshots: Path, blobs: Path, name: str) -> None:
    """The code of a run: its manifest after its contents."""
    place = f"snapshots/{name}.json"
    if not await is_missing(session, place):
        return
    manifest = snapshots / f"{name}.json"
    text = manifest.read_bytes()
    files = json.loads(text)["files"]
    contents = [Content(each["digest"], blobs / each["digest"][:2] / each["digest"], each["size"]) for each in files]
    await bring_contents(session, contents, lambda done, total: None)
    await session.send({"op": "file", "path": place}, text)
    await session.call({"op": "flush"})


async def bring_data(session: Session, place: str, path: Path, say: Callable[[int, int], None]) -> None:
    """Data of a run, which its script may change."""
    top = str(Path(place).parent) if path.is_file() else place
    if path.exists() and await is_missing(session, top):
        await bring_tree(session, top, await asyncio.to_thread(scan_data, path), say, copy=True)


async def bring_environment(
    session: Session, facts: HostFacts, folder: Path, say: Callable[[int, int], None]
) -> Settled:
    """A built environment, on a Python that the host has or that comes with it."""
    check_travels(facts, session.host.shown)
    place = f"environments/{folder.name}"
    there = f"{facts.root}/{place}"
    if conda.is_conda(folder):
        conda.check_room(conda.holdings(folder), there, session.host.shown)
        python = f"{there}/bin/python"
    else:
        python = await _python_there(session, facts, Base.of(folder), say)
    variables = {}
    if python.startswith(f"{facts.root}/pythons/"):
        variables["LD_LIBRARY_PATH"] = f"{Path(python).parents[1]}/lib"
    if await is_missing(session, place):
        with tempfile.TemporaryDirectory(prefix="trainmaster-") as scratch:
            moved = await asyncio.to_thread(_moved, folder, there, python, Path(scratch))
            await bring_tree(session, place, moved, say, copy=False)
    await _check_runs(session, f"{there}/bin/python", variables)
    return Settled(place, variables)


def _moved(folder: Path, there: str, python: str, scratch: Path) -> Tree:
    """The environment as it is to be on a host; files that have to be others there are written to `scratch`."""
    tree = relocated(_scanned(str(folder)), str(folder), there, python)
    held = conda.holdings(folder) if conda.is_conda(folder) else {}
    files = []
    for number, (name, found) in enumerate(tree.files):
        holding = held.get(name)
        if holding is not None:
            path = scratch / str(number)
            path.write_bytes(conda.moved(found.path.read_bytes(), holding, str(folder), there))
            path.chmod(found.path.stat().st_mode)
            found = content(path)
        files.append((name, found))
    return replace(tree, files=tuple(files))


def check_travels(facts: HostFacts, host: str) -> None:
    """Refuses a host on which nothing of this machine runs."""
    if facts.machine != os.uname().machine:
        raise EnvironmentException(
            f"host {host} is a {facts.machine}, and the environment was built for {os.uname().machine}",
            hint="Use a Python that is there, with user_managed=True and its interpreter_path.",
        )


@dataclass(frozen=True)
class Base:
    """The Python that a virtual environment stands on."""

    python: Path
    version: str
    """major.minor"""

    @property
    def prefix(self) -> Path:
        return self.python.parents[1]

    @property
    def name(self) -> str:
        """Tells it from others on a host."""
        return f"{self.prefix.name}-{hashlib.sha256(bytes(self.prefix)).hexdigest()[:8]}"

    @property
    def can_travel(self) -> bool:
        """Whether it is a folder of its own, and not a part of the system."""
        return str(self.prefix) not in ("/", "/usr", "/usr/local")

    @classmethod
    def of(cls, folder: Path) -> Base:
        (name,) = [path.name for path in (folder / "lib").glob("python3.*")][:1]
        return cls(Path(os.path.realpath(folder / "bin" / "python")), name.removeprefix("python"))


async def _python_there(session: Session, facts: HostFacts, base: Base, say: Callable[[int, int], None]) -> str:
    """The path of a Python on the host that the environment can stand on."""
    place = f"pythons/{base.name}"
    if not await is_missing(session, place):
        return f"{facts.root}/{place}/bin/{base.python.name}"
    found = (await session.call({"op": "pythons", "version": base.version}))["found"]
    for python in found:
        # A system's Python may lack parts of the standard library that packages count on.
        if (await session.call({"op": "try", "argv": [python, "-c", "import ctypes, ssl, zlib"]}))["code"] == 0:
            return str(python)
    if not base.can_travel:
        raise EnvironmentException(
            f"host {session.host.shown} has no Python {base.version}",
            cause=f"The environment was built with {base.python}, which is a part of this machine's system.",
            hint=f"Install Python {base.version} there, or here with 'uv python install {base.version}' and build the "
            "environment again: such a Python travels.",
        )
    tree = await asyncio.to_thread(scan, base.prefix, _is_left_out)
    await bring_tree(session, place, tree, say, copy=False)
    return f"{facts.root}/{place}/bin/{base.python.name}"


async def _check_runs(session: Session, python: str, variables: dict[str, str]) -> None:
    answer = await session.call({"op": "try", "argv": [python, "-c", "import sys"], "env": variables})
    if answer["code"]:
        raise EnvironmentException(
            f"the environment does not run on host {session.host.shown}",
            cause=f"{python}: {answer['said'].strip()}",
            hint="Is its system much older than this one? Then use a Python that is there, with user_managed=True.",
        )


@lru_cache(maxsize=4)
def _scanned(folder: str) -> Tree:
    """A build never changes, and goes to several hosts."""
    return scan(Path(folder), _is_compiled)


def _is_compiled(name: str) -> bool:
    """Compiled modules name the time of their source, which is another on the host."""
    return "__pycache__" in name.split("/") or name.endswith(".pyc")


def _is_left_out(name: str) -> bool:
    parts = name.split("/")
    above = ("/".join(parts[: end + 1]) for end in range(len(parts)))
    return name.endswith(_LEFT_OUT_FILES) or parts[0] in ("include", "share") or any(map(_LEFT_OUT.search, above))


def relocated(tree: Tree, here: str, there: str, python: str) -> Tree:
    """A virtual environment at another path and on another Python: its scripts and its configuration name both."""
    texts, files = list(tree.texts), []
    for name, found in tree.files:
        text = _text_with(found, here) if name.startswith("bin/") or name == "pyvenv.cfg" else None
        if text is None:
            files.append((name, found))
        elif name == "pyvenv.cfg":
            texts.append((name, _configuration(text, here, there, python), 0o644))
        else:
            texts.append((name, runnable(text.replace(here, there), there), 0o755))
    links = tuple((name, _target(name, target, here, there, python)) for name, target in tree.links)
    return replace(tree, files=tuple(files), texts=tuple(texts), links=links)


def runnable(text: str, there: str) -> str:
    """A script of the environment at `there` with a first line that the kernel can use: short, and without spaces.

    >>> runnable("#!/env/bin/python\\nprint(1)", "/env")
    '#!/env/bin/python\\nprint(1)'
    >>> print(runnable("#!/my env/bin/python -s\\nprint(1)", "/my env"))
    #!/bin/sh
    '''exec' '/my env/bin/python' -s "$0" "$@"
    ' '''
    print(1)
    """
    first, _, rest = text.partition("\n")
    if not first.startswith(f"#!{there}/") or (len(first) <= _LONGEST_FIRST_LINE and " " not in there):
        return text
    program, *words = first[len(f"#!{there}") :].split()
    # For a shell a command, for Python a text that nobody uses.
    return f"#!/bin/sh\n'''exec' {shlex.join([there + program, *words])} \"$0\" \"$@\"\n' '''\n{rest}"


def _text_with(found: Content, here: str) -> str | None:
    """The text of a script that names its environment; None for all else."""
    if found.size > _LONGEST_SCRIPT:
        return None
    data = found.path.read_bytes()
    if b"\0" in data or (here.encode() not in data and found.path.name != "pyvenv.cfg"):
        return None
    return data.decode("utf-8", "surrogateescape")


def _configuration(text: str, here: str, there: str, python: str) -> str:
    lines = [f"home = {os.path.dirname(python)}" if _is_home(line) else line for line in text.splitlines()]
    return "\n".join(lines).replace(here, there) + "\n"


def _is_home(line: str) -> bool:
    return line.partition("=")[0].strip() == "home"


def _target(name: str, target: str, here: str, there: str, python: str) -> str:
    if re.fullmatch(r"bin/python[\d.]*", name) and target.startswith("/") and not target.startswith(f"{here}/"):
        return python
    return there + target[len(here) :] if target.startswith(f"{here}/") else target

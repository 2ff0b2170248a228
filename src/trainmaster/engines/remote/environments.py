"""Environments on hosts: at another path, and on a Python of the host or one that is uploaded too."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
import tempfile
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from trainmaster.engines.remote import conda
from trainmaster.engines.remote.connection import Connection, HostFacts
from trainmaster.engines.remote.contents import (
    Content,
    Progress,
    Tree,
    content,
    is_compiled,
    is_missing,
    scan,
    upload_tree,
)
from trainmaster.job.errors import EnvironmentException

_LONGEST_SCRIPT = 1024 * 1024
_LONGEST_FIRST_LINE = 127
# Parts of a Python that no program in an environment needs. The packages of an environment are its own.
_UNNEEDED_FOLDERS = re.compile(
    r"(include|share|lib/python3[\d.]*/(site|dist)-packages"
    r"|(.*/)?(__pycache__|test|tests|idle_test|idlelib|turtledemo|ensurepip))"
)
_UNNEEDED_ENDINGS = (".a", ".pyc")


@dataclass(frozen=True)
class RemoteEnvironment:
    """An environment on a host."""

    folder: str = ""
    """Its path in the workspace's folder there; empty if none was uploaded."""
    variables: dict[str, str] = field(default_factory=dict)


async def upload_environment(
    connection: Connection, folder: Path, progress: Progress, with_python: bool = False
) -> RemoteEnvironment:
    """Uploads a built environment, for a Python that the host has or that is uploaded with it.

    `with_python`: upload it in any case, because others than the host use the environment.
    """
    facts, host = connection.facts, connection.host.title
    check_processor(facts, host)
    path = f"environments/{folder.name}"
    there = f"{facts.root}/{path}"
    if conda.is_conda(folder):
        conda.check_path_length(conda.placeholders(folder), there, host)
        python = f"{there}/bin/python"
    else:
        python = await _provide_python(connection, BasePython.read(folder), progress, with_python)
    variables = {}
    if python.startswith(f"{facts.root}/pythons/"):
        variables["LD_LIBRARY_PATH"] = f"{Path(python).parents[1]}/lib"
    if await is_missing(connection, path):
        with tempfile.TemporaryDirectory(prefix="trainmaster-") as scratch:
            tree = await asyncio.to_thread(_relocate_environment, folder, there, python, Path(scratch))
            await upload_tree(connection, path, tree, progress, copy=False)
    await _check_runs(connection, f"{there}/bin/python", variables)
    return RemoteEnvironment(path, variables)


def _relocate_environment(folder: Path, there: str, python: str, scratch: Path) -> Tree:
    """The environment as it will be on a host; conda files that change are written to `scratch`."""
    tree = relocate(_scan_environment(str(folder)), str(folder), there, python)
    placeholders = conda.placeholders(folder) if conda.is_conda(folder) else {}
    files = []
    for number, (name, found) in enumerate(tree.files):
        placeholder = placeholders.get(name)
        if placeholder is not None:
            path = scratch / str(number)
            path.write_bytes(conda.replace_path(found.path.read_bytes(), placeholder, str(folder), there))
            path.chmod(found.path.stat().st_mode)
            found = content(path)
        files.append((name, found))
    return replace(tree, files=tuple(files))


def check_processor(facts: HostFacts, host: str) -> None:
    """Raises an error for a host on which programs of this machine do not run."""
    if facts.machine != os.uname().machine:
        raise EnvironmentException(
            f"{host} is a {facts.machine}, but the environment was built for {os.uname().machine}",
            hint="Use a Python of the host, with user_managed=True and its interpreter_path.",
        )


@dataclass(frozen=True)
class BasePython:
    """The Python that a virtual environment was created with."""

    python: Path
    version: str
    """major.minor"""

    @property
    def prefix(self) -> Path:
        return self.python.parents[1]

    @property
    def name(self) -> str:
        """Distinguishes it from other Pythons on a host."""
        return f"{self.prefix.name}-{hashlib.sha256(bytes(self.prefix)).hexdigest()[:8]}"

    @property
    def is_portable(self) -> bool:
        """Whether it has a folder of its own and is not a part of the system."""
        return str(self.prefix) not in ("/", "/usr", "/usr/local")

    @classmethod
    def read(cls, folder: Path) -> BasePython:
        (name,) = [path.name for path in (folder / "lib").glob("python3.*")][:1]
        return cls(Path(os.path.realpath(folder / "bin" / "python")), name.removeprefix("python"))


async def _provide_python(connection: Connection, base: BasePython, progress: Progress, with_python: bool) -> str:
    """The path of a Python on the host that fits the environment; uploads one if the host has none."""
    path = f"pythons/{base.name}"
    uploaded = f"{connection.facts.root}/{path}/bin/{base.python.name}"
    if not await is_missing(connection, path):
        return uploaded
    found = (await connection.call({"op": "pythons", "version": base.version}))["found"]
    for python in [] if with_python else found:
        # A system's Python may lack parts of the standard library that packages need.
        if (await connection.call({"op": "try", "argv": [python, "-c", "import ctypes, ssl, zlib"]}))["code"] == 0:
            return str(python)
    if not base.is_portable:
        raise EnvironmentException(
            f"{connection.host.title} has no Python {base.version}",
            cause=f"The environment was built with {base.python}, which is a part of this machine's system.",
            hint=f"Install Python {base.version} there, or here with 'uv python install {base.version}' and build the "
            "environment again: such a Python is uploaded with the environment.",
        )
    tree = await asyncio.to_thread(scan, base.prefix, is_unneeded)
    await upload_tree(connection, path, tree, progress, copy=False)
    return uploaded


async def _check_runs(connection: Connection, python: str, variables: dict[str, str]) -> None:
    answer = await connection.call({"op": "try", "argv": [python, "-c", "import sys"], "env": variables})
    if answer["code"]:
        raise EnvironmentException(
            f"the environment does not run on {connection.host.title}",
            cause=f"{python}: {answer['said'].strip()}",
            hint="If its system is much older than this one, use a Python of the host, with user_managed=True.",
        )


@lru_cache(maxsize=4)
def _scan_environment(folder: str) -> Tree:
    """Cached: a built environment never changes, and several hosts may need it."""
    return scan(Path(folder), is_compiled)


def is_unneeded(name: str) -> bool:
    """Whether a file or folder of a Python is left out when the Python is uploaded for an environment.

    >>> [is_unneeded(name) for name in ("lib/python3.11/site-packages", "lib/python3.11/json", "bin/python3")]
    [True, False, False]
    """
    return name.endswith(_UNNEEDED_ENDINGS) or _UNNEEDED_FOLDERS.fullmatch(name) is not None


def relocate(tree: Tree, here: str, there: str, python: str) -> Tree:
    """A virtual environment at another path and on another Python; its scripts and its configuration name both."""
    texts, files = list(tree.texts), []
    for name, found in tree.files:
        text = _text_with_path(found, here) if name.startswith("bin/") or name == "pyvenv.cfg" else None
        if text is None:
            files.append((name, found))
        elif name == "pyvenv.cfg":
            texts.append((name, _relocate_configuration(text, here, there, python), 0o644))
        else:
            texts.append((name, make_runnable(text.replace(here, there), there), 0o755))
    links = tuple((name, _relocate_link(name, target, here, there, python)) for name, target in tree.links)
    return replace(tree, files=tuple(files), texts=tuple(texts), links=links)


def make_runnable(text: str, there: str) -> str:
    """A script of the environment at `there` with a first line that the kernel accepts: short, without spaces.

    >>> make_runnable("#!/env/bin/python\\nprint(1)", "/env")
    '#!/env/bin/python\\nprint(1)'
    >>> print(make_runnable("#!/my env/bin/python -s\\nprint(1)", "/my env"))
    #!/bin/sh
    '''exec' '/my env/bin/python' -s "$0" "$@"
    ' '''
    print(1)
    """
    first, _, rest = text.partition("\n")
    if not first.startswith(f"#!{there}/") or (len(first) <= _LONGEST_FIRST_LINE and " " not in there):
        return text
    program, *words = first[len(f"#!{there}") :].split()
    # A command for the shell, an unused string for Python.
    return f"#!/bin/sh\n'''exec' {shlex.join([there + program, *words])} \"$0\" \"$@\"\n' '''\n{rest}"


def _text_with_path(found: Content, here: str) -> str | None:
    """The text of `pyvenv.cfg`, or of a script that names its environment; None for other files."""
    if found.size > _LONGEST_SCRIPT:
        return None
    data = found.path.read_bytes()
    if b"\0" in data or (here.encode() not in data and found.path.name != "pyvenv.cfg"):
        return None
    return data.decode("utf-8", "surrogateescape")


def _relocate_configuration(text: str, here: str, there: str, python: str) -> str:
    lines = [f"home = {os.path.dirname(python)}" if _is_home(line) else line for line in text.splitlines()]
    return "\n".join(lines).replace(here, there) + "\n"


def _is_home(line: str) -> bool:
    return line.partition("=")[0].strip() == "home"


def _relocate_link(name: str, target: str, here: str, there: str, python: str) -> str:
    if re.fullmatch(r"bin/python[\d.]*", name) and target.startswith("/") and not target.startswith(f"{here}/"):
        return python
    return there + target[len(here) :] if target.startswith(f"{here}/") else target

"""Wheels of Horovod for one framework build, one Python and one Open MPI: compiled once per machine and cached."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments.horovod import source
from trainmaster.environments.horovod.compiling import compile_wheel
from trainmaster.environments.horovod.recipes import TOOLS, Order
from trainmaster.environments.open_mpi import OpenMpi
from trainmaster.environments.tools import Tools
from trainmaster.job.agent import durable
from trainmaster.job.errors import EnvironmentException

_NOTE = "wheel.json"
# From site-packages/horovod/<framework>/ to the environment's lib/.
_RPATH = "-Wl,-rpath,$ORIGIN/../../../.."


@dataclass(frozen=True)
class Target:
    """The environment a wheel is built for: its folder, and what decides whether a wheel fits."""

    folder: Path
    frameworks: tuple[str, ...]
    """Name, release and tags of each framework's own wheel."""
    python_abi: str
    open_mpi: OpenMpi

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The folder of compiled wheels: in `$TRAINMASTER_CACHE`, or in the user's cache folder."""
    chosen = environ.get("TRAINMASTER_CACHE")
    if chosen:
        return Path(chosen) / "wheels"
    home = Path(environ.get("HOME") or "~").expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "trainmaster" / "wheels"


def key(order: Order, target: Target) -> str:
    """The cache key of a wheel: a digest of everything the compiled Horovod depends on."""
    parts = [order.digest, target.frameworks, target.python_abi, target.open_mpi.version]
    parts += [platform.machine(), platform.libc_ver()]
    return f"horovod-{order.horovod}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]}"


def any_kept(release: str, environ: Mapping[str, str]) -> bool:
    """Whether any wheel of this release is cached: then no compiler may be needed."""
    return any(cache_folder(environ).glob(f"horovod-{release}-*/{_NOTE}"))


def provide(order: Order, target: Target, tools: Tools) -> tuple[Path, bool]:
    """Return the wheel, and whether it was just compiled. Of several processes that need it, only one compiles."""
    folder = cache_folder(tools.environ)
    place = folder / key(order, target)
    if kept := _find_kept(place):
        print(f"{order.title}: using the wheel compiled earlier on this machine", flush=True)
        return kept, False
    with _lock(folder, place.name):
        if kept := _find_kept(place):
            print(f"{order.title}: using the wheel that another process just compiled", flush=True)
            return kept, False
        _remove_leftovers(place)
        return _make(order, target, place, tools), True


def discard(wheel: Path) -> None:
    """Remove a wheel that does not work."""
    shutil.rmtree(wheel.parent, ignore_errors=True)


def _find_kept(place: Path) -> Path | None:
    """Find the cached wheel, if it is intact."""
    try:
        note = json.loads((place / _NOTE).read_text())
        wheel = place / str(note["wheel"])
        return wheel if _sha256(wheel) == note["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def _lock(folder: Path, name: str) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / f"{name}.lock", "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise EnvironmentException(
            f"compiled wheels cannot be stored in {folder}",
            cause=str(error),
            hint="Set TRAINMASTER_CACHE to another folder.",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that is compiling the same Horovod", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_leftovers(place: Path) -> None:
    """Remove an incomplete wheel, and leftovers of killed builders whose wheel nobody is building now."""
    shutil.rmtree(place, ignore_errors=True)
    for leftover in place.parent.glob(".building-*"):
        name = leftover.name.removeprefix(".building-").rpartition("-")[0]
        if name == place.name or not _is_locked(place.with_name(f"{name}.lock")):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    try:
        with open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _make(order: Order, target: Target, place: Path, tools: Tools) -> Path:
    scratch = place.with_name(f".building-{place.name}-{os.getpid()}")
    ready = scratch / "ready"
    try:
        ready.mkdir(parents=True)
        wheel = _compile(order, target, scratch, place.with_name(f"{place.name}.log"), tools)
        kept = Path(shutil.copy(wheel, ready))
        note = {"wheel": kept.name, "sha256": _sha256(kept), "for": [*target.frameworks, target.python_abi],
                "open_mpi": target.open_mpi.version}  # fmt: skip
        (ready / _NOTE).write_text(json.dumps(note, indent=1))
        durable.flush_below(ready)
        ready.rename(place)
        durable.flush_one(place.parent)
    except OSError as error:
        raise EnvironmentException(
            f"{order.title} could not be compiled in {place.parent}",
            cause=str(error),
            hint="Free disk space, or set TRAINMASTER_CACHE to another folder.",
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place / kept.name


def _compile(order: Order, target: Target, scratch: Path, log: Path, tools: Tools) -> Path:
    """Compile with build tools in `scratch`, so that none of them stays in the environment."""
    overlay = scratch / "tools"
    variables = build_variables(order, target, overlay, tools.environ)
    wanted = [*TOOLS, *(["cmake"] if "HOROVOD_CMAKE" in variables else [])]
    tools.uv(
        ["pip", "install", "--quiet", "--python", str(target.python), "--target", str(overlay),
         *tools.source_options, *wanted],
        f"pip install --target <temporary> {' '.join(wanted)}",
    )  # fmt: skip
    folder = source.prepare(order, scratch, target.python, variables, tools)
    return compile_wheel(order, folder, target.python, variables, log)


def build_variables(order: Order, target: Target, overlay: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the build: the environment and its Open MPI come first, then the build tools."""
    variables = {name: value for name, value in environ.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV")}
    path = [target.open_mpi.programs, f"{target.folder}/bin", environ.get("PATH", os.defpath)]
    variables.update(order.variables, PATH=":".join(path), PYTHONPATH=str(overlay))
    if order.recipes[0].cmake:
        if not shutil.which("cmake", path=variables["PATH"]):
            # The program inside the cmake wheel: its wrapper script would not find its Python here.
            variables["HOROVOD_CMAKE"] = f"{overlay}/cmake/data/bin/cmake"
        if shutil.which("ccache", path=variables["PATH"]):
            variables.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    elif target.open_mpi.programs == f"{target.folder}/bin":
        # Like the output of `mpicxx -show`, but with a path relative to where the wheel will be installed.
        flags = [f"-I{target.folder}/include", "-pthread", f"-L{target.folder}/lib", _RPATH, "-lmpi"]
        variables["HOROVOD_MPICXX_SHOW"] = shlex.join(["echo", shlex.join(["c++", *flags])])
    return variables

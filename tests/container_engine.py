"""A real container engine: podman, with a store of its own, and an image that is made of this machine's Python.

Podman as it comes may refuse to run inside of a container or a small virtual machine. Here it has settings that work
everywhere as root, by its own files; the command lines that are tested stay those that users get.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.packages import ensure
from tests.left_out import require_root

IMAGE = "localhost/trainmaster-test:1"
"""Its Python is the one that runs the tests, as `python`, with nothing installed."""
PATH = "/usr/local/bin:/usr/sbin:/bin"
"""In it."""

_PROGRAMS = {"podman": "podman", "runc": "runc", "conmon": "conmon", "busybox": "busybox-static"}
# The kernel's own limits may be lower than those that podman asks for, and crun refuses mixed versions of cgroups.
_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
_STORAGE = """
[storage]
driver = "{driver}"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""
_UNWANTED = ("test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "tkinter", "lib2to3")
_UNWANTED += ("ensurepip", "turtledemo", "pydoc_data", "distutils", "config-*", "_test*", "_tkinter*", "_curses*")
_OF_LIBC = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libnss_files.so.2", "libnss_dns.so.2")
_SHELL = ("sh", "env", "cat", "sleep", "id", "ls", "mkdir", "mv", "rm", "kill")


class Podman:
    """Podman with its own settings and store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def variables(self) -> dict[str, str]:
        """By which programs of ours, and podman itself, come to use it."""
        return {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "TRAINMASTER_CONTAINER_ENGINE": "podman",
        }

    def run(self, *words: str, given: bytes | None = None) -> str:
        """What a command of podman prints."""
        return self._done(words, given).stdout.decode()

    def logs(self, name: str) -> str:
        """What a container has printed."""
        done = self._done(["logs", name])
        return (done.stdout + done.stderr).decode(errors="replace")

    def _done(self, words: Sequence[str], given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            ["podman", *words], input=given, capture_output=True, env={**os.environ, **self.variables}, check=False
        )
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stderr.decode(errors='replace')}"
        return done

    def containers(self, part: str) -> list[str]:
        """The names of all containers, running or not, that have `part` in them."""
        return [name for name in self.run("ps", "--all", "--format", "{{.Names}}").split() if part in name]


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Installed if need be; its store, with the image, is made once for all processes of a test session."""
    require_root("for containers: podman without root needs more of a machine")
    fault = ensure(lambda: [package for name, package in _PROGRAMS.items() if not _program(name)])
    assert not fault, fault
    place = tmp_path_factory.getbasetemp()
    folder = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "podman"
    folder.mkdir(exist_ok=True)
    engine = Podman(folder)
    with _alone(folder):
        (folder / "containers.conf").write_text(_CONTAINERS)
        if not (folder / "storage.conf").exists():
            _choose_storage(engine)
            add_image(engine, IMAGE)
    return engine


@pytest.fixture(scope="module")
def container_engine(podman: Podman) -> Iterator[Podman]:
    """All that a file of tests starts uses this podman."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in podman.variables.items():
            patch.setenv(name, value)
        yield podman


def _choose_storage(engine: Podman) -> None:
    """Copies of files work everywhere; overlays are quicker, but cannot lie upon each other."""
    for driver in ("overlay", "vfs"):
        folder = engine.folder / driver
        (engine.folder / "storage.conf").write_text(_STORAGE.format(folder=folder, driver=driver))
        answer = subprocess.run(
            ["podman", "info"], capture_output=True, text=True, env={**os.environ, **engine.variables}, check=False
        )
        if answer.returncode == 0:
            return
    raise AssertionError(f"podman cannot be used on this machine: {answer.stderr}")


def add_image(
    engine: Podman,
    name: str,
    python: bool = True,
    files: Mapping[str, Path] | None = None,
    programs: Sequence[str] = (),
) -> None:
    """An image with a shell, this Python, `files` by their places in it, and `programs` of this machine.

    Without Python it has no libc either, only what was linked with one.
    """
    settings = [f"ENV PATH={PATH}", "ENV LD_LIBRARY_PATH=/usr/local/lib"]
    changes = [word for setting in settings for word in ("--change", setting)]
    engine.run("import", *changes, "-", name, given=make_archive(python, files or {}, programs))


def make_archive(python: bool, files: Mapping[str, Path], programs: Sequence[str]) -> bytes:
    """The files of such an image, as a tar archive."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=packed, mode="w") as archive:
        for place in ("tmp", "etc", "proc", "sys", "dev", "root", "var/tmp", "run"):
            folder = tarfile.TarInfo(place)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if place.endswith("tmp") else 0o755
            archive.addfile(folder)
        _add_text(archive, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        _add_text(archive, "etc/group", "root:x:0:\n")
        _add_shell(archive)
        binaries = [*(_add_python(archive, Path(scratch)) if python else ()), *map(_program, programs)]
        binaries += [str(module) for source in files.values() for module in source.rglob("*.so")]
        for program in programs:
            archive.add(os.path.realpath(_program(program)), _program(program).lstrip("/"))
        for library in _libraries(binaries) if binaries else ():
            archive.add(os.path.realpath(library), library.lstrip("/"))
        for place, source in files.items():
            archive.add(source, place.lstrip("/"), filter=_without_caches)
    return packed.getvalue()


def _add_shell(archive: tarfile.TarFile) -> None:
    archive.add(os.path.realpath(_program("busybox")), "bin/busybox")
    for name in _SHELL:
        _add_link(archive, f"bin/{name}", "busybox")


def _add_python(archive: tarfile.TarFile, scratch: Path) -> list[str]:
    """The running Python without its packages; returns the files that need libraries.

    It is made small in `scratch`: every container is a copy of the image.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = os.path.realpath(sys.executable)
    standard = Path(sysconfig.get_path("stdlib"))
    archive.add(program, f"usr/local/bin/{version}")
    _add_link(archive, "usr/local/bin/python", version)
    _add_link(archive, "usr/local/bin/python3", version)
    library = scratch / version
    shutil.copytree(standard, library, ignore=shutil.ignore_patterns(*_UNWANTED))
    own = Path(sysconfig.get_config_var("LIBDIR")) / str(sysconfig.get_config_var("INSTSONAME"))
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        shutil.copy(own, library)
    modules = sorted(library.rglob("*.so*"))
    if _program("strip"):
        subprocess.run([_program("strip"), *modules], check=True)
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        archive.add(library / own.name, f"usr/local/lib/{own.name}")
        (library / own.name).unlink()
    archive.add(library, f"usr/local/lib/{version}")
    return [program, *(str(path) for path in (standard / "lib-dynload").glob("*.so") if path.name in _names(modules))]


def _names(paths: Sequence[Path]) -> set[str]:
    return {path.name for path in paths}


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member


def _libraries(binaries: Sequence[str]) -> list[str]:
    """What the system has to give them, the loader included; nothing that lies with this Python."""
    said = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    words = {word for line in said.splitlines() if line.startswith("\t") for word in line.split()}
    own = os.path.realpath(sys.base_prefix)
    # What belongs to libc, for programs that were linked with an older one, where these were not parts of it yet.
    beside = {os.path.dirname(word) for word in words if os.path.basename(word) == "libc.so.6" and word.startswith("/")}
    words.update(path for place in beside for name in _OF_LIBC if os.path.exists(path := f"{place}/{name}"))
    return sorted(
        word for word in words if word.startswith("/") and (own == "/usr" or not os.path.realpath(word).startswith(own))
    )


def _add_text(archive: tarfile.TarFile, place: str, text: str) -> None:
    member = tarfile.TarInfo(place)
    member.size = len(text.encode())
    archive.addfile(member, io.BytesIO(text.encode()))


def _add_link(archive: tarfile.TarFile, place: str, target: str) -> None:
    link = tarfile.TarInfo(place)
    link.type, link.linkname = tarfile.SYMTYPE, target
    archive.addfile(link)


def _program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") or ""


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""A virtual machine with a kernel of its own: what this machine's kernel does not have (cgroup v2) is tested there.

    machine = VirtualMachine(folder)
    machine.file("/etc/systemd/system/check.service").write_text(...)
    lines = machine.run()       # boots; returns what was written to RESULTS when it is off again

QEMU runs it, without KVM. The kernel is that of Debian's cloud images. It has all files of this machine, read-only
below its own, Trainmaster installed in INSTALLED, and systemd, which starts the unit `check.service` and what that
needs. What it writes is lost. It needs root.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.cluster.hosts import start_holder
from tests.cluster.packages import ensure
from tests.conftest import until
from tests.left_out import require_root
from tests.systemd_machine import INSTALLED, SYSTEMD, file_of, install

RESULTS = "/dev/ttyS1"
"""Where a program of the machine writes lines for the test."""
UNITS = "/etc/systemd/system"
_KERNEL = "linux-image-cloud-amd64"
_FILE_SERVER = "/usr/lib/qemu/virtiofsd"
_MODULES = ("virtio_pci", "virtiofs", "virtio_blk", "overlay")
_PROGRAMS = (
    "trainmaster.cli",
    "trainmaster.dispatcher.__main__",
    "trainmaster.dispatcher.assembly",
    "trainmaster.server.process",
)
_MEMORY = "1536M"
# Targets that units name. Those of this machine would start its services.
_TARGETS = ("sysinit", "basic", "multi-user", "network-online", "shutdown", "umount", "final", "reboot", "rescue")

# The first program of the machine, in its memory: makes the file system, and becomes systemd. `{low}` is this machine.
_INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
{modules}
$b mount -t virtiofs -o ro host /low
$b mount -t devtmpfs dev /dev
$b mount -t ext4 -o ro /dev/vda /disk
$b mount -t tmpfs tmpfs /written
$b mkdir /written/work
$b cp -a /low{layer} /written/upper
$b mount -t overlay -o lowerdir=/low,upperdir=/written/upper,workdir=/written/work overlay /root
$b mount -t devtmpfs dev /root/dev
$b mount -t proc proc /root/proc
$b mount -t tmpfs -o mode=1777 tmpfs /root/tmp
{binds}
# Else systemd takes the machine for a container.
$b rm -f /root/.dockerenv
export SYSTEMD_UNIT_PATH={units}
exec $b switch_root /root {systemd}
"""


class VirtualMachine:
    """A machine that is on for as long as `run` lasts."""

    def __init__(self, folder: Path) -> None:
        require_root("for the files of a virtual machine")
        fault = ensure(_find_missing)
        assert not fault, fault
        self._folder = folder
        self._layer = folder / "layer"
        self._binds = install(self._layer)
        # Copying this large program would take long, and nothing is installed there.
        self.file(f"{INSTALLED}/bin/uv").unlink()
        for place, source in self._binds.items():
            for library in source.glob("lib/libpython*.so.*"):
                self.file(f"/usr/lib/x86_64-linux-gnu/{library.name}").symlink_to(f"{place}/lib/{library.name}")
        for name in _TARGETS:
            self.file(f"{UNITS}/{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        self.file(f"{UNITS}/default.target").write_text("[Unit]\nDefaultDependencies=no\nWants=check.service\n")
        self.file("/etc/fstab").touch()
        self.file("/etc/hostname").write_text("lab\n")

    def file(self, place: str) -> Path:
        """A file of the machine, to be written before it boots."""
        return file_of(self._layer, place)

    def run(self, seconds: float) -> list[str]:
        """Boot, and wait until the machine switches itself off; returns the lines of its results."""
        results, console = self._folder / "results", self._folder / "console"
        with self._files_served() as socket:
            machine = start_holder(self._command(socket, results), console)
            try:
                machine.wait(seconds)
            except subprocess.TimeoutExpired:
                pytest.fail(
                    f"the virtual machine was not done in {seconds} seconds\n{_tail(results)}\n{_tail(console)}"
                )
            finally:
                machine.kill()
                machine.wait()
        if not results.exists() or not results.read_text():
            pytest.fail(f"the virtual machine has no results\n{_tail(console)}")
        return results.read_text().splitlines()

    @contextlib.contextmanager
    def _files_served(self) -> Iterator[Path]:
        """Serve the files of this machine, read-only, at a socket."""
        socket, source, log = self._folder / "files.socket", self._folder / "source", self._folder / "files.log"
        source.mkdir()
        serve = [_FILE_SERVER, f"--socket-path={socket}", "-f", "-o", f"source={source},sandbox=chroot,cache=always"]
        place = shlex.quote(str(source))
        script = f"mount --bind / {place} && mount -o remount,bind,ro {place} && exec {shlex.join(serve)}"
        server = start_holder(["unshare", "--mount", "sh", "-c", script], log)
        try:
            until(lambda: socket.exists() or server.poll() is not None, what="the server of files")
            assert server.poll() is None, _tail(log)
            yield socket
        finally:
            server.kill()
            server.wait()

    def _make_disk(self) -> Path:
        """A disk with Python and our packages: an import asks it less often than the server of files."""
        tree, disk = self._folder / "tree", self._folder / "disk"
        # Compiling them takes minutes there.
        _call(sys.executable, "-c", f"import {', '.join(_PROGRAMS)}", folder=self._folder)
        for place, source in self._binds.items():
            if place == "/opt/packages":
                _copy_packages(source, tree / place.lstrip("/"))
            else:
                shutil.copytree(source, tree / place.lstrip("/"), symlinks=True, ignore=_ignore)
        _call(
            "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(tree), str(disk), "400M", folder=self._folder
        )
        return disk

    def _command(self, socket: Path, results: Path) -> list[str]:
        kernel = _fetch_kernel()
        memory = self._folder / "initramfs"
        memory.write_bytes(self._initramfs(kernel))
        (image,) = kernel.glob("boot/vmlinuz-*")
        settings = "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check systemd.log_target=kmsg"
        return [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", _MEMORY),
            *("-machine", "q35,memory-backend=memory", "-nodefaults", "-display", "none", "-no-reboot"),
            *("-object", f"memory-backend-memfd,id=memory,size={_MEMORY},share=on"),
            *("-chardev", f"socket,id=files,path={socket}", "-device", "vhost-user-fs-pci,chardev=files,tag=host"),
            *("-drive", f"file={self._make_disk()},format=raw,if=virtio,readonly=on"),
            *("-serial", "stdio", "-serial", f"file:{results}"),
            *("-kernel", str(image), "-initrd", str(memory)),
            *("-append", f"{settings} systemd.default_standard_output=kmsg"),
        ]

    def _initramfs(self, kernel: Path) -> bytes:
        modules = _order_modules(kernel, _MODULES)
        binds = [f"$b mkdir -p /root{place}; $b mount --bind /disk{place} /root{place}" for place in self._binds]
        script = _INIT.format(
            modules="\n".join(f"$b insmod /{path.name}" for path in modules),
            layer=self._layer,
            binds="\n".join(binds),
            units=UNITS,
            systemd=SYSTEMD,
        )
        files = [("bin/busybox", Path("/bin/busybox").read_bytes()), ("init", script.encode())]
        folders = ("bin", "dev", "disk", "proc", "low", "written", "root")
        return archive(folders, [*files, *((path.name, path.read_bytes()) for path in modules)])


def archive(folders: Iterable[str], files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive as the kernel reads it (cpio, "newc"). All files are programs."""
    entries = [(name, 0o40755, b"") for name in folders]
    entries += [(name, 0o100755, content) for name, content in files]
    entries.append(("TRAILER!!!", 0, b""))
    out = bytearray()
    for number, (name, mode, content) in enumerate(entries, start=1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        for part in (b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0", content):
            out += part
            out += bytes(-len(out) % 4)
    return bytes(out)


def _order_modules(kernel: Path, wanted: Iterable[str]) -> list[Path]:
    """The modules of the kernel that are wanted, after those that they need."""
    known = {path.stem.replace("-", "_"): path for path in kernel.glob("lib/modules/**/*.ko")}
    found: list[Path] = []
    for name in wanted:
        needed = re.search(rb"\0depends=([^\0]*)\0", known[name].read_bytes())
        names = needed[1].decode().replace("-", "_").split(",") if needed else []
        found += [path for path in _order_modules(kernel, filter(None, names)) if path not in found]
        found += [known[name]] if known[name] not in found else []
    return found


def _copy_packages(source: Path, place: Path) -> None:
    """Copy the packages that Trainmaster needs, with its server, as compiled before."""
    names = {
        file.parts[0]
        for name in _find_packages("trainmaster", "server")
        for file in importlib.metadata.files(name) or ()
    }
    place.mkdir(parents=True)
    for name in names - {"..", "__pycache__"}:
        if (source / name).is_dir():
            shutil.copytree(source / name, place / name, ignore=_ignore)
        elif (source / name).is_file():
            shutil.copy2(source / name, place)


def _find_packages(name: str, extra: str = "") -> set[str]:
    """A package and all that it needs."""
    found = {name}
    for line in importlib.metadata.requires(name) or ():
        needed = Requirement(line)
        if needed.name not in ("trainmaster", "uv") and (not needed.marker or needed.marker.evaluate({"extra": extra})):
            found |= _find_packages(needed.name, *needed.extras)
    return found


def _ignore(folder: str, names: list[str]) -> set[str]:
    """What Python has besides what programs use."""
    unused = {"test", "tests", "idlelib", "tkinter", "ensurepip", "site-packages", "include", "share", "pkgconfig"}
    return {
        name for name in names if name in unused or name.startswith("config-") or name.endswith((".a", ".opt-2.pyc"))
    }


def _find_missing() -> list[str]:
    wanted = {
        "qemu-system-x86": shutil.which("qemu-system-x86_64") and os.path.exists(_FILE_SERVER),
        "busybox-static": os.path.exists("/bin/busybox"),
        "systemd": os.path.exists(SYSTEMD),
    }
    return [name for name, is_there in wanted.items() if not is_there]


def _fetch_kernel() -> Path:
    """The files of Debian's kernel package, which is unpacked once per machine and not installed."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmaster-tests" / "kernel"
    place.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            depends = _call("apt-cache", "depends", _KERNEL, folder=place)
            (name,) = re.findall(r"Depends: (linux-image-\S+)", depends)[:1]
            _call("apt-get", "download", name, folder=place)
            _call("dpkg-deb", "--extract", str(next(place.glob("*.deb"))), ".", folder=place)
            (place / "complete").touch()
    return place


def _call(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _tail(path: Path) -> str:
    """The last lines of a log."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return "\n".join([f"{path.name}:", *lines[-40:]])

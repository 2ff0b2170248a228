"""A machine whose first process is systemd: namespaces on this one, with this machine's files below its own.

    with Machine(folder) as machine:
        machine.run("systemctl", "start", "example")
        machine.reboot()

What it writes is below `folder` and stays when it reboots. It dies with the tests. It needs root, `unshare`, `nsenter`
and systemd.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.hosts import holder
from tests.cluster.packages import ensure
from tests.conftest import until
from tests.left_out import require_root

SYSTEMD = "/lib/systemd/systemd"
INSTALLED = "/opt/trainmaster"
"""Where Trainmaster is installed in it, as the guide says."""
_SOURCE = Path(__file__).resolve().parents[1] / "src"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
# What this machine starts at boot is not started there.
_HIDDEN = ("etc/systemd/system", "etc/init.d")
# Devices of its own: systemd changes the owners of some.
_DEVICES = {
    "null": "1 3",
    "zero": "1 5",
    "full": "1 7",
    "random": "1 8",
    "urandom": "1 9",
    "tty": "5 0",
    "console": "1 3",
}

# Runs as the first process of the machine, and becomes its systemd.
_BOOT = """
set -e
mount --make-rprivate /
root={folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/written,workdir={folder}/work $root
mount -t proc proc $root/proc
mount -t sysfs -o ro sysfs $root/sys
mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs $root/dev
{devices}
mkdir $root/dev/pts $root/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts $root/dev/pts
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
mount -t tmpfs -o mode=1777 tmpfs $root/dev/shm
mount -t tmpfs -o mode=755 tmpfs $root/run
mount -t tmpfs -o mode=1777 tmpfs $root/tmp
{binds}
hostname lab
ip link set lo up
chroot $root ldconfig
cd $root
pivot_root . old
umount -l /old
exec env -i container=lxc PATH={path} {systemd} --log-target=journal
"""


class Machine:
    """A context: on from its beginning to its end, with Trainmaster installed from this source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ends = contextlib.ExitStack()
        self._first = 0

    def __enter__(self) -> Machine:
        require_root("for a machine with systemd")
        fault = ensure(lambda: [] if os.path.exists(SYSTEMD) and shutil.which("dbus-daemon") else ["systemd", "dbus"])
        assert not fault, fault
        for name in ("root", "work", "written/old", *(f"written/{place}" for place in _HIDDEN)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for place in _HIDDEN:
            os.setxattr(self.folder / "written" / place, "trusted.overlay.opaque", b"y")
        self.file("/etc/fstab").touch()
        self.file("/etc/hostname").write_text("lab\n")
        self._binds = install(self.folder / "written")
        self._boot()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def file(self, place: str) -> Path:
        """A file of the machine that is written before its first boot."""
        return file_of(self.folder / "written", place)

    def run(self, *command: str, user: str = "", variables: Mapping[str, str] | None = None) -> str:
        """What a command prints that is run on the machine."""
        done = self.attempt(*command, user=user, variables=variables)
        assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def attempt(
        self, *command: str, user: str = "", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command that is run on the machine, and may fail."""
        words = ["nsenter", f"--target={self._first}", "--all", "--wd=/", "--"]
        words += ["runuser", "--user", user, "--"] if user else []
        words += ["env", "-i", f"PATH={INSTALLED}/bin:{_PATH}", *(f"{k}={v}" for k, v in (variables or {}).items())]
        return subprocess.run([*words, *command], capture_output=True, text=True, check=False)

    def reboot(self) -> None:
        """As its administrator would; returns when it is up again."""
        self.attempt("systemctl", "reboot")
        until(lambda: self._holder.poll() is not None, what="the reboot")
        self._ends.close()
        self._boot()

    def _boot(self) -> None:
        with contextlib.ExitStack() as ends:
            cgroup = _make_cgroup()
            ends.callback(_remove_cgroup, cgroup)
            words = ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child"]
            join = f"echo $$ > {shlex.quote(str(cgroup))}/cgroup.procs; exec {shlex.join(words)} sh -c "
            self._holder = ends.enter_context(holder(["sh", "-c", join + shlex.quote(self._script())]))
            (self._first,) = until(lambda: _children(self._holder.pid), what="the first process of the machine")
            self._ends = ends.pop_all()
        until(lambda: self.attempt("systemctl", "is-active", "multi-user.target").returncode == 0)

    def _script(self) -> str:
        binds = "\n".join(
            f"mkdir -p $root{place}; mount --bind {shlex.quote(str(source))} $root{place}"
            for place, source in self._binds.items()
        )
        folder = shlex.quote(str(self.folder))
        devices = "\n".join(f"mknod -m 666 $root/dev/{name} c {number}" for name, number in _DEVICES.items())
        return _BOOT.format(folder=folder, devices=devices, binds=binds, path=_PATH, systemd=SYSTEMD)


def install(layer: Path) -> dict[str, Path]:
    """Write a virtual environment that has our packages, into a layer of files; returns what is mounted for it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(os.path.realpath(sys.base_prefix))
    # The unit hides homes from the server, and this Python may be in one.
    place = "/opt/python" if base.is_relative_to("/root") or base.is_relative_to("/home") else str(base)
    _link(file_of(layer, f"{INSTALLED}/bin/python"), f"{place}/bin/{version}")
    _link(file_of(layer, f"{INSTALLED}/bin/python3"), "python")
    file_of(layer, f"{INSTALLED}/pyvenv.cfg").write_text(f"home = {place}/bin\n")
    file_of(layer, f"{INSTALLED}/lib/{version}/site-packages/here.pth").write_text("/opt/source\n/opt/packages\n")
    program = file_of(layer, f"{INSTALLED}/bin/trainmaster")
    program.write_text(f"#!{INSTALLED}/bin/python\nfrom trainmaster.cli import main\nraise SystemExit(main())\n")
    program.chmod(0o755)
    own = Path(sys.executable).parent
    shutil.copy(own / "uv", file_of(layer, f"{INSTALLED}/bin/uv"))
    file_of(layer, "/etc/ld.so.conf.d/python.conf").write_text(f"{place}/lib\n")
    packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    return {"/opt/source": _SOURCE, "/opt/packages": packages} | ({place: base} if place != str(base) else {})


def file_of(layer: Path, place: str) -> Path:
    """The path of a machine's file in a layer of files, in a folder that exists."""
    found = layer / place.lstrip("/")
    found.parent.mkdir(parents=True, exist_ok=True)
    return found


def _link(place: Path, target: str) -> None:
    place.symlink_to(target)


def _make_cgroup() -> Path:
    """A group for all processes of a machine, so that its systemd never sees those of this one."""
    unified = Path("/sys/fs/cgroup/unified")
    group = (unified if unified.exists() else unified.parent) / f"trainmaster-machine-{uuid.uuid4().hex[:12]}"
    group.mkdir()
    return group


def _remove_cgroup(group: Path) -> None:
    """Once its processes, which were just killed, are gone."""
    until(lambda: "populated 0" in (group / "cgroup.events").read_text(), what="the end of a machine")
    for folder, _, _ in os.walk(group, topdown=False):
        os.rmdir(folder)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

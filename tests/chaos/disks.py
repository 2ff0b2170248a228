"""A disk that loses power: ext4 in a file, whose journal is aborted. Whatever was not flushed by then is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import until
from tests.left_out import require_root


class Disk:
    """Mounting needs root and loop devices."""

    def __init__(self, folder: Path, megabytes: int = 256) -> None:
        require_root("to mount a disk through a loop device")
        self._image = folder / "disk.img"
        self.path = folder / "disk"
        self.path.mkdir()
        with open(self._image, "wb") as file:
            file.truncate(megabytes << 20)
        _run("mkfs.ext4", "-q", str(self._image))
        self._mount()

    def cut_power(self) -> None:
        """The machine goes down, with all of our processes that use the disk, and comes up again."""
        _run("mount", "-o", "remount,abort", str(self.path))
        self.close()
        # 1: errors were corrected, which is what it is for.
        _run("fsck.ext4", "-fy", str(self._image), well=(0, 1))
        self._mount()

    def close(self) -> None:
        """Ends what uses the disk, and takes it away."""
        until(lambda: not self._end_users(), what="the end of the processes on the disk")
        until(self._is_unmounted, what="a disk that nobody uses")

    def _mount(self) -> None:
        # Nothing is written by itself after a few seconds: what survives was flushed by somebody.
        _run("mount", "-o", "loop,commit=600", str(self._image), str(self.path))

    def _is_unmounted(self) -> bool:
        return subprocess.run(["umount", str(self.path)], check=False, capture_output=True).returncode == 0

    def _end_users(self) -> list[int]:
        """Again and again: an agent whose script is gone starts a dispatcher before it is ended itself."""
        users = list(self._users())
        for pid in users:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return users

    def _users(self) -> Iterator[int]:
        inside = f"{self.path}/"
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                links = [f"{entry.path}/cwd", f"{entry.path}/exe", *_links_below(f"{entry.path}/fd")]
                if any(_target(link).startswith(inside) for link in links):
                    yield int(entry.name)


def _links_below(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    return []


def _target(link: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(link)
    return ""


def _run(*command: str, well: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in well, f"{' '.join(command)}: {done.stdout}{done.stderr}"

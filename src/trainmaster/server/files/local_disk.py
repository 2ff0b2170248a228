"""Whether a folder is on a disk of this machine, where looking at a file takes microseconds.

On a file system of the network it may take seconds, and must not be done on the event loop.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})


@lru_cache(maxsize=1024)
def is_on_local_disk(folder: str) -> bool:
    """Whether the folder is on a local disk. If that cannot be found out, it is not."""
    try:
        device = os.stat(folder).st_dev
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return False
    return find_kind(mounts, os.major(device), os.minor(device)) in _LOCAL


def find_kind(mounts: str, major: int, minor: int) -> str:
    """The kind of the file system on a device, in the lines of `/proc/self/mountinfo`; empty if it is not there.

    >>> find_kind("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue", 98, 0)
    'ext4'
    """
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 2 and words[2] == f"{major}:{minor}" and "-" in words[:-1]:
            return words[words.index("-") + 1]
    return ""

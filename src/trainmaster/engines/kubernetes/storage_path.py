"""Where this machine sees the volume of a target's storage."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_settings import Storage, read_settings, write_settings
from trainmaster.shared.records import TargetRecord

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def with_storage_path(target: TargetRecord, workspace: Path) -> TargetRecord:
    """The target with the path of its storage, if it has one; refuses a path that the workspace is not in."""
    settings = read_settings(target.options)
    if settings.storage is None:
        return target
    claim, path = settings.storage.claim, settings.storage.path
    if not path:
        path = find_mount_point(workspace, claim)
    elif not os.path.isdir(path):
        raise ComputeTargetException(
            f"the storage's path {path} is not a folder of this machine",
            hint=f"Mount the volume of claim '{claim}' here, and name where: storage='claim={claim},path=/mnt/shared'.",
        )
    elif not workspace.resolve().is_relative_to(Path(path).resolve()):
        raise ComputeTargetException(
            f"the workspace {workspace} is not in the storage {path}",
            cause="Pods must see the workspace's files under the same path.",
            hint=f"Create the workspace there: Workspace.create(name, path='{path}/workspace').",
        )
    changed = write_settings(replace(settings, storage=Storage(claim, path)))
    return replace(target, options={**target.options, "storage": changed["storage"]})


def find_mount_point(workspace: Path, claim: str) -> str:
    """Where the file system of the workspace is mounted, which is taken for the claim's volume."""
    folder = workspace.resolve()
    points = read_mount_points(_MOUNTS.read_text()) - {"/"}
    found = next((str(each) for each in (folder, *folder.parents) if str(each) in points), "")
    if not found:
        raise ComputeTargetException(
            f"it is not known where this machine sees the volume of claim '{claim}'",
            cause=f"The workspace {workspace} is not on a volume that is mounted by itself.",
            hint=f"Name its path: storage='claim={claim},path=/mnt/shared'. The workspace must be in it.",
        )
    return found


def read_mount_points(text: str) -> set[str]:
    """The mount points in /proc/self/mountinfo, also of folders that are mounted at a second place.

    >>> sorted(read_mount_points("1 0 8:1 / / rw - ext4 /dev/a rw\\n2 1 0:9 / /mnt/a\\\\040b rw - nfs4 host:/x rw\\n"))
    ['/', '/mnt/a b']
    """
    fields = [line.split(" ") for line in text.splitlines()]
    return {_ESCAPED.sub(lambda found: chr(int(found[1], 8)), each[4]) for each in fields if len(each) > 4}

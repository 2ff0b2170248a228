"""Makes an image of one layer from a folder, as `ctr image import` reads it: image.py NAME FOLDER OUTPUT.tar"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

ENVIRONMENT = ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONUNBUFFERED=1"]


def main(name: str, root: Path, output: Path) -> None:
    """Write the image; it is complete or absent."""
    layer, unfinished = output.with_suffix(".layer"), output.with_suffix(".unfinished")
    with tarfile.open(layer, "w") as archive:
        for entry in sorted(os.listdir(root)):
            archive.add(root / entry, entry, filter=_owned_by_root)
    with open(layer, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = json.dumps(_describe(root, digest)).encode()
    described = hashlib.sha256(configuration).hexdigest() + ".json"
    manifest = json.dumps([{"Config": described, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(unfinished, "w") as archive:
        for member, content in ((described, configuration), ("manifest.json", manifest)):
            head = tarfile.TarInfo(member)
            head.size = len(content)
            archive.addfile(head, io.BytesIO(content))
        archive.add(layer, "layer.tar")
    layer.unlink()
    unfinished.rename(output)


def _describe(root: Path, digest: str) -> dict[str, object]:
    command = ["/pause"] if (root / "pause").exists() else ["sh"]
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ENVIRONMENT, "Cmd": command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

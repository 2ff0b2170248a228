"""Easy ways to fill a source folder, and to read a snapshot back."""

import os
import time
from pathlib import Path

from trainmaster.job.agent.layout import lay_out
from trainmaster.snapshots import Snapshot, take_snapshot


def fill(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def laid_out(workspace: Path, snapshot: Snapshot, name: str = "out") -> Path:
    """The snapshot as a folder again, the way a node makes it."""
    destination = workspace.parent / name
    lay_out(workspace / "snapshots" / f"{snapshot.id}.json", workspace / "blobs", destination)
    return destination


def contents(folder: Path) -> dict[str, str]:
    """Every file, link (-> target) and empty folder (/) below `folder`."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        elif not any(path.iterdir()):
            found[name] = "/"
    return found


def taken(source: Path, workspace: Path) -> dict[str, str]:
    """What a snapshot of `source` holds, read back through a fresh layout."""
    snapshot = take_snapshot(source, workspace)
    return contents(laid_out(workspace, snapshot, f"out-{os.urandom(4).hex()}"))


def let_it_settle(folder: Path) -> None:
    """Wait until nothing below `folder` is too young to be trusted from the cache."""
    newest = max(path.lstat().st_ctime for path in (folder, *folder.rglob("*")))
    while time.time() < newest + 0.12:
        time.sleep(0.01)

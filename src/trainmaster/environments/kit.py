"""The kit: the job side of Trainmaster, copied into the workspace as jobs import it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_NAMES = Path("runtime", "names")
_MAKING_PREFIX = ".making-"


def ensure_kit(workspace: Path) -> Path:
    """The folder to put first on a job's PYTHONPATH; made if the workspace does not have it yet.

    It is named by the digest of its contents and appears under that name only when complete: a running job
    keeps the kit it was started with, whatever is installed meanwhile.
    """
    digest, contents = _job_side()
    kit = workspace / "kits" / digest
    if not kit.is_dir():
        _make(kit, contents)
    return kit


@cache
def _job_side() -> tuple[str, dict[str, bytes]]:
    """The files of a kit by their relative paths, and the digest of them all."""
    contents = {
        "trainmaster/__init__.py": _PACKAGE / "__init__.py",
        "trainmaster/errors.py": _PACKAGE / "errors.py",
    }
    names = _PACKAGE / _NAMES
    for folder in (_PACKAGE / "runtime", _PACKAGE / "node"):
        for path in folder.rglob("*.py"):
            if path.is_relative_to(names):
                contents[path.relative_to(names).as_posix()] = path
            else:
                contents[Path("trainmaster", path.relative_to(_PACKAGE)).as_posix()] = path
    read = {name: contents[name].read_bytes() for name in sorted(contents)}
    digest = hashlib.sha256()
    for name, text in read.items():
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:32], read


def _make(kit: Path, contents: dict[str, bytes]) -> None:
    kit.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=_MAKING_PREFIX, dir=kit.parent))
    try:
        for name, text in contents.items():
            path = making / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        # mkdtemp makes it private; jobs of other users of the workspace import it too.
        making.chmod(0o755)
        making.rename(kit)
    except OSError:
        # Another process may have been faster: a folder with contents is never replaced by a rename.
        if not kit.is_dir():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)

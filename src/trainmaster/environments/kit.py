"""The kit: the job side of Trainmaster, copied into the workspace in the form that jobs import."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from trainmaster.job.agent import durable

_PACKAGE = Path(__file__).resolve().parents[1]
_NAMES = Path("job", "script", "names")
_MAKING_PREFIX = ".making-"
# Entry points by which MLflow finds our plugins in every Python a job may use.
_PLUGIN = {
    "trainmaster_job-0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: trainmaster-job\nVersion: 0\n",
    "trainmaster_job-0.dist-info/entry_points.txt": (
        b"[mlflow.tracking_store]\ntrainmaster = trainmaster.job.script.mlflow.store:JobStore\n"
        b"[mlflow.artifact_repository]\ntrainmaster = trainmaster.job.script.mlflow.files:JobFiles\n"
        b"trainmaster-files = trainmaster.job.script.mlflow.asked_files:AskedFiles\n"
        b"[mlflow.model_registry_store]\ntrainmaster = trainmaster.job.script.mlflow.registry:JobRegistry\n"
    ),
}
_ABANDONED_AFTER_SECONDS = 3600
# The kits that this process has created or verified.
_whole: set[Path] = set()


def ensure_kit(workspace: Path) -> Path:
    """Return the folder to put first on a job's PYTHONPATH; create it if the workspace does not have it yet.

    Its name is the digest of its contents, and it gets that name only when complete. A running job keeps the kit it
    was started with, even if Trainmaster is upgraded.
    """
    digest, contents = _job_side()
    kit = workspace / "kits" / digest
    there = kit.is_dir()
    if there and kit in _whole:
        return kit
    if there:
        _mend(kit, contents)
    else:
        _make(kit, contents)
    _whole.add(kit)
    return kit


@cache
def _job_side() -> tuple[str, dict[str, bytes]]:
    """Read the files of the kit; return their digest, and the files by relative path."""
    contents = {
        "trainmaster/__init__.py": _PACKAGE / "__init__.py",
        "trainmaster/onnx.py": _PACKAGE / "onnx.py",
    }
    names = _PACKAGE / _NAMES
    for path in (_PACKAGE / "job").rglob("*.py"):
        if path.is_relative_to(names):
            contents[path.relative_to(names).as_posix()] = path
        else:
            contents[Path("trainmaster", path.relative_to(_PACKAGE)).as_posix()] = path
    read = {**{name: contents[name].read_bytes() for name in sorted(contents)}, **_PLUGIN}
    digest = hashlib.sha256()
    for name, text in read.items():
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:32], read


def _make(kit: Path, contents: dict[str, bytes]) -> None:
    kit.parent.mkdir(parents=True, exist_ok=True)
    _drop_abandoned(kit.parent)
    making = Path(tempfile.mkdtemp(prefix=_MAKING_PREFIX, dir=kit.parent))
    try:
        for name, text in contents.items():
            path = making / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        # mkdtemp makes the folder private, but jobs of other users of the workspace import it too.
        making.chmod(0o755)
        making.rename(kit)
    except OSError:
        # Another process may have been faster: a rename never replaces a folder that has contents.
        if not kit.is_dir():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _mend(kit: Path, contents: dict[str, bytes]) -> None:
    """Restore files of a kit that a power failure or a person damaged."""
    for name, text in contents.items():
        path = kit / name
        if not path.is_file() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.write_unflushed(path, text, mode=0o644)


def _drop_abandoned(kits: Path) -> None:
    """Remove what killed processes left behind."""
    for path in kits.glob(_MAKING_PREFIX + "*"):
        try:
            abandoned = time.time() - path.stat().st_mtime > _ABANDONED_AFTER_SECONDS
        except FileNotFoundError:
            continue
        if abandoned:
            shutil.rmtree(path, ignore_errors=True)

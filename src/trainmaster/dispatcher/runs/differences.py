"""What differs between two runs of a workspace."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.plans import read_claim
from trainmaster.environments.lock import pins
from trainmaster.job.errors import SnapshotException
from trainmaster.shared.attempts import current_attempt
from trainmaster.shared.differences import (
    FileDifference,
    RunDifferences,
    compare_code,
    compare_values,
    list_arguments,
    list_environment,
    list_settings,
)
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import MetricSummary, RunRecord
from trainmaster.snapshots.blobs import blob_path
from trainmaster.snapshots.uploads import is_digest
from trainmaster.snapshots.verify import load_manifest

_FACTS = ("experiment", "target", "nodes", "type", "submitted_by", "display_name", "description", "snapshot_id")
_MOST_SECONDS = 5.0


def compare_runs(
    folder: WorkspaceFolder, runs: Sequence[RunRecord], metrics: Sequence[Sequence[MetricSummary]]
) -> RunDifferences:
    """What differs between two runs, given their metrics. Takes seconds if much of their code differs."""
    folders = [folder.run(run.id) for run in runs]
    locks = [_read_lock(each) for each in folders]
    files, notices = _compare_snapshots(folder, [run.snapshot_id for run in runs])
    for run, lock in zip(runs, locks, strict=True):
        if lock is None and run.spec and (text := _explain_missing_lock(run)) not in notices:
            notices.append(text)
    return RunDifferences(
        runs[0].id,
        runs[1].id,
        compare_values(*({**list_arguments(run.spec), **run.params} for run in runs)),
        compare_values(*({**list_settings(run.spec), **_list_facts(run)} for run in runs)),
        compare_values(*(list_environment(run.spec) for run in runs)),
        compare_values(*(_list_packages(lock) for lock in locks)) if None not in locks else (),
        compare_values(*({each.name: str(each.last) for each in found} for found in metrics)),
        files,
        tuple(notices),
        compare_values(*map(describe_machines, folders)),
    )


def describe_machines(run: RunFolder) -> dict[str, str]:
    """The machines of a run's last attempt, as their agents described them; empty if none has started."""
    nodes = current_attempt(run).nodes
    folders = sorted(nodes.iterdir(), key=lambda path: path.name.zfill(9)) if nodes.is_dir() else []
    machines = [_describe(claim) for folder in folders if (claim := read_claim(folder))]
    names = dict.fromkeys(name for machine in machines for name in machine)
    return {name: ", ".join(_each_once(machine.get(name, "") for machine in machines)) for name in names}


def _describe(claim: Mapping[str, Any]) -> dict[str, str]:
    described = claim.get("machine")
    more = described if isinstance(described, dict) else {}
    return {"host": str(claim.get("host", "")), **{str(name): str(value) for name, value in more.items()}}


def _each_once(texts: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(text for text in texts if text)


def _read_lock(run: RunFolder) -> str | None:
    try:
        return run.environment_lock.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _explain_missing_lock(run: RunRecord) -> str:
    if list_environment(run.spec).get("user_managed") == "true":
        return "The packages of a Python that its user manages are not known."
    return f"Run {run.id} has no lock of its packages."


def _list_facts(run: RunRecord) -> dict[str, str]:
    facts: dict[str, Any] = {name: getattr(run, name) for name in _FACTS}
    facts["nodes"] = list(run.nodes)
    shown = {name: str(value) for name, value in facts.items() if value}
    return {**shown, **{f"tag.{name}": str(value) for name, value in run.tags.items()}}


def _list_packages(lock: str | None) -> dict[str, str]:
    return {pin.name: pin.version or pin.source for pin in pins(lock or "")}


def _compare_snapshots(
    folder: WorkspaceFolder, snapshots: Sequence[str]
) -> tuple[tuple[FileDifference, ...], list[str]]:
    if snapshots[0] == snapshots[1]:
        return (), []
    sides: list[dict[str, str]] = []
    for snapshot in snapshots:
        if not is_digest(snapshot):
            return (), ["One of the runs has no code."]
        try:
            sides.append(_list_files(folder, snapshot))
        except SnapshotException:
            return (), [f"Snapshot {snapshot} is not in this workspace any more."]
    end = time.monotonic() + _MOST_SECONDS
    return compare_code(sides[0], sides[1], partial(_read, folder.blobs), lambda: time.monotonic() < end)


def _list_files(folder: WorkspaceFolder, snapshot_id: str) -> dict[str, str]:
    """Path to digest. Names that are not UTF-8 are shown with marks in the place of their bytes."""
    manifest = load_manifest(folder.path, snapshot_id)
    return {file.path.encode("utf-8", "replace").decode(): file.digest for file in manifest.files}


def _read(blobs: Path, digest: str, size: int) -> bytes | None:
    if not is_digest(digest):
        return None
    try:
        handle = os.open(blob_path(str(blobs), digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        return os.pread(handle, size, 0) if stat.S_ISREG(found.st_mode) and found.st_size <= size else None
    finally:
        os.close(handle)

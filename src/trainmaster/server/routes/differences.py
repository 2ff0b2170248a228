"""What differs between two runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread

from trainmaster.environments.lock import pins
from trainmaster.job.errors import SnapshotException
from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.files.content_kinds import find_kind, open_content
from trainmaster.server.files.opening import NotBeneathError
from trainmaster.server.permissions import Permission
from trainmaster.shared.differences import (
    FileDifference,
    RunDifferences,
    compare_code,
    compare_values,
    list_arguments,
    list_environment,
    list_settings,
)
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.snapshots.uploads import is_digest
from trainmaster.snapshots.verify import load_manifest

_FACTS = ("experiment", "target", "nodes", "type", "submitted_by", "display_name", "description", "snapshot_id")
# Comparing lines takes processor time: not more than one of the server's threads.
_turns = CapacityLimiter(1)
_MOST_SECONDS = 5.0


async def compare_runs(call: Call, run_id: str, other: str) -> RunDifferences:
    """What differs between two runs: arguments, settings, environment, packages, metrics and code."""
    runs = [await call.ask("runs.get", run_id=each) for each in (run_id, other)]
    locks = [await call.ask("runs.environment_lock", run_id=each) for each in (run_id, other)]
    metrics = [await call.ask("runs.metrics", run_id=each) for each in (run_id, other)]
    snapshots = [run["snapshot_id"] for run in runs]
    compare = partial(_compare_snapshots, call.workspace.folder, snapshots)
    files, notices = await to_thread.run_sync(compare, limiter=_turns)
    for run, lock in zip(runs, locks, strict=True):
        if lock is None and run["spec"]:
            notices.append(f"Run {run['id']} has no lock of its packages.")
    specs = [run["spec"] for run in runs]
    return RunDifferences(
        run_id,
        other,
        compare_values(*({**list_arguments(run["spec"]), **run["params"]} for run in runs)),
        compare_values(*({**list_settings(run["spec"]), **_list_facts(run)} for run in runs)),
        compare_values(*(list_environment(spec) for spec in specs)),
        compare_values(*(_list_packages(lock) for lock in locks)) if None not in locks else (),
        compare_values(*({each["name"]: _show(each["last"]) for each in found} for found in metrics)),
        files,
        tuple(notices),
    )


def _list_facts(run: dict[str, Any]) -> dict[str, str]:
    facts = {name: run[name] for name in _FACTS}
    shown = {name: value if isinstance(value, str) else _show(value) for name, value in facts.items() if value}
    return {**shown, **{f"tag.{name}": _show(value) for name, value in run["tags"].items()}}


def _show(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


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
    return compare_code(sides[0], sides[1], partial(_read, folder), lambda: time.monotonic() < end)


def _list_files(folder: WorkspaceFolder, snapshot_id: str) -> dict[str, str]:
    """Path to digest. Names that are not UTF-8 are shown with marks in the place of their bytes."""
    manifest = load_manifest(folder.path, snapshot_id)
    return {file.path.encode("utf-8", "replace").decode(): file.digest for file in manifest.files}


def _read(folder: WorkspaceFolder, digest: str, size: int) -> bytes | None:
    if not is_digest(digest):
        return None
    try:
        file = open_content(find_kind("snapshots"), folder, digest)
    except NotBeneathError:
        return None
    try:
        return os.pread(file.handle, size, 0) if file.size <= size else None
    finally:
        file.close()


ROUTES = (
    Route(
        "GET",
        f"{WORKSPACE}/runs/{{run_id}}/differences/{{other}}",
        compare_runs,
        Permission.READ,
        "What differs between two runs: arguments, settings, packages, metrics, code",
        "runs",
    ),
)

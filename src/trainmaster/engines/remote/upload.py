"""What a run needs on a host: the kit, its code, its data and its environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.contents import (
    Content,
    Progress,
    Tree,
    ignore_progress,
    is_compiled,
    is_missing,
    scan,
    scan_data,
    upload_contents,
    upload_tree,
)
from trainmaster.engines.remote.data import read_run_data
from trainmaster.engines.remote.environments import RemoteEnvironment, upload_environment
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json

_MEGABYTE = 1024 * 1024


async def upload_run(
    connection: Connection,
    nodes: Nodes,
    spec: JobSpec,
    workspace: WorkspaceFolder,
    kit: Path,
    report: Callable[[str], None],
) -> RemoteEnvironment:
    """Uploads everything that the run needs on one host. `report` gets sentences about the progress."""

    def progress_of(what: str) -> Progress:
        def progress(done: int, total: int) -> None:
            part = f"{done // _MEGABYTE} of {total // _MEGABYTE} MB"
            report(f"uploading the {what} to {connection.host.label}: {part}" if done < total else "")

        return progress

    await _upload_kit(connection, kit)
    if resumes(nodes):
        # Also its outputs, which may be large.
        await _upload_data(connection, f"runs/{nodes.run_id}/code", nodes.folder.code, progress_of("working folder"))
    else:
        await _upload_snapshot(connection, workspace, spec.snapshot_id)
    for name, path in read_run_data(nodes.folder).uploads.items():
        await _upload_data(connection, f"runs/{nodes.run_id}/{name}", path, progress_of("data"))
    folder = environment_to_upload(nodes, spec)
    if not folder:
        return RemoteEnvironment()
    return await upload_environment(connection, Path(folder), progress_of("environment"))


def resumes(nodes: Nodes) -> bool:
    """Whether the working folder is a copy of the one of an earlier run, which is on this machine."""
    # Later attempts find the folder where the first one worked.
    plan = read_json(nodes.folder.node(0) / "plan.json") if nodes.folder.attempt == 1 else None
    return plan is not None and plan.get("layout") is None


async def _upload_kit(connection: Connection, kit: Path) -> None:
    path = f"kits/{kit.name}"
    if await is_missing(connection, path):
        tree = await asyncio.to_thread(scan, kit, is_compiled)
        await upload_tree(connection, path, tree, ignore_progress, copy=True)


async def _upload_snapshot(connection: Connection, workspace: WorkspaceFolder, name: str) -> None:
    """The manifest follows the contents, so that a snapshot with a manifest is whole."""
    path = f"snapshots/{name}.json"
    if not await is_missing(connection, path):
        return
    text = (workspace.snapshots / f"{name}.json").read_bytes()
    files, blobs = json.loads(text)["files"], workspace.blobs
    contents = [Content(each["digest"], blobs / each["digest"][:2] / each["digest"], each["size"]) for each in files]
    await upload_contents(connection, contents, ignore_progress)
    await connection.send({"op": "file", "path": path}, text)
    await connection.call({"op": "flush"})


async def upload_earlier_attempts(
    connection: Connection, nodes: Nodes, spec: JobSpec, workspace: WorkspaceFolder
) -> None:
    """Gives a host that has nothing of the run yet what earlier attempts left: the working folder begins with the
    code and with the files that came back, and journals go on where they ended.
    """
    top = f"runs/{nodes.run_id}"
    if await is_missing(connection, f"{top}/code"):
        manifest = (workspace.snapshots / f"{spec.snapshot_id}.json").read_bytes()
        tree = await asyncio.to_thread(_merge, json.loads(manifest), workspace.blobs, nodes.folder.code)
        await upload_tree(connection, f"{top}/code", tree, ignore_progress, copy=True)
    if await is_missing(connection, f"{top}/journals"):
        journals = await asyncio.to_thread(scan, nodes.folder.journals, lambda name: name.startswith("."))
        await upload_tree(connection, f"{top}/journals", journals, ignore_progress, copy=True)


def _merge(manifest: Mapping[str, Any], blobs: Path, code: Path) -> Tree:
    """The files of a snapshot, with those of a working folder in their place."""
    found = scan_data(code)
    files = {
        each["path"]: Content(
            each["digest"] + ("x" if each["executable"] else ""),
            blobs / each["digest"][:2] / each["digest"],
            each["size"],
        )
        for each in manifest["files"]
    }
    files.update(found.files)
    links = tuple((each["path"], each["target"]) for each in manifest["links"] if each["path"] not in files)
    folders = {*manifest["folders"], *found.folders, *(str(Path(name).parent) for name in files)} - {"."}
    return Tree(tuple(sorted(folders)), tuple(files.items()), links)


async def _upload_data(connection: Connection, path: str, local: Path, progress: Progress) -> None:
    """The data is copied, because the script may change it."""
    top = str(Path(path).parent) if local.is_file() else path
    if local.exists() and await is_missing(connection, top):
        await upload_tree(connection, top, await asyncio.to_thread(scan_data, local), progress, copy=True)


def environment_to_upload(nodes: Nodes, spec: JobSpec) -> str:
    """The folder of the environment to upload; empty if the run uses a Python of the host."""
    return "" if spec.environment.user_managed else environment_folder(nodes)


def environment_folder(nodes: Nodes) -> str:
    """The folder of the environment that was built for the run; empty if the user provides one."""
    return str((read_json(nodes.folder.path / "environment.json") or {}).get("folder") or "")


def check_no_container(spec: JobSpec) -> None:
    """Raises an error for a run that needs an image."""
    if spec.environment.container is not None:
        raise EnvironmentException(
            "containers are not supported on hosts over SSH",
            hint="Leave out the image: the packages of the environment are uploaded to the host.",
        )

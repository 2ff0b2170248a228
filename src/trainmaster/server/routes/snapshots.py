"""Snapshots and lists of models' files: they are stored when all their contents are here."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from anyio import to_thread
from starlette.responses import Response

from trainmaster.job.errors import SnapshotException
from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.files.conflicts import answer_conflict
from trainmaster.server.files.content_kinds import check_digest, find_kind, open_content
from trainmaster.server.files.opening import NotBeneathError, OpenFile, open_beneath
from trainmaster.server.files.receiving import read_pieces
from trainmaster.server.files.sending import SAFE_HEADERS, FileAnswer, FileFacts
from trainmaster.server.files.shown_files import FilePreview, Wish
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import make_plain_read, preview_file, show_picture
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.snapshots.archive import write_archive_to
from trainmaster.snapshots.commits import MissingContentsError, commit_model_list, commit_snapshot, renew_snapshot
from trainmaster.snapshots.model_contents import ModelFile
from trainmaster.snapshots.verify import ManifestFile, ManifestLink, load_manifest, verify_snapshot


@dataclass(frozen=True)
class SnapshotList:
    """What a snapshot consists of."""

    version: int
    files: tuple[ManifestFile, ...]
    links: tuple[ManifestLink, ...]
    folders: tuple[str, ...]
    """Empty folders."""


@dataclass(frozen=True)
class ModelList:
    """What a model consists of."""

    entry: str
    """The one file or folder that all of it is, or is in."""
    files: tuple[ModelFile, ...]
    version: int


_LARGEST_LIST = 64 * MEGABYTE
_MEMORY = MEGABYTE
# Lists above a megabyte wait on the disk until it is their turn to be read into memory.
_turns = asyncio.Semaphore(2)
_verified: set[tuple[Path, str]] = set()


async def describe_snapshot(call: Call, snapshot_id: str) -> Response:
    """Whether a snapshot is here; if so, it stays for an hour even if no run refers to it."""
    check_digest(snapshot_id)
    folder = call.workspace.folder.path
    if not await to_thread.run_sync(_renew, folder, snapshot_id):
        raise _missing_snapshot(snapshot_id)
    return Response()


def _renew(folder: Path, snapshot_id: str) -> bool:
    if not renew_snapshot(folder, snapshot_id):
        return False
    if (folder, snapshot_id) not in _verified:
        try:
            # Once: a power cut may have lost contents. Afterwards only the collector removes them, manifest first.
            verify_snapshot(folder, snapshot_id)
        except SnapshotException:
            return False
        _verified.add((folder, snapshot_id))
    return True


def _missing_snapshot(snapshot_id: str) -> Exception:
    return refuse(404, f"snapshot {snapshot_id} is not in this workspace")


async def get_snapshot(call: Call, snapshot_id: str) -> Response:
    """The manifest of a snapshot: its files with their digests, links and empty folders."""
    check_digest(snapshot_id)
    text = await _read_list(call, ("snapshots",), f"{snapshot_id}.json")
    if text is None:
        raise _missing_snapshot(snapshot_id)
    return Response(text, media_type="application/json", headers=SAFE_HEADERS)


async def _read_list(call: Call, parts: tuple[str, ...], name: str) -> bytes | None:
    folder = os.path.join(os.path.realpath(call.workspace.folder.path), *parts)
    try:
        return await to_thread.run_sync(_read_file, folder, name)
    except NotBeneathError:
        return None


def _read_file(folder: str, name: str) -> bytes:
    file = open_beneath(folder, name, [folder])
    try:
        return os.pread(file.handle, file.size, 0)
    finally:
        file.close()


async def get_snapshot_file(call: Call, snapshot_id: str, name: str, preview: Literal["image"] | None = None) -> Any:
    """A file of a snapshot or, by the header `Range`, a part of it. With `preview` it is shown as a picture."""
    file = await _open_snapshot_file(call, snapshot_id, name)
    try:
        read = make_plain_read(file)
        if preview is not None:
            return show_picture(name, file, read, await to_thread.run_sync(read, 0, 64))
        facts = FileFacts(name, file.size, None, file.identity)
        return FileAnswer(facts, read, file.close, call.request.headers)
    except BaseException:
        file.close()
        raise


async def preview_snapshot_file(
    call: Call, snapshot_id: str, name: str, start: int = 0, size: int = 65536, rows: int = 100
) -> FilePreview:
    """A part of a file as plain data: text, rows of a table, cells of a notebook, or what an ONNX model consists of."""
    file = await _open_snapshot_file(call, snapshot_id, name)
    return await preview_file(name, file, make_plain_read(file), Wish(start, size, rows))


async def _open_snapshot_file(call: Call, snapshot_id: str, name: str) -> OpenFile:
    check_digest(snapshot_id)
    try:
        return await to_thread.run_sync(open_snapshot_file, call.workspace.folder, snapshot_id, name)
    except SnapshotException:
        raise _missing_snapshot(snapshot_id) from None
    except (NotBeneathError, LookupError):
        raise refuse(404, f"snapshot {snapshot_id} has no file {name[:300]!r}") from None


def open_snapshot_file(folder: WorkspaceFolder, snapshot_id: str, name: str) -> OpenFile:
    """Open a file of a snapshot. Raises SnapshotException, LookupError or NotBeneathError."""
    manifest = load_manifest(folder.path, snapshot_id)
    digest = next((file.digest for file in manifest.files if file.path == name), None)
    if digest is None:
        raise LookupError(name)
    return open_content(find_kind("snapshots"), folder, check_digest(digest))


async def put_snapshot(call: Call, snapshot_id: str) -> Any:
    """Store the manifest of a snapshot. Refused with 409 and the list `missing` while contents are not here."""
    check_digest(snapshot_id)
    folder = call.workspace.folder.path
    return await _commit(call, lambda text: commit_snapshot(folder, snapshot_id, text, os.environ))


async def _commit(call: Call, commit: Callable[[bytes], None]) -> Any:
    with tempfile.SpooledTemporaryFile(_MEMORY) as kept:
        async for piece in read_pieces(call.request, _LARGEST_LIST):
            await to_thread.run_sync(kept.write, piece)
        try:
            async with _turns:
                await to_thread.run_sync(_commit_from, kept, commit)
        except MissingContentsError as error:
            return answer_conflict(
                call,
                f"{len(error.digests)} contents are missing",
                hint="Send them first, then the list again.",
                missing=list(error.digests),
            )
    return {"stored": True}


def _commit_from(kept: IO[bytes], commit: Callable[[bytes], None]) -> None:
    kept.seek(0)
    commit(kept.read())


async def get_archive(call: Call, snapshot_id: str) -> FileAnswer:
    """A snapshot as a zip file."""
    check_digest(snapshot_id)
    folder = call.workspace.folder.path
    if not await to_thread.run_sync(renew_snapshot, folder, snapshot_id):
        raise _missing_snapshot(snapshot_id)
    # Without a name, so that nothing of it is left whatever happens.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        async with _turns:
            await to_thread.run_sync(write_archive_to, file, folder, snapshot_id)
        size = file.tell()
    except BaseException:
        file.close()
        raise
    facts = FileFacts(f"{snapshot_id}.zip", size, None, snapshot_id[:16])
    handle = file.fileno()
    return FileAnswer(facts, lambda start, count: os.pread(handle, count, start), file.close, call.request.headers)


async def describe_model_list(call: Call, digest: str) -> Response:
    """Whether the list of a model's files is here."""
    await get_model_list(call, digest)
    return Response()


async def get_model_list(call: Call, digest: str) -> Response:
    """The list of a model's files, with their digests."""
    check_digest(digest)
    text = await _read_list(call, ("models", ".lists"), f"{digest}.json")
    if text is None:
        raise refuse(404, f"there is no list {digest} of a model's files")
    return Response(text, media_type="application/json", headers=SAFE_HEADERS)


async def put_model_list(call: Call, digest: str) -> Any:
    """Store the list of a model's files. Refused with 409 and the list `missing` while contents are not here."""
    check_digest(digest)
    models = call.workspace.folder.models
    return await _commit(call, lambda text: commit_model_list(models, digest, text))


_SNAPSHOT = f"{WORKSPACE}/snapshots/{{snapshot_id}}"
_LIST = f"{WORKSPACE}/model-lists/{{digest}}"

ROUTES: Sequence[Route] = (
    Route(
        "HEAD",
        _SNAPSHOT,
        describe_snapshot,
        Permission.READ,
        "Tell whether a snapshot is here",
        "snapshots",
        statuses=(404,),
    ),
    Route(
        "GET",
        _SNAPSHOT,
        get_snapshot,
        Permission.READ,
        "Get the manifest of a snapshot",
        "snapshots",
        statuses=(404,),
        answer=SnapshotList,
    ),
    Route(
        "GET",
        f"{_SNAPSHOT}/files/{{name:path}}",
        get_snapshot_file,
        Permission.READ,
        "Download a file of a snapshot, or a part of it",
        "snapshots",
        media_type="application/octet-stream",
        statuses=(206, 404, 415, 416),
    ),
    Route(
        "GET",
        f"{_SNAPSHOT}/previews/{{name:path}}",
        preview_snapshot_file,
        Permission.READ,
        "Show a part of a file of a snapshot: text, table, notebook, ONNX",
        "snapshots",
    ),
    Route(
        "PUT",
        _SNAPSHOT,
        put_snapshot,
        Permission.CONTRIBUTE,
        "Store a snapshot whose contents are here",
        "snapshots",
        largest_body=_LARGEST_LIST,
        streams_body=True,
        statuses=(409,),
    ),
    Route(
        "GET",
        f"{_SNAPSHOT}/archive",
        get_archive,
        Permission.READ,
        "Download a snapshot as a zip file",
        "snapshots",
        media_type="application/zip",
        statuses=(206, 404, 416),
    ),
    Route(
        "HEAD",
        _LIST,
        describe_model_list,
        Permission.READ,
        "Tell whether the list of a model's files is here",
        "models",
        statuses=(404,),
    ),
    Route(
        "GET",
        _LIST,
        get_model_list,
        Permission.READ,
        "Get the list of a model's files",
        "models",
        statuses=(404,),
        answer=ModelList,
    ),
    Route(
        "PUT",
        _LIST,
        put_model_list,
        Permission.CONTRIBUTE,
        "Store the list of a model's files, whose contents are here",
        "models",
        largest_body=_LARGEST_LIST,
        streams_body=True,
        statuses=(409,),
    ),
)

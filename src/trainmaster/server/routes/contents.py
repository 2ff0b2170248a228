"""Contents of snapshots, models and wheels, by digest: only what the server lacks is sent, and an upload resumes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from trainmaster.environments.private_wheel import keep_wheel
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import HttpError, refuse
from trainmaster.server.files.conflicts import answer_conflict
from trainmaster.server.files.content_kinds import (
    LARGEST_MODEL_FILE,
    ContentKind,
    check_digest,
    find_kind,
    find_missing,
    open_content,
)
from trainmaster.server.files.opening import NotBeneathError, OpenFile
from trainmaster.server.files.ranges import Part, parse_content_range
from trainmaster.server.files.receiving import read_pieces
from trainmaster.server.files.sending import FileAnswer, FileFacts
from trainmaster.server.permissions import Permission
from trainmaster.snapshots.uploads import (
    Upload,
    UploadBusyError,
    UploadGapError,
    WrongDigestError,
    count_received,
    sweep_uploads,
)

_WHEELS = "wheels"


async def list_missing(call: Call, kind: str, digests: list[list[Any]]) -> dict[str, list[str]]:
    """Those of the contents, each a pair of digest and size, that the server does not have."""
    found = find_kind(kind)
    return {"missing": await to_thread.run_sync(find_missing, found, call.workspace.folder, digests)}


async def describe_content(call: Call, kind: str, digest: str) -> Response:
    """Whether a content is here (`X-Complete`), and otherwise how many bytes of its upload are (`X-Received`)."""
    found = find_kind(kind)
    check_digest(digest)
    file = await to_thread.run_sync(_open_if_there, found, call, digest)
    if file is not None:
        file.close()
        return Response(headers={"X-Complete": "true", "X-Received": str(file.size)})
    received = await to_thread.run_sync(count_received, found.blobs(call.workspace.folder), digest, call.caller.name)
    return Response(headers={"X-Complete": "false", "X-Received": str(received)})


def _open_if_there(kind: ContentKind, call: Call, digest: str) -> OpenFile | None:
    try:
        return open_content(kind, call.workspace.folder, digest)
    except NotBeneathError:
        return None


def _find_intact(kind: ContentKind, call: Call, digest: str) -> int | None:
    """The size of a content that is here; None if it is missing or, for a model, damaged: then it is replaced."""
    file = _open_if_there(kind, call, digest)
    if file is None:
        return None
    file.close()
    is_intact = kind.hashing.is_there(kind.blobs(call.workspace.folder), digest, file.size)
    return file.size if is_intact else None


async def get_content(call: Call, kind: str, digest: str, name: str = "") -> FileAnswer:
    """A content or, by the header `Range`, a part of it. A browser saves it as `name`, by default the digest."""
    found = find_kind(kind)
    check_digest(digest)
    file = await to_thread.run_sync(_open_if_there, found, call, digest)
    if file is None:
        raise refuse(404, f"there is no content {digest} of the kind {kind}")
    facts = FileFacts(name or digest, file.size, None, digest[:16])
    return FileAnswer(facts, lambda start, size: os.pread(file.handle, size, start), file.close, call.request.headers)


async def put_content(call: Call, kind: str, digest: str, name: str = "", exist_ok: bool = False) -> Any:
    """Keep a content, whole or, with the header `Content-Range`, a part that continues what has arrived.

    It counts once all of it is here and has its digest. A wheel needs its `name`; the answer has its address.
    """
    found = find_kind(kind)
    check_digest(digest)
    if kind == _WHEELS:
        _check_wheel(name)
    part = _read_part(call, found)
    folder = call.workspace.folder
    size = await to_thread.run_sync(_find_intact, found, call, digest)
    if size is not None:
        # Read to the end, so that the connection can be used again.
        async for _ in read_pieces(call.request, found.limit()):
            pass
        return {"received": size, "complete": True}
    try:
        upload = await to_thread.run_sync(
            Upload, found.blobs(folder), digest, call.caller.name, part.start if part else 0, found.hashing
        )
    except UploadBusyError:
        raise refuse(
            409, "another request sends this content", hint="Try again in a moment.", Retry_After="1"
        ) from None
    except UploadGapError as gap:
        return answer_conflict(call, "the part does not continue what has arrived", received=gap.received)
    try:
        return await _receive(call, found, upload, part, name, exist_ok)
    finally:
        upload.close()


def _check_wheel(name: str) -> None:
    if not name.endswith(".whl") or not is_plain(name.replace("+", "_").replace("!", "_")):
        raise refuse(400, f"{name[:100]!r} is not the name of a wheel", hint="Give it as the argument 'name'.")


def _read_part(call: Call, kind: ContentKind) -> Part | None:
    header = call.request.headers.get("content-range")
    if header is None:
        return None
    part = parse_content_range(header)
    if part is None:
        raise refuse(400, "the header Content-Range cannot be read", hint="Example: bytes 1000-1999/5000")
    if part.total > kind.limit():
        raise _too_large(kind)
    return part


def _too_large(kind: ContentKind) -> HttpError:
    limit = f"The limit is {kind.limit() // MEGABYTE} MB."
    return refuse(413, f"the content is too large for the kind {kind.name}", limit, Connection="close")


async def _receive(
    call: Call, kind: ContentKind, upload: Upload, part: Part | None, name: str, exist_ok: bool
) -> dict[str, Any]:
    await to_thread.run_sync(sweep_uploads, kind.blobs(call.workspace.folder))
    end = part.end if part else kind.limit()
    async for piece in read_pieces(call.request, end - upload.received):
        await to_thread.run_sync(upload.write, piece)
    if part is not None and upload.received < part.total:
        return {"received": upload.received, "complete": False}
    try:
        if kind.name == _WHEELS:
            folder = call.workspace.folder.path / _WHEELS
            address = await to_thread.run_sync(_keep_wheel, folder, upload, name, exist_ok)
            return {"received": upload.received, "complete": True, "address": address}
        await to_thread.run_sync(upload.finish)
    except WrongDigestError:
        raise refuse(
            422,
            "the content does not have the digest it was sent with",
            cause="It was damaged on its way, or changed while it was read. Nothing of it is kept.",
            hint="Send it again from its beginning.",
        ) from None
    return {"received": upload.received, "complete": True}


def _keep_wheel(folder: Path, upload: Upload, name: str, exist_ok: bool) -> str:
    """Store a wheel by the same code as at home, under its name."""
    place = folder / ".uploads" / f"named-{os.urandom(8).hex()}"
    place.mkdir(parents=True)
    try:
        upload.move_to(str(place / name))
        return keep_wheel(folder, place / name, exist_ok)
    finally:
        shutil.rmtree(place, ignore_errors=True)


_PATH = f"{WORKSPACE}/contents/{{kind}}"

ROUTES: Sequence[Route] = (
    Route(
        "POST",
        f"{_PATH}/missing",
        list_missing,
        Permission.CONTRIBUTE,
        "List contents that the server does not have",
        "contents",
        largest_body=32 * MEGABYTE,
        is_change=False,
        statuses=(404,),
    ),
    Route(
        "HEAD",
        f"{_PATH}/{{digest}}",
        describe_content,
        Permission.CONTRIBUTE,
        "Tell how much of a content is here",
        "contents",
        statuses=(404,),
    ),
    Route(
        "GET",
        f"{_PATH}/{{digest}}",
        get_content,
        Permission.READ,
        "Download a content, or a part of it",
        "contents",
        media_type="application/octet-stream",
        statuses=(206, 404, 416),
    ),
    Route(
        "PUT",
        f"{_PATH}/{{digest}}",
        put_content,
        Permission.CONTRIBUTE,
        "Send a content, or a part of it",
        "contents",
        largest_body=LARGEST_MODEL_FILE,
        streams_body=True,
        # A snapshot or model may have many. Using them is a change of its own.
        is_counted=True,
        statuses=(404, 409, 413, 422),
    ),
)

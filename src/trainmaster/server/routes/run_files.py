"""The files of runs: listing, reading, previewing and adding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from anyio import to_thread
from starlette.responses import Response

from trainmaster.job.errors import RunNotFoundException
from trainmaster.sdk.backend.local.masks import mask_of
from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import HttpError, refuse
from trainmaster.server.files.archives import ArchiveAnswer, write_archive
from trainmaster.server.files.conflicts import answer_conflict
from trainmaster.server.files.listing import FileEntry
from trainmaster.server.files.log_text import read_masked
from trainmaster.server.files.opening import NotBeneathError, OpenFile
from trainmaster.server.files.pictures import LARGEST_PICTURE, find_picture_type
from trainmaster.server.files.previews import (
    MOST_BYTES,
    choose_kind,
    show_nothing,
    show_rows,
    show_text,
)
from trainmaster.server.files.receiving import read_pieces
from trainmaster.server.files.run_place import (
    AppendConflictError,
    AppendGapError,
    NameTakenError,
    NewFile,
    RunPlace,
)
from trainmaster.server.files.sandboxed_pages import LARGEST_PAGE, PageAnswer, find_page_type
from trainmaster.server.files.sending import FileAnswer, FileFacts, Read
from trainmaster.server.files.shown_files import FilePreview, Wish, show_file
from trainmaster.server.permissions import Permission
from trainmaster.shared.run_files import name_some

LARGEST_FILE = 1024 * 1024 * MEGABYTE
"""Of a run. The quota for disk space is the limit that matters."""
LARGEST_APPEND = 17 * MEGABYTE
"""A record of a journal may have 16 MB."""

Preview = Literal["auto", "text", "csv", "image"]

# Further than any file goes, and exact in JavaScript.
_MOST_START = 2**53 - 1


async def find_run(call: Call, run_id: str) -> RunPlace:
    """The folder of a run, which may not exist yet. Raises HttpError 404 if there is no such run."""
    place = RunPlace.locate(call.workspace.folder, run_id)
    try:
        has_folder = place.exists() if place.is_quick else await to_thread.run_sync(place.exists)
    except NotBeneathError:
        raise HttpError(404, RunNotFoundException(f"there is no run {run_id!r}")) from None
    if has_folder:
        return place
    await call.ask("runs.get", run_id=run_id)
    return replace(place, is_new=True)


async def list_run_files(call: Call, run_id: str, left: bool = False) -> dict[str, list[FileEntry]]:
    """All files by name; with `left` those that the script left in its working folder instead."""
    place = await find_run(call, run_id)
    return {"files": await to_thread.run_sync(place.list_left_files if left else place.list_files)}


async def get_run_file(
    call: Call, run_id: str, name: str, preview: Preview | None = None, size: int = 65536, rows: int = 100
) -> Any:
    """A file or, by the header `Range`, a part of it. With `preview` its beginning, for a page that shows it."""
    place = await find_run(call, run_id)
    file = await open_file(place, name)
    try:
        read = make_read(place, file)
        if preview is not None:
            return await _preview(name, file, read, preview, max(1, min(size, MOST_BYTES)), max(1, rows))
        facts = FileFacts(name, file.size, file.modified_at, file.identity, place.is_log(file))
        answer = FileAnswer(facts, read, file.close, call.request.headers)
    except BaseException:
        file.close()
        raise
    return answer


async def get_run_archive(call: Call, run_id: str, prefix: str = "") -> ArchiveAnswer:
    """The files of a run whose names begin with `prefix`, as a zip archive. Secrets are hidden in logs."""
    place = await find_run(call, run_id)
    entries = [each for each in await to_thread.run_sync(place.list_files) if each.name.startswith(prefix)]
    if not entries:
        raise refuse(404, f"run {run_id} has no files whose names begin with {prefix[:300]!r}")
    return ArchiveAnswer(f"{run_id}.zip", write_archive(entries, partial(_open_for_archive, place)))


@contextmanager
def _open_for_archive(place: RunPlace, name: str) -> Iterator[Read]:
    file = place.open(name)
    try:
        yield make_read(place, file)
    finally:
        file.close()


async def open_file(place: RunPlace, name: str) -> OpenFile:
    """A file of a run, opened. Raises HttpError 404."""
    try:
        return await to_thread.run_sync(place.open, name)
    except NotBeneathError:
        known = [entry.name for entry in await to_thread.run_sync(place.list_files)]
        raise refuse(404, f"run {place.run_id} has no file {name[:300]!r}", hint=name_some(known)) from None


def make_read(place: RunPlace, file: OpenFile) -> Read:
    """The function that reads a file for clients: secrets are hidden in logs."""
    if place.is_log(file):
        return lambda start, size: read_masked(file.handle, start, size, partial(mask_of, place.folder))
    return make_plain_read(file)


def make_plain_read(file: OpenFile) -> Read:
    """The function that reads a file as it is."""
    return lambda start, size: os.pread(file.handle, size, start)


async def _preview(name: str, file: OpenFile, read: Read, kind: Preview, size: int, rows: int) -> Any:
    head = await to_thread.run_sync(read, 0, size)
    chosen = choose_kind(name, head) if kind == "auto" else kind
    if chosen == "image":
        return show_picture(name, file, read, head)
    file.close()
    if chosen == "csv":
        return show_rows(name, head, file.size, rows)
    return show_text(head, file.size) if chosen == "text" else show_nothing(file.size)


def show_picture(name: str, file: OpenFile, read: Read, head: bytes) -> Response:
    """A picture that a browser shows; HttpError 415 for anything else."""
    media_type = find_picture_type(head)
    if media_type is None or file.size > LARGEST_PICTURE:
        raise refuse(415, f"{name[:300]!r} is not a picture that can be shown", hint="Download the file instead.")
    facts = FileFacts(name, file.size, file.modified_at, file.identity)
    shown = {"Content-Type": media_type, "Content-Disposition": "inline"}
    return FileAnswer(facts, read, file.close, {}, shown)


async def preview_run_file(
    call: Call, run_id: str, name: str, start: int = 0, size: int = 65536, rows: int = 100
) -> FilePreview:
    """A part of a file as plain data: text, rows of a table, cells of a notebook, or what an ONNX model consists of."""
    place = await find_run(call, run_id)
    file = await open_file(place, name)
    return await preview_file(
        name, file, make_read(place, file), Wish(start, size, rows), has_secrets=place.is_log(file)
    )


async def preview_file(name: str, file: OpenFile, read: Read, wish: Wish, *, has_secrets: bool = False) -> FilePreview:
    """A part of an open file, which is closed. `read` hides secrets in it, if it has some."""
    try:
        if not 0 <= wish.start <= _MOST_START:
            raise refuse(400, f"start must be between 0 and {_MOST_START}, not {wish.start}")
        return await show_file(name, file.handle, file.size, read, wish, has_secrets=has_secrets)
    finally:
        file.close()


async def show_run_page(call: Call, run_id: str, name: str) -> PageAnswer:
    """An HTML or SVG file as a page in a sandbox. Its scripts run, but reach neither the session nor the network."""
    place = await find_run(call, run_id)
    file = await open_file(place, name)
    return show_page(name, file, make_read(place, file))


def show_page(name: str, file: OpenFile, read: Read) -> PageAnswer:
    """An open file as a page in a sandbox; HttpError 415 if it cannot be one."""
    media_type = find_page_type(name)
    if media_type is None or file.size > LARGEST_PAGE:
        file.close()
        raise refuse(415, f"{name[:300]!r} is not a page that can be shown", hint="Download the file instead.")
    facts = FileFacts(name, file.size, file.modified_at, file.identity)
    return PageAnswer(facts, read, file.close, media_type)


async def put_run_file(call: Call, run_id: str, name: str, offset: int | None = None, beside: bool = False) -> Any:
    """Keep the body as a file. Other contents under an existing name are refused; the same may be sent again.

    With `beside` the next free name is used instead. With `offset` the body is added to a file that grows: bytes that
    are there already must be the same, so that an interrupted request can be repeated.
    """
    place = await find_run(call, run_id)
    try:
        if offset is not None:
            data = await read_append(call)
            return {"name": name, "size": await to_thread.run_sync(place.append, name, offset, data)}
        with place.enter_parent(name) as (folder, last):
            kept, size = await _receive_file(call, folder, last, beside)
        return {"name": name[: len(name) - len(last)] + kept, "size": size}
    except NotBeneathError:
        raise refuse(
            400,
            f"{name[:300]!r} cannot be the name of a run's file",
            cause="A name is a relative path without '..', links or control characters.",
        ) from None
    except NameTakenError:
        raise refuse(
            409,
            f"a file named {name[:300]!r} already exists in the run, with other contents",
            hint="Use another name; files of a run never change.",
        ) from None
    except AppendGapError as error:
        return answer_gap(call, error)
    except AppendConflictError:
        raise refuse_other_bytes() from None


async def _receive_file(call: Call, folder: int, name: str, beside: bool) -> tuple[str, int]:
    file = await to_thread.run_sync(NewFile, folder)
    size = 0
    try:
        async for piece in read_pieces(call.request, LARGEST_FILE):
            await to_thread.run_sync(file.write, piece)
            size += len(piece)
        return await to_thread.run_sync(file.finish, name, beside), size
    finally:
        file.close()


async def read_append(call: Call) -> bytes:
    """The body of a request that appends to a file."""
    return b"".join([piece async for piece in read_pieces(call.request, LARGEST_APPEND)])


def answer_gap(call: Call, error: AppendGapError) -> Response:
    """The answer to bytes that do not continue what has arrived. `size` says how much there is."""
    cause = f"{error.size} bytes have arrived."
    return answer_conflict(call, "the bytes do not continue what has arrived", cause, size=error.size)


def refuse_other_bytes() -> HttpError:
    """The error for bytes that differ from those that have arrived before."""
    return refuse(
        409,
        "other bytes have arrived at this place",
        cause="Another program has written them.",
        hint="Use another name.",
    )


_FILES = f"{WORKSPACE}/runs/{{run_id}}/files"

ROUTES = (
    Route(
        "GET",
        f"{WORKSPACE}/runs/{{run_id}}/archive",
        get_run_archive,
        Permission.READ,
        "Download files of a run as a zip archive",
        "files",
        media_type="application/zip",
        statuses=(404,),
    ),
    Route("GET", _FILES, list_run_files, Permission.READ, "List the files of a run", "files", open_to_jobs=True),
    Route(
        "GET",
        f"{_FILES}/{{name:path}}",
        get_run_file,
        Permission.READ,
        "Download a file of a run, or a part of it",
        "files",
        open_to_jobs=True,
        media_type="application/octet-stream, application/json",
        statuses=(206, 404, 415, 416),
    ),
    Route(
        "GET",
        f"{WORKSPACE}/runs/{{run_id}}/previews/{{name:path}}",
        preview_run_file,
        Permission.READ,
        "Show a part of a file of a run: text, table, notebook, ONNX",
        "files",
    ),
    Route(
        "GET",
        f"{WORKSPACE}/runs/{{run_id}}/pages/{{name:path}}",
        show_run_page,
        Permission.READ,
        "Show an HTML or SVG file of a run in a sandbox",
        "files",
        media_type="text/html, image/svg+xml",
        statuses=(404, 415),
    ),
    Route(
        "PUT",
        f"{_FILES}/{{name:path}}",
        put_run_file,
        Permission.CONTRIBUTE,
        "Add a file to a run",
        "files",
        open_to_jobs=True,
        largest_body=LARGEST_FILE,
        streams_body=True,
        statuses=(404, 409),
    ),
)

"""The files of datastores that are folders of the server's machine."""

from __future__ import annotations

import os
from typing import Any

from anyio import to_thread

from trainmaster.job.errors import DatastoreException
from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import HttpError, refuse
from trainmaster.server.files.datastore_place import DatastorePlace, ForbiddenFolderError, NewDatastoreFile
from trainmaster.server.files.listing import FileEntry
from trainmaster.server.files.opening import NotBeneathError, OpenFile
from trainmaster.server.files.receiving import read_pieces
from trainmaster.server.files.sandboxed_pages import PageAnswer
from trainmaster.server.files.sending import FileAnswer, FileFacts
from trainmaster.server.files.shown_files import FilePreview, Wish
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import LARGEST_FILE, make_plain_read, preview_file, show_page
from trainmaster.storage.urls import local_folder


async def list_datastore_files(call: Call, name: str, prefix: str = "") -> dict[str, list[FileEntry]]:
    """The files at and below `prefix`, by name."""
    place = await _find_place(call, name)
    try:
        return {"files": await to_thread.run_sync(place.list_files, prefix.strip("/"))}
    except NotBeneathError:
        raise refuse(400, f"{prefix[:300]!r} cannot be a path in a datastore") from None


async def get_datastore_file(call: Call, name: str, path: str) -> FileAnswer:
    """A file or, by the header `Range`, a part of it."""
    file = await _open_file(call, name, path)
    facts = FileFacts(path, file.size, file.modified_at, file.identity)
    return FileAnswer(facts, lambda start, size: os.pread(file.handle, size, start), file.close, call.request.headers)


async def preview_datastore_file(
    call: Call, name: str, path: str, start: int = 0, size: int = 65536, rows: int = 100
) -> FilePreview:
    """A part of a file as plain data: text, rows of a table, cells of a notebook, or what an ONNX model consists of."""
    file = await _open_file(call, name, path)
    return await preview_file(path, file, make_plain_read(file), Wish(start, size, rows))


async def show_datastore_page(call: Call, name: str, path: str) -> PageAnswer:
    """An HTML or SVG file as a page in a sandbox. Its scripts run, but reach neither the session nor the network."""
    file = await _open_file(call, name, path)
    return show_page(path, file, make_plain_read(file))


async def _open_file(call: Call, name: str, path: str) -> OpenFile:
    place = await _find_place(call, name)
    try:
        return await to_thread.run_sync(place.open, path)
    except NotBeneathError:
        raise refuse(404, f"the datastore {name} has no file {path[:300]!r}") from None


async def put_datastore_file(call: Call, name: str, path: str) -> dict[str, Any]:
    """Keep the body as a file, in the place of the one with this name."""
    place = await _find_place(call, name)
    try:
        with place.enter_parent(path) as (folder, last):
            return {"name": path, "size": await _receive(call, folder, last)}
    except (NotBeneathError, IsADirectoryError):
        raise refuse(400, f"{path[:300]!r} cannot be the name of a file in a datastore") from None


async def _receive(call: Call, folder: int, name: str) -> int:
    file = await to_thread.run_sync(NewDatastoreFile, folder)
    size = 0
    try:
        async for piece in read_pieces(call.request, LARGEST_FILE):
            await to_thread.run_sync(file.write, piece)
            size += len(piece)
        await to_thread.run_sync(file.finish, name)
        return size
    finally:
        file.close()


async def _find_place(call: Call, name: str) -> DatastorePlace:
    """The folder of a datastore. Raises HttpError if there is none, or none that the server opens."""
    record = await call.ask("datastores.get", name=name)
    if record is None:
        raise HttpError(404, DatastoreException(f"there is no datastore '{name[:300]}' in this workspace"))
    folder = local_folder(record["url"])
    if folder is None:
        raise refuse(
            409,
            f"the datastore {name} is not a folder of the server",
            hint="Programs open it themselves, by its address.",
        )
    try:
        return DatastorePlace.find(folder, call.workspace.folder, call.parts.settings.data_folders)
    except ForbiddenFolderError:
        raise refuse(
            403,
            f"the server does not open the folder of the datastore {name} for clients",
            cause="It is neither a datastore that every workspace has nor in a folder that was allowed.",
            hint='The server\'s administrator can allow it: "data_folders" in server.json.',
        ) from None


_PATH = f"{WORKSPACE}/datastores/{{name}}/files"

ROUTES = (
    Route(
        "GET",
        _PATH,
        list_datastore_files,
        Permission.READ,
        "List files of a datastore",
        "datastores",
        statuses=(403, 404, 409),
    ),
    Route(
        "GET",
        f"{_PATH}/{{path:path}}",
        get_datastore_file,
        Permission.READ,
        "Download a file of a datastore, or a part of it",
        "datastores",
        media_type="application/octet-stream",
        statuses=(206, 403, 404, 409, 416),
    ),
    Route(
        "GET",
        f"{WORKSPACE}/datastores/{{name}}/previews/{{path:path}}",
        preview_datastore_file,
        Permission.READ,
        "Show a part of a file of a datastore: text, table, notebook, ONNX",
        "datastores",
    ),
    Route(
        "GET",
        f"{WORKSPACE}/datastores/{{name}}/pages/{{path:path}}",
        show_datastore_page,
        Permission.READ,
        "Show an HTML or SVG file of a datastore in a sandbox",
        "datastores",
        media_type="text/html, image/svg+xml",
        statuses=(403, 404, 409, 415),
    ),
    Route(
        "PUT",
        f"{_PATH}/{{path:path}}",
        put_datastore_file,
        Permission.CONTRIBUTE,
        "Put a file into a datastore",
        "datastores",
        largest_body=LARGEST_FILE,
        streams_body=True,
        statuses=(403, 404, 409),
    ),
)

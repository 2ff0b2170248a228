"""Artifacts of MLflow's clients: listing, downloading, uploading and removing."""

from __future__ import annotations

import mimetypes
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.responses import Response

from trainmaster.dispatcher.mlflow.addresses import read_uri, split_path
from trainmaster.dispatcher.mlflow.errors import (
    ABSENT,
    BAD_REQUEST,
    NOT_IMPLEMENTED,
    WRONG,
    ArtifactPathError,
    MlflowError,
)
from trainmaster.dispatcher.mlflow.requests import missing, read_integer, wrong_value
from trainmaster.server.api.table import MEGABYTE, MLFLOW, Handler, Route
from trainmaster.server.call import Call
from trainmaster.server.files.listing import FolderEntry
from trainmaster.server.files.opening import NotBeneathError
from trainmaster.server.files.receiving import read_pieces
from trainmaster.server.files.sending import FileAnswer, FileFacts
from trainmaster.server.mlflow.artifact_places import ArtifactPath, find_artifact, find_run_artifact
from trainmaster.server.mlflow.asking import ask_endpoint, read_body
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import LARGEST_FILE
from trainmaster.shared.model_addresses import make_address

_LARGEST_FROM_PAGE = 10 * MEGABYTE
_LONGEST_SIGNED = 7 * 24 * 3600
_TEXT = re.compile(
    "txt|log|err|cfg|conf|cnf|cf|ini|properties|prop|hocon|toml|yaml|yml|xml|json|js|py|py3|csv|tsv|md|rst|ipynb|"
    "MLmodel|mlproject"
)
"""Endings, or whole names, of files that MLflow's pages show as text."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class IsFolderError(MlflowError):
    """A folder was asked for as a file."""


# Listing


async def list_run_artifacts(call: Call) -> dict[str, Any]:
    """The files and folders in one folder of a run."""
    query = call.request.query_params
    return await describe_run_folder(call, query.get("run_id") or query.get("run_uuid") or "", query.get("path", ""))


async def describe_run_folder(call: Call, run_id: str, path: str) -> dict[str, Any]:
    """What is in one folder of a run."""
    if not run_id:
        raise missing("run_id")
    parts = split_path(path)
    found, uri = await find_run_artifact(call, run_id, parts)
    return _describe_folder(await _list(found), "/".join(parts), root_uri=uri)


async def list_artifacts(call: Call) -> dict[str, Any]:
    """The files and folders in one folder, by their own names."""
    parts = split_path(call.request.query_params.get("path", ""))
    return _describe_folder(await _list(await find_artifact(call, parts)), "")


async def list_model_artifacts(call: Call, model_id: str) -> dict[str, Any]:
    """The files and folders in one folder of a logged model."""
    parts = split_path(call.request.query_params.get("artifact_directory_path", ""))
    uri = await _find_model_uri(call, model_id)
    return _describe_folder(await _list(await _find_in(call, uri, parts)), "/".join(parts), root_uri=uri)


async def _list(found: ArtifactPath) -> list[FolderEntry]:
    try:
        return await to_thread.run_sync(found.folder.list_folder, found.parts)
    except NotBeneathError:
        return []


def _describe_folder(entries: list[FolderEntry], name: str, **more: str) -> dict[str, Any]:
    files = [_describe_entry(each, f"{name}/{each.name}" if name else each.name) for each in entries]
    return {**({"files": files} if files else {}), **more}


def _describe_entry(entry: FolderEntry, path: str) -> dict[str, Any]:
    if entry.size is None:
        return {"path": path, "is_dir": True}
    # MLflow says nothing of the size of an empty file.
    return {"path": path, "is_dir": False, **({"file_size": entry.size} if entry.size else {})}


# Downloading


async def get_artifact(call: Call, path: str) -> Response:
    """A file or, by the header `Range`, a part of it."""
    try:
        return await _send(call, await find_artifact(call, split_path(path)))
    except IsFolderError as error:
        raise ArtifactPathError(error.message) from None


async def get_run_artifact(call: Call) -> Response:
    """A file of a run, for MLflow's pages. A browser saves it, and runs nothing in it."""
    query = call.request.query_params
    path = split_path(query["path"] if "path" in query else _require(query, "path"))
    found, _ = await find_run_artifact(call, query.get("run_id") or query.get("run_uuid") or "None", path)
    return await _send(call, found)


async def get_version_artifact(call: Call) -> Response:
    """A file of a version of a registered model, for MLflow's pages."""
    query = call.request.query_params
    parts = split_path(_require(query, "path"))
    name, version = _require(query, "name"), _require(query, "version")
    found = (await ask_endpoint(call, "GET", "model-versions/get", name=name, version=version))["model_version"]
    return await _send(call, await _find_in(call, make_address(name, int(found["version"])), parts))


async def get_model_artifact(call: Call, model_id: str) -> Response:
    """A file of a logged model, for MLflow's pages."""
    path = call.request.query_params.get("artifact_file_path")
    if not path:
        raise MlflowError(BAD_REQUEST, 'Request must include the "artifact_file_path" query parameter.')
    parts = split_path(path)
    return await _send(call, await _find_in(call, await _find_model_uri(call, model_id), parts))


async def _find_model_uri(call: Call, model_id: str) -> str:
    body = await ask_endpoint(call, "GET", f"logged-models/{quote(model_id, safe='')}")
    uri: str = body["model"]["info"]["artifact_uri"]
    return uri


async def _find_in(call: Call, uri: str, parts: tuple[str, ...]) -> ArtifactPath:
    """A path below an address."""
    root = read_uri(uri)
    if root is None:
        raise MlflowError(WRONG, f"The artifacts are at '{uri}', which this server does not open.")
    return await find_artifact(call, (*root, *parts))


async def _send(call: Call, found: ArtifactPath) -> Response:
    try:
        file = await to_thread.run_sync(found.folder.open, found.name)
    except NotBeneathError:
        raise await _explain_absence(found) from None
    try:
        facts = FileFacts(found.name, file.size, file.modified_at, file.identity)
        shown = {"Content-Type": guess_type(found.name), "Content-Disposition": name_attachment(found.name)}
        return FileAnswer(facts, found.folder.make_read(file), file.close, call.request.headers, shown)
    except BaseException:
        file.close()
        raise


async def _explain_absence(found: ArtifactPath) -> MlflowError:
    try:
        await to_thread.run_sync(found.folder.list_folder, found.parts)
    except NotBeneathError:
        return MlflowError(ABSENT, f"No such artifact: '{found.whole}'")
    return IsFolderError(WRONG, f"Artifact path refers to a directory, not a file: '{found.whole}'")


def guess_type(name: str) -> str:
    """The type of a file, by its name.

    >>> guess_type("model/MLmodel"), guess_type("a.pkl"), guess_type("a.html")
    ('text/plain', 'application/octet-stream', 'text/html')
    """
    last = name.rpartition("/")[2]
    ending = os.path.splitext(last)[1].replace(".", "") or last
    return "text/plain" if _TEXT.fullmatch(ending) else mimetypes.guess_type(last)[0] or "application/octet-stream"


def name_attachment(name: str) -> str:
    """The header that makes a browser save a file, in the form that MLflow's clients know.

    >>> name_attachment("dir/a.txt"), name_attachment("a b.txt")
    ('attachment; filename=a.txt', 'attachment; filename="a b.txt"')
    """
    last = name.rpartition("/")[2]
    if last.isascii():
        return f"attachment; filename={_quote(last)}"
    plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode() or "download"
    return f"attachment; filename={_quote(plain)}; filename*=UTF-8''{quote(last, safe='')}"


def _quote(text: str) -> str:
    if _TOKEN.fullmatch(text):
        return text
    # Control characters cannot be in a header; a job may use them in names of files.
    plain = "".join("_" if ord(sign) < 32 or sign == "\x7f" else sign for sign in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Uploading


async def put_artifact(call: Call, path: str) -> Response:
    """Keep the body as a file. It takes the place of the one with this name."""
    if path.endswith("/"):
        raise ArtifactPathError("Artifact path must include a filename (cannot end with '/').")
    found = await find_artifact(call, split_path(path))
    await _check_quota(call)
    await _receive(call, found, LARGEST_FILE)
    return Response()


async def upload_artifact(call: Call) -> Response:
    """The same for a small file of a run, from MLflow's pages."""
    query = call.request.query_params
    if not query.get("run_uuid"):
        raise MlflowError(WRONG, "Request must specify run_uuid.")
    if not query.get("path"):
        raise MlflowError(WRONG, "Request must specify path.")
    parts = split_path(query["path"])
    length = call.request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > _LARGEST_FROM_PAGE:
        # Browsers read the answer only when they have sent everything.
        async for _ in call.request.stream():
            pass
        raise MlflowError(WRONG, "Artifact size is too large. Max size is 10MB.")
    if length == "0" or (not length and "transfer-encoding" not in call.request.headers):
        raise MlflowError(WRONG, "Request must specify data.")
    found, _ = await find_run_artifact(call, query["run_uuid"], parts)
    await _check_quota(call)
    await _receive(call, found, _LARGEST_FROM_PAGE)
    return Response(media_type="application/json")


async def _check_quota(call: Call) -> None:
    reason = await call.ask("quotas.check_disk", user=call.caller.name)
    if reason:
        # Not a status after which clients try again.
        raise MlflowError("PERMISSION_DENIED", f"The file was not stored because of {reason}.")


async def _receive(call: Call, found: ArtifactPath, largest: int) -> None:
    try:
        with found.folder.enter_parent(found.name) as (folder, last):
            file = await to_thread.run_sync(found.folder.receive, folder, last)
            try:
                async for piece in read_pieces(call.request, largest):
                    await to_thread.run_sync(file.write, piece)
                await to_thread.run_sync(file.finish)
            finally:
                file.close()
    except (NotBeneathError, IsADirectoryError):
        raise MlflowError(WRONG, f"'{found.whole[:300]}' cannot be the name of an artifact") from None
    await _measure_again(call, found)


async def _measure_again(call: Call, found: ArtifactPath) -> None:
    """Let the disk quotas know."""
    await call.ask("quotas.files_changed", run_id=found.run_id, model_id=found.model_id)


# Removing


async def delete_artifact(call: Call, path: str) -> dict[str, Any]:
    """Remove a file or a folder; it may be missing."""
    found = await find_artifact(call, split_path(path))
    try:
        await to_thread.run_sync(found.folder.remove, found.parts)
    except NotBeneathError:
        return {}
    await _measure_again(call, found)
    return {}


# Only for object stores


async def refuse_multipart_upload(call: Call, path: str) -> None:
    """As MLflow answers if files are in a folder: its clients upload in one piece then."""
    split_path(path)
    given = await read_body(call)
    _require(given, "path")
    if "/mpu/complete/" in call.route.path and not given.get("parts"):
        raise missing("parts")
    raise MlflowError(NOT_IMPLEMENTED, "Multipart upload is not supported for the current artifact repository")


async def refuse_multipart_download(call: Call, path: str) -> None:
    """As MLflow answers if files are in a folder: its clients download from here then."""
    split_path(path)
    raise MlflowError(NOT_IMPLEMENTED, "Multipart download is not supported for the current artifact repository")


async def refuse_signed_upload(call: Call) -> None:
    """As MLflow answers for files that go through its server."""
    given = await read_body(call)
    path = _require(given, "path")
    if bool(given.get("run_id")) == bool(given.get("model_id")):
        raise MlflowError(WRONG, "Exactly one of run_id and model_id must be provided.")
    split_path(path)
    if given.get("run_id"):
        await find_run_artifact(call, str(given["run_id"]), ())
    else:
        await _find_model_uri(call, str(given["model_id"]))
    raise _refuse_signed("upload is not supported for proxied artifact storage", "direct cloud storage artifact URI")


async def refuse_signed_download(call: Call) -> None:
    """As MLflow answers for files that go through its server."""
    given = await read_body(call)
    run_id, path = _require(given, "run_id"), _require(given, "path")
    split_path(path)
    seconds = read_integer("expiration", given.get("expiration", 1))
    if not 1 <= seconds <= _LONGEST_SIGNED:
        raise MlflowError(WRONG, f"expiration must be between 1 and {_LONGEST_SIGNED} seconds (got {seconds}).")
    await find_run_artifact(call, run_id, ())
    raise _refuse_signed(
        "download is not supported for runs with proxied artifact storage",
        "run with a direct cloud storage artifact URI",
    )


def _refuse_signed(what: str, needed: str) -> MlflowError:
    scheme = "(artifact URI scheme: mlflow-artifacts)"
    return MlflowError(WRONG, f"Presigned {what} {scheme}. This endpoint requires a {needed}.")


def _require(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not value:
        raise missing(name)
    if not isinstance(value, str):
        raise wrong_value(name, value)
    return value


_TOP = "2.0/mlflow-artifacts"
_BOTH, _PAGES, _ROOT = ("/api/", "/ajax-api/"), ("/ajax-api/",), ("/",)


def artifact_rows() -> Iterator[Route]:
    """All paths of artifacts."""
    read, add, remove = Permission.READ, Permission.CONTRIBUTE, Permission.OWN
    for prefix in _BOTH:
        yield _make_row("GET", f"{prefix}2.0/mlflow/artifacts/list", list_run_artifacts, read)
        yield _make_row("GET", f"{prefix}{_TOP}/artifacts", list_artifacts, read)
        yield _make_row("GET", f"{prefix}{_TOP}/artifacts/{{path:path}}", get_artifact, read)
        yield _make_row("PUT", f"{prefix}{_TOP}/artifacts/{{path:path}}", put_artifact, add, LARGEST_FILE)
        yield _make_row("DELETE", f"{prefix}{_TOP}/artifacts/{{path:path}}", delete_artifact, remove)
        for step in ("create", "complete", "abort"):
            yield _make_row("POST", f"{prefix}{_TOP}/mpu/{step}/{{path:path}}", refuse_multipart_upload, add)
        yield _make_row("GET", f"{prefix}{_TOP}/presigned/{{path:path}}", refuse_multipart_download, read)
        yield _make_row("POST", f"{prefix}2.0/mlflow/artifacts/presigned-upload-url", refuse_signed_upload, add)
        yield _make_row("POST", f"{prefix}2.0/mlflow/artifacts/presigned-download-url", refuse_signed_download, read)
        model = f"{prefix}2.0/mlflow/logged-models/{{model_id}}/artifacts"
        yield _make_row("GET", f"{model}/directories", list_model_artifacts, read)
    for prefix in _PAGES:
        upload = f"{prefix}2.0/mlflow/upload-artifact"
        yield _make_row("POST", upload, upload_artifact, add, 2 * _LARGEST_FROM_PAGE)
        yield _make_row(
            "GET", f"{prefix}2.0/mlflow/logged-models/{{model_id}}/artifacts/files", get_model_artifact, read
        )
    for prefix in _ROOT:
        yield _make_row("GET", f"{prefix}get-artifact", get_run_artifact, read)
        yield _make_row("GET", f"{prefix}model-versions/get-artifact", get_version_artifact, read)


def _make_row(method: str, path: str, handler: Handler, permission: Permission, largest: int = MEGABYTE) -> Route:
    return Route(
        method,
        f"{MLFLOW}{path}",
        handler,
        permission,
        f"MLflow: {handler.__doc__ or ''}".splitlines()[0],
        "mlflow",
        largest_body=largest,
        streams_body=True,
        ignores_query=True,
        is_mlflow=True,
        is_change=method in ("PUT", "DELETE") or handler is upload_artifact,
    )

"""The files of registered models: described here, kept on the server, fetched when a program needs them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from trainmaster.job.errors import ModelPathNotFoundException, WebserviceException
from trainmaster.job.script.model_files import digest_of
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.downloads import fetch
from trainmaster.sdk.backend.remote.http import join_path
from trainmaster.sdk.backend.remote.sending import Content
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain
from trainmaster.snapshots.model_contents import Kept, Manifest, ModelFile, check_paths

_AT_ONCE = 8


def describe_model(entry: str, files: Mapping[str, Path]) -> tuple[Kept, bytes, list[Content]]:
    """The list of a model's files with its text, and the contents to send."""
    described = [_describe_file(path, source) for path, source in sorted(files.items())]
    manifest = Manifest(entry, tuple(file for file, _ in described))
    text = json.dumps(to_plain(manifest), sort_keys=True).encode("ascii")
    return Kept(sha256(text).hexdigest(), manifest), text, [content for _, content in described]


def _describe_file(path: str, source: Path) -> tuple[ModelFile, Content]:
    # A model folder may be full of links into a cache: what they lead to is kept.
    real = Path(os.path.realpath(source))
    try:
        found = real.stat()
        digest = str(digest_of(real))
    except OSError as error:
        raise ModelPathNotFoundException(
            f"{source} cannot be read", cause=error.strerror or str(error), hint="Register the model again."
        ) from None
    file = ModelFile(path, digest, found.st_size, bool(found.st_mode & 0o100))
    return file, Content(digest, found.st_size, real)


def parse_list(text: bytes, digest: str) -> Manifest:
    """The list with this digest. Its paths lead nowhere else."""
    try:
        if sha256(text).hexdigest() != digest:
            raise ValueError("it does not have its digest")
        return check_paths(from_plain(Manifest, json.loads(text)))
    except (ValueError, PlainDataError) as error:
        raise WebserviceException("the list of the model's files is damaged", cause=str(error)) from None


def as_contents(manifest: Manifest, folder: Path) -> list[Content]:
    """The contents of a model, as files of `folder`."""
    return [Content(file.digest, file.size, folder / file.path) for file in manifest.files]


def fetch_files(connection: RemoteConnection, manifest: Manifest, target: Path) -> None:
    """Copies all files of a model below `target`. Each is checked."""
    target.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE, "trainmaster-download") as pool:
        pending = [pool.submit(_fetch_file, connection, file, target / file.path) for file in manifest.files]
        try:
            for each in pending:
                each.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _fetch_file(connection: RemoteConnection, file: ModelFile, path: Path) -> None:
    fetch(connection.client, f"{connection.path}/contents{join_path('models', file.digest)}", path)
    if digest_of(path) != file.digest:
        path.unlink()
        raise WebserviceException(
            f"{file.path} is not what was registered",
            hint="'trainmaster models verify' tells which contents are damaged on the server.",
        )
    path.chmod(0o755 if file.executable else 0o644)


def make_folder(connection: RemoteConnection, manifest: Manifest, place: Path) -> Path:
    """A folder with the files of a model, fetched once. It is complete, or not there."""
    if place.is_dir():
        return place
    making = place.with_name(f".{place.name}-{os.urandom(8).hex()}")
    try:
        fetch_files(connection, manifest, making)
        for file in manifest.files:
            (making / file.path).chmod(0o555 if file.executable else 0o444)
        if not place.is_dir():
            making.rename(place)
    except OSError as error:
        if not place.is_dir():
            raise WebserviceException("the files of the model cannot be kept", cause=str(error)) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return place

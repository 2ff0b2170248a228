"""Snapshots, models and wheels of a workspace on a server: only what the server lacks is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.job.agent import durable
from trainmaster.job.errors import SnapshotException, WebserviceException
from trainmaster.sdk.backend.remote.cache import cache_folder
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.downloads import fetch
from trainmaster.sdk.backend.remote.http import Request, join_path
from trainmaster.sdk.backend.remote.sending import Content, find_missing, send_contents
from trainmaster.sdk.backend.remote.uploads import open_file

if TYPE_CHECKING:
    from trainmaster.snapshots import Snapshot
    from trainmaster.snapshots.model_contents import Kept, Manifest

_ATTEMPTS = 3


class RemoteContents:
    """The contents of one workspace on a server."""

    def __init__(self, connection: RemoteConnection) -> None:
        self._connection = connection

    def take_snapshot(self, source: Path) -> Snapshot:
        """Takes a snapshot of a folder. If the server has it already, that is one request."""
        from trainmaster.snapshots import drop_caches, take_snapshot

        cache = cache_folder(self._connection.client.address) / "snapshots"
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(_ATTEMPTS):
            snapshot = take_snapshot(source, cache)
            try:
                self._send_snapshot(cache, snapshot.id)
                return snapshot
            except FileNotFoundError:
                # The server removed contents that this machine has not kept: read the folder again.
                drop_caches(cache)
        raise SnapshotException(
            f"The snapshot of {source} cannot be sent",
            cause=f"Other programs keep removing files from {cache}.",
            hint="Submit again.",
        )

    def _send_snapshot(self, cache: Path, snapshot_id: str) -> None:
        from trainmaster.snapshots.blobs import blob_path
        from trainmaster.snapshots.manifest import manifest_path

        path = f"{self._connection.path}/snapshots{join_path(snapshot_id)}"
        if self._is_there(path):
            return
        text = Path(manifest_path(str(cache), snapshot_id)).read_bytes()
        files = json.loads(text)["files"]
        contents = [
            Content(each["digest"], each["size"], Path(blob_path(str(cache / "blobs"), each["digest"])))
            for each in files
        ]
        send_contents(self._connection, "snapshots", contents)
        self._commit(path, text)
        _forget(contents)

    def write_archive(self, snapshot_id: str, destination: Path) -> Path:
        """Writes a snapshot as a zip and returns the zip's path."""
        target = destination if destination.name.endswith(".zip") else destination / f"{snapshot_id}.zip"
        fetch(self._connection.client, f"{self._connection.path}/snapshots{join_path(snapshot_id)}/archive", target)
        return target

    def keep_wheel(self, wheel: Path, exist_ok: bool) -> str:
        """Keeps a wheel and returns its address."""
        from hashlib import file_digest

        from trainmaster.environments.private_wheel import check_wheel

        check_wheel(wheel)
        with open(wheel, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        path = f"{self._connection.path}/contents{join_path('wheels', digest)}"
        query = {"name": wheel.name, "exist_ok": "true" if exist_ok else "false"}
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
        request = Request("PUT", path, query, headers, lambda: open_file(wheel), wheel.stat().st_size)
        return str(self._connection.client.request(request).json()["address"])

    # Models

    def keep_model(self, entry: str, files: Mapping[str, Path]) -> Kept:
        """Keeps files of this machine as one model."""
        from trainmaster.sdk.backend.remote.models import describe_model

        kept, text, contents = describe_model(entry, files)
        path = f"{self._connection.path}/model-lists{join_path(kept.digest)}"
        # Asked even if the list is there: contents may have been damaged since.
        send_contents(self._connection, "models", contents)
        self._commit(path, text)
        return kept

    def read_model_list(self, digest: str) -> Manifest:
        """The list of a model's files."""
        from trainmaster.sdk.backend.remote.models import parse_list

        return parse_list(self._fetch_list(digest), digest)

    def model_list_path(self, digest: str) -> Path:
        """The path of a copy of that list on this machine."""
        path = self._models_cache / f"{digest}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.write_unflushed(path, self._fetch_list(digest))
        return path

    def copy_model(self, digest: str, target: Path) -> None:
        """Copies all files of a model into the folder `target`."""
        from trainmaster.sdk.backend.remote.models import fetch_files

        fetch_files(self._connection, self.read_model_list(digest), target)

    def materialise_model(self, name: str, version: int, digest: str) -> Path:
        """A folder in this machine's cache with nothing but the entry of a model; its files are read-only."""
        from trainmaster.sdk.backend.remote.models import make_folder

        return make_folder(self._connection, self.read_model_list(digest), self._models_cache / digest)

    def check_model(self, name: str, version: int, digest: str) -> None:
        """Lets the server read all files of a model."""
        from trainmaster.sdk.backend.remote.models import as_contents

        manifest = self.read_model_list(digest)
        damaged = set(find_missing(self._connection, "models", as_contents(manifest, Path())))
        found = [file.path for file in manifest.files if file.digest in damaged]
        if found:
            raise WebserviceException(
                f"model {name}:{version} is damaged",
                cause="\n".join(f"the content of {path} is missing or damaged" for path in found[:20]),
                hint="Register it again from where its files came from: that replaces damaged contents.",
            )

    @property
    def _models_cache(self) -> Path:
        return cache_folder(self._connection.client.address) / "models"

    def _fetch_list(self, digest: str) -> bytes:
        path = f"{self._connection.path}/model-lists{join_path(digest)}"
        return self._connection.client.request(Request("GET", path)).body

    def _is_there(self, path: str) -> bool:
        answer = self._connection.client.request(Request("HEAD", path), accept=lambda status: status == 404)
        return answer.status != 404

    def _commit(self, path: str, text: bytes) -> None:
        self._connection.client.request(Request("PUT", path, headers={"Content-Type": "application/json"}, body=text))


def _forget(contents: Iterable[Content]) -> None:
    """Removes the copies that were made to send them. What was hashed stays known."""
    for content in contents:
        content.path.unlink(missing_ok=True)

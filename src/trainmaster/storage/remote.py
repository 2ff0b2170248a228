"""A store that is accessed through fsspec. Importing this module imports fsspec, so it is imported only on demand."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from fsspec.core import url_to_fs

from trainmaster.job.errors import DatastoreException, TrainmasterError
from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.job.script.store_folder import open_part
from trainmaster.job.script.store_paths import join, printable
from trainmaster.storage.urls import mask_url, protocol_of

_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "adl": "adlfs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "http": "aiohttp",
    "https": "aiohttp",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    "hf": "huggingface_hub",
}
# Options that are not secret.
_PUBLIC = frozenset({"account_name", "account_host", "endpoint_url", "region_name"})
_INSTALL = {"adlfs": "pip install 'trainmaster[azure]'"}
_REFUSED = re.compile(r"credential|forbidden|denied|(?:un|not )authori[sz]ed|authenticat|\b40[13]\b", re.IGNORECASE)


class RemoteStorage(Storage):
    """The files below the path of one fsspec URL."""

    def __init__(self, filesystem: Any, root: str, url: str, options: dict[str, Any]) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._url = url
        self._options = options

    @classmethod
    def open(cls, url: str, options: dict[str, Any]) -> RemoteStorage:
        """Open `url`; raise DatastoreException if no installed driver can."""
        check_driver(url)
        with _explain_errors(f"{mask_url(url)} cannot be opened", url, options):
            filesystem, root = url_to_fs(url, **options)
        return cls(filesystem, root, url, options)

    def list(self, prefix: str) -> list[StoredFile]:
        """The files at and below `prefix`."""
        with self._explain_errors("listed", prefix):
            # Drivers cache listings, but a run that waited for its data must see it.
            self._filesystem.invalidate_cache()
            try:
                found = self._filesystem.find(self._full_path(prefix), detail=True)
                if not isinstance(found, dict):
                    # adlfs returns a list of names for a single file.
                    found = {self._full_path(prefix): self._filesystem.info(self._full_path(prefix))}
            except FileNotFoundError:
                return []
            files = [StoredFile(self._relative(name), info.get("size") or 0) for name, info in found.items()]
        return sorted(file for file in files if file.path)

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        with self._explain_errors("looked up", path):
            return bool(self._filesystem.isfile(self._full_path(path)))

    def get(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copy the file at `path` to `local`."""
        with self._explain_errors("read", path), open_part(local) as part:
            self._filesystem.get_file(self._full_path(path), part)

    def put(self, local: str | os.PathLike[str], path: str) -> None:
        """Copy the file `local` to `path`."""
        with self._explain_errors("written", path):
            target = self._full_path(path)
            try:
                self._filesystem.put_file(os.fspath(local), target)
            except FileNotFoundError:
                # Create the folder only if needed: not all stores have folders, and creating one may need more rights.
                self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._filesystem.put_file(os.fspath(local), target)

    def _full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _relative(self, name: str) -> str:
        root = self._root.strip("/")
        path = name.strip("/")
        path = path[len(root) :] if path.startswith(root) else path
        path = path.strip("/")
        # An archive or a bucket may contain any name; one with '..' would be written outside of the target.
        if ".." in path.split("/"):
            raise DatastoreException(f"{mask_url(self._url)} has a file whose name leaves the store: {printable(name)}")
        return path

    @contextmanager
    def _explain_errors(self, done: str, path: str) -> Iterator[None]:
        where = join(mask_url(self._url).rstrip("/"), printable(path))
        with _explain_errors(f"{where} cannot be {done}", self._url, self._options):
            yield


def check_driver(url: str) -> None:
    """Raise DatastoreException if no installed driver can open `url`."""
    protocol = protocol_of(url)
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        package = _PACKAGES.get(protocol, "the package named above")
        raise DatastoreException(
            f"{mask_url(url)} needs a package that is not installed",
            inner_exception=error,
            cause=str(error),
            hint=_INSTALL.get(package or "", f"pip install {package}")
            if package
            else "Install the package named above.",
        ) from error
    except ValueError as error:
        raise DatastoreException(
            f"{mask_url(url)}: nothing knows how to open {protocol!r} addresses",
            inner_exception=error,
            hint="Use a folder, or an address that fsspec knows, such as s3://, az://, gs:// or sftp://.",
        ) from error


@contextmanager
def _explain_errors(headline: str, url: str, options: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except TrainmasterError:
        raise
    except Exception as error:  # Each driver raises types of its own, which cannot be imported here.
        # Drivers add the whole answer of the server below the first line.
        text = str(error).strip().partition("\n")[0]
        cause = _without_secrets(printable(f"{type(error).__name__}: {text}"), url, options)
        raise DatastoreException(headline, inner_exception=error, cause=cause, hint=_hint(error)) from error


def _hint(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "Check the path; it may have been removed."
    if isinstance(error, NotImplementedError):
        return "This kind of store cannot do that; it may be read-only."
    if isinstance(error, PermissionError) or _REFUSED.search(f"{type(error).__name__} {error}"):
        return "Check the credentials: the datastore's options, or the variables its driver reads."
    return "Check the address, the datastore's options and the network."


def _without_secrets(text: str, url: str, options: dict[str, Any]) -> str:
    text = text.replace(url, mask_url(url))
    for value in _secret_texts(options):
        text = text.replace(value, "***")
    return text


def _secret_texts(options: dict[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if name in _PUBLIC or not isinstance(value, str) or len(value) < 6:
            continue
        yield value
        if name == "connection_string":
            parts = (part.partition("=") for part in value.split(";"))
            yield from (secret for key, _, secret in parts if key in ("AccountKey", "SharedAccessSignature") and secret)

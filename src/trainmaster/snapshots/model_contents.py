"""The contents of models: each file once, under its digest, and for each model a list of its files.

All of it lies in `<workspace>/models`: contents in `.blobs`, lists in `.lists`, and in `<name>/<version>` the files of
a model by their own names, made when somebody needs them there. A list is written when all its contents are there, and
a model is registered when its list is. So whoever is killed leaves nothing that could be taken for a model.

Digests are SHA-256, not those of snapshots: a service checks its model with what every Python has.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from trainmaster.job.agent import durable
from trainmaster.job.errors import (
    ModelPathNotFoundException,
    SnapshotException,
    UserErrorException,
    WebserviceException,
)
from trainmaster.job.helper.safe_names import inner_parts
from trainmaster.job.script.model_files import check_contents as _check
from trainmaster.job.script.model_files import digest_of
from trainmaster.job.script.model_rules import is_name
from trainmaster.shared import beneath
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain
from trainmaster.snapshots.blobs import (
    Hashing,
    SourceChangedError,
    blob_path,
    has_blob,
    store_file,
    sweep_forgotten,
    write_atomically,
)

_FORGOTTEN_SECONDS = 3600.0
_LONGEST_FOLDER = 200
# A file system without hard links, or another one, or a file that has as many as there can be.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES)


@dataclass(frozen=True)
class ModelFile:
    """A file of a model; its path begins with the model's entry."""

    path: str
    digest: str
    size: int
    executable: bool = False


@dataclass(frozen=True)
class Manifest:
    """What a model consists of. Paths use `/`; bytes that are no UTF-8 are surrogates."""

    entry: str
    """The one file or folder that all of it is, or is in."""
    files: tuple[ModelFile, ...]
    version: int = 1

    @property
    def byte_count(self) -> int:
        """How much there is of it."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Kept:
    """A list of files whose contents are there, by its digest."""

    digest: str
    manifest: Manifest


def check_contents(folder: Path, manifest: Manifest) -> list[str]:
    """What is wrong with the files below `folder` (the one that has the entry): a sentence each."""
    found: list[str] = _check(folder, [to_plain(file) for file in manifest.files])
    return found


class Contents:
    """The contents in the folder `<workspace>/models`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blobs = str(folder / ".blobs")

    def keep(self, entry: str, sources: Mapping[str, Path]) -> Kept:
        """Keep files as one model: `sources` has the path in the model, and where the file is."""
        sweep_forgotten(self._blobs)
        try:
            files = tuple(self._keep_file(path, source) for path, source in sorted(sources.items()))
            manifest = Manifest(entry, files)
            text = json.dumps(to_plain(manifest), sort_keys=True).encode("ascii")
            digest = sha256(text).hexdigest()
            write_atomically(self._blobs, str(self.list_path(digest)), text)
            self._flush(manifest, self.list_path(digest))
        except OSError as error:
            raise _cannot_keep(str(error)) from None
        return Kept(digest, manifest)

    def _flush(self, manifest: Manifest, list_path: Path) -> None:
        """A registered model survives a power cut."""
        files = {*map(self.path_of, manifest.files), list_path}
        durable.flush({*files, *(path.parent for path in files), self._blobs, self._folder, self._folder.parent})

    def _keep_file(self, path: str, source: Path) -> ModelFile:
        # A model folder may be full of links into a cache: what they lead to is kept.
        real = os.fsencode(os.path.realpath(source))
        try:
            stored = store_file(self._blobs, real, Hashing(sha256, is_intact))
        except SourceChangedError:
            raise ModelPathNotFoundException(
                f"{source} went away, or became something else, while it was read",
                hint="Register the model when nobody writes to it.",
            ) from None
        except SnapshotException as error:
            raise _cannot_keep(error.headline, error.cause) from None
        return ModelFile(path, stored.digest, stored.signature[3], stored.executable)

    def path_of(self, file: ModelFile) -> Path:
        """Where the content of a file lies; read-only."""
        return Path(blob_path(self._blobs, file.digest))

    def list_path(self, digest: str) -> Path:
        """Where the list with this digest lies: JSON, with `entry` and `files`."""
        return self._folder / ".lists" / f"{digest}.json"

    def manifest(self, digest: str) -> Manifest:
        """The list with this digest; one clear error if it is missing or damaged."""
        path = self.list_path(digest)
        try:
            text = path.read_bytes()
            if sha256(text).hexdigest() == digest:
                return check_paths(from_plain(Manifest, json.loads(text)))
            cause = f"{path} is not what was written."
        except OSError as error:
            cause = f"{path}: {error.strerror}"
        except (ValueError, PlainDataError) as error:
            cause = f"{path}: {error}"
        raise WebserviceException(
            "the list of the model's files is missing or damaged",
            cause=cause,
            hint="Register the model again from where its files came from.",
        )

    def is_there(self, digest: str) -> bool:
        """Whether the list and all contents in it are there, in their right sizes."""
        try:
            manifest = self.manifest(digest)
        except WebserviceException:
            return False
        return all(has_blob(self._blobs, file.digest, file.size) for file in manifest.files)

    def check(self, name: str, version: int, digest: str) -> None:
        """Read all files of a model; WebserviceException if one is not what was registered."""
        self._check(name, version, self.damages(digest, self.place_of(name, version)))

    def _check(self, name: str, version: int, damages: Sequence[str]) -> None:
        if damages:
            raise WebserviceException(
                f"model {name}:{version} is damaged",
                cause="\n".join(damages[:20]),
                hint="Register it again from where its files came from: that replaces damaged contents. "
                f"If only files of {self.place_of(name, version)} are, remove that folder; it is made again.",
            )

    def damages(self, digest: str, place: Path | None = None) -> list[str]:
        """What is wrong with contents and, if it is there, with the folder `place` made of them."""
        manifest = self.manifest(digest)
        found = [
            f"the content of {file.path} is missing or damaged" for file in manifest.files if not self._intact(file)
        ]
        if place is not None and place.is_dir():
            # One that is a link to its content has just been read.
            found += [f"{place}: {each}" for each in check_contents(place, self._apart(place, manifest))]
        return found

    def _apart(self, place: Path, manifest: Manifest) -> Manifest:
        """Those files of `place` that are no links to their contents."""
        return replace(manifest, files=tuple(file for file in manifest.files if not self._is_link(place, file)))

    def _intact(self, file: ModelFile) -> bool:
        return is_intact(self._blobs, file.digest, file.size)

    def _is_link(self, place: Path, file: ModelFile) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samefile(place / file.path, blob_path(self._blobs, file.digest))
        return False

    def place_of(self, name: str, version: int) -> Path:
        """The folder of a model's files; it has the entry and nothing else."""
        return self._folder / name_folder(name) / str(int(version))

    def materialise(self, name: str, version: int, digest: str) -> Path:
        """`place_of` the model, made if it is not there: read-only files, links to the contents where there can be."""
        place = self.place_of(name, version)
        manifest = self.manifest(digest)
        if not _has_all(place, manifest):
            self._make(place, manifest, _has_all)
        return place

    def sound(self, name: str, version: int, digest: str) -> Path:
        """`materialise`, with all of it read: what was changed in the folder is put right.

        WebserviceException if the contents themselves are damaged.
        """
        place = self.materialise(name, version, digest)
        manifest = self.manifest(digest)
        self._check(name, version, self.damages(digest))
        apart = self._apart(place, manifest)
        if check_contents(place, apart):
            self._make(place, manifest, lambda place, _: not check_contents(place, apart))
        return place

    def _make(self, place: Path, manifest: Manifest, is_good: Callable[[Path, Manifest], bool]) -> None:
        """Put a new folder in the place of what is there, unless somebody else just did."""
        making = self._folder / ".making" / os.urandom(8).hex()
        _drop_forgotten(making.parent)
        try:
            self.copy_to(making, manifest, _link_file)
            with _alone(self._folder / ".making.lock"):
                if not is_good(place, manifest):
                    _move_away(place, making.with_name(f"{making.name}-away"))
                    place.parent.mkdir(parents=True, exist_ok=True)
                    making.rename(place)
        except OSError as error:
            raise WebserviceException(
                f"the files of model {place.parent.name}:{place.name} cannot be had",
                cause=str(error),
                hint=f"'trainmaster models verify {place.parent.name}:{place.name}' tells whether they are whole.",
            ) from None
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def copy_to(self, target: Path, manifest: Manifest, put: Callable[[str, Path, ModelFile], None]) -> None:
        """Put all files of a model below `target`, each by `put`."""
        target.mkdir(parents=True, exist_ok=True)
        made: set[Path] = set()
        for file in manifest.files:
            path = target / file.path
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            put(blob_path(self._blobs, file.digest), path, file)

    def forget(self, name: str, version: int) -> None:
        """Remove the folder that `materialise` has made. The contents stay."""
        beneath.remove_tree(self._folder, f"{name_folder(name)}/{int(version)}")
        with contextlib.suppress(OSError):
            self.place_of(name, version).parent.rmdir()

    def drop(self, name: str, version: int, digest: str, used: Set[str]) -> None:
        """Remove what only this model had, and what registrations left that were killed; `used` are all other lists."""
        self.forget(name, version)
        own: set[str] = set()
        with contextlib.suppress(WebserviceException):
            own = self._digests([digest])
        try:
            needed = self._digests(used)
        except WebserviceException:
            # A list cannot be read, so its contents are unknown: remove nothing.
            return
        for path in (*self._folder.glob(".blobs/??/*"), *self._folder.glob(".lists/*.json")):
            known = path.name.removesuffix(".json")
            if known not in needed and known not in used and (known in own or known == digest or _is_forgotten(path)):
                path.unlink(missing_ok=True)

    def _digests(self, lists: Iterable[str]) -> set[str]:
        return {file.digest for each in lists for file in self.manifest(each).files}


def name_folder(name: str) -> str:
    """The name of the folder for a model of this name, which MLflow's clients choose freely: never a path.

    >>> name_folder("mnist"), name_folder("my model"), name_folder("..")
    ('mnist', '%my%20model', '%%2E%2E')
    """
    if is_name(name):
        return name
    if not isinstance(name, str) or not name:
        raise UserErrorException(f"{name!r:.60} cannot be the name of a model")
    # Nothing that is_name accepts begins with a percent sign.
    folder = "%" + quote(name, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(folder) <= _LONGEST_FOLDER:
        return folder
    return f"{folder[:100]}%{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def check_paths(manifest: Manifest) -> Manifest:
    """Return the list if all its files are inside its entry; raise ValueError otherwise."""
    for path in (manifest.entry, *(file.path for file in manifest.files)):
        if inner_parts(path)[0] != manifest.entry:
            raise ValueError(f"{path[:300]!r} does not lie in {manifest.entry[:300]!r}")
    return manifest


def is_intact(blobs: str, digest: str, size: int) -> bool:
    """Whether a content matches its digest. It is read completely: a change often keeps the size."""
    try:
        return has_blob(blobs, digest, size) and bool(digest_of(blob_path(blobs, digest)) == digest)
    except OSError:
        return False


def _has_all(place: Path, manifest: Manifest) -> bool:
    """Whether all files exist and have the right size. Their contents are not read."""
    try:
        return all(os.stat(f"{place}/{file.path}").st_size == file.size for file in manifest.files)
    except OSError:
        return False


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock so that no other process creates the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _move_away(place: Path, target: Path) -> None:
    """Remove an incomplete folder."""
    with contextlib.suppress(FileNotFoundError):
        place.rename(target)
    shutil.rmtree(target, ignore_errors=True)


def copy_file(blob: str, path: Path, file: ModelFile) -> None:
    """Create a writable copy of the blob, complete or not at all."""
    making = path.with_name(f".partial-{os.urandom(8).hex()}")
    try:
        shutil.copyfile(blob, making)
        if digest_of(making) != file.digest:
            raise OSError(errno.EIO, "the content is not what was registered", file.path)
        making.chmod(0o755 if file.executable else 0o644)
        making.replace(path)
    finally:
        making.unlink(missing_ok=True)


def _link_file(blob: str, path: Path, file: ModelFile) -> None:
    # A hard link shares the mode of the blob, which other models may use as a non-executable file.
    if not file.executable:
        try:
            os.link(blob, path)
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
    shutil.copyfile(blob, path)
    path.chmod(0o555 if file.executable else 0o444)


def _drop_forgotten(folder: Path) -> None:
    """Remove what killed processes left behind."""
    for path in folder.glob("*"):
        if _is_forgotten(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_forgotten(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _FORGOTTEN_SECONDS
    except OSError:
        return False


def _cannot_keep(cause: str, more: str = "") -> WebserviceException:
    return WebserviceException(
        "the model cannot be stored in the workspace",
        cause=f"{cause}: {more}" if more else cause,
        hint="Nothing was registered. Fix the cause and register the model again.",
    )

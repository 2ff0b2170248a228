"""Creates a run's working folder from its snapshot. Python 3.6, standard library: this runs on the node.

The folder gets its name when it is complete, so that a killed agent leaves nothing that looks like a complete folder.
"""

import errno
import fcntl
import os

from trainmaster.job.agent import jsonfile
from trainmaster.job.errors import SnapshotException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    AnyPath = Union[str, os.PathLike[str]]

# Up to this size, one read and one write cost less than asking the kernel to copy.
_SMALL = 1 << 16
_PIECE = 1 << 20
# FICLONE: the kernel shares the blocks of the source, on file systems that can.
_CLONE = 0x40049409


class SnapshotFile(object):
    """A file of a snapshot."""

    __slots__ = ("digest", "executable", "path", "size")

    def __init__(self, path: str, digest: str, size: int, executable: bool) -> None:
        self.path = path
        self.digest = digest
        self.size = size
        self.executable = executable


class Manifest(object):
    """The files, links (path, target) and empty folders of a snapshot."""

    __slots__ = ("files", "folders", "links")

    def __init__(self, files: "list[SnapshotFile]", links: "list[tuple[str, str]]", folders: "list[str]") -> None:
        self.files = files
        self.links = links
        self.folders = folders


def lay_out(manifest_path: "AnyPath", blobs_folder: "AnyPath", destination: "AnyPath") -> None:
    """Creates the folder `destination` as the manifest describes it, with contents copied from `blobs_folder`."""
    manifest = read_manifest(manifest_path)
    destination = os.path.abspath(str(destination))
    partial = "{}.partial-{}".format(destination, os.getpid())
    try:
        _remove(partial)
        os.makedirs(partial)
        _fill(partial, manifest, str(blobs_folder))
        os.rename(partial, destination)
    except OSError as error:
        _remove(partial)
        raise _cannot_lay_out(destination, error) from None
    except BaseException:
        _remove(partial)
        raise


def _cannot_lay_out(destination: str, error: OSError) -> SnapshotException:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and error.filename2 == destination:
        return SnapshotException(
            "The working folder {} already exists".format(destination),
            cause="It was created earlier, or something else has its name.",
            hint="Remove it, or submit the run again.",
        )
    return SnapshotException(
        "Cannot create the working folder {}".format(destination),
        cause=str(error),
        hint="Is the disk full or read-only on this node?",
    )


def read_manifest(path: "AnyPath") -> Manifest:
    """Reads the manifest of a snapshot. Raises SnapshotException."""
    try:
        manifest = jsonfile.read(str(path))
        files = [
            SnapshotFile(_check_path(item["path"]), item["digest"], item["size"], item["executable"])
            for item in manifest["files"]
        ]
        links = [(_check_path(item["path"]), _check_text(item["target"])) for item in manifest["links"]]
        return Manifest(files, links, [_check_path(folder) for folder in manifest["folders"]])
    except OSError as error:
        raise SnapshotException(
            "The snapshot's manifest cannot be read",
            cause=str(error),
            hint="Does this node see the same workspace folder? If so, submit the run again.",
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SnapshotException(
            "The snapshot's manifest {} is damaged".format(path),
            cause="{}: {}".format(type(error).__name__, error),
            hint="Remove the file and submit the run again.",
        ) from None


def _check_path(path: str) -> str:
    """Returns `path` if it stays inside the folder: a manifest edited by hand must not write anywhere else."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("the path {!r} is not a relative path inside the snapshot".format(path))
    return _check_text(path)


def _check_text(text: str) -> str:
    if b"\0" in os.fsencode(text):
        raise ValueError("{!r} cannot be part of a path".format(text))
    return text


def _fill(root: str, manifest: Manifest, blobs: str) -> None:
    made = {""}
    for path in manifest.folders:
        _make_folder(root, path, made)
    for file in manifest.files:
        _make_folder(root, file.path.rpartition("/")[0], made)
        _copy(blob_path(blobs, file.digest), root, file)
    # Links come last, so that no file can be written through a link.
    for path, target in manifest.links:
        _make_folder(root, path.rpartition("/")[0], made)
        os.symlink(target, root + "/" + path)


def _make_folder(root: str, path: str, made: "set[str]") -> None:
    if path not in made:
        os.makedirs(root + "/" + path, exist_ok=True)
        made.add(path)


def blob_path(blobs: str, digest: object) -> str:
    """The path of the content with this digest. Raises SnapshotException."""
    if not (isinstance(digest, str) and digest.isalnum()):
        raise SnapshotException(
            "The snapshot's manifest is damaged",
            cause="{!r} is not a digest.".format(digest),
            hint="Remove the manifest and submit the run again.",
        )
    return "{}/{}/{}".format(blobs, digest[:2], digest)


def _copy(blob: str, root: str, file: SnapshotFile) -> None:
    try:
        source = os.open(blob, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _content_error(blob, file.path, error.strerror) from None
    try:
        size = os.fstat(source).st_size
        if size != file.size:
            raise _content_error(blob, file.path, "it has {} bytes instead of {}".format(size, file.size))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        copy = os.open(root + "/" + file.path, flags, 0o777 if file.executable else 0o666)
        try:
            _copy_content(source, copy, size)
        finally:
            os.close(copy)
    finally:
        os.close(source)


def _content_error(blob: str, path: str, cause: "str | None") -> SnapshotException:
    return SnapshotException(
        "The content of {} is missing from the snapshot or damaged".format(path),
        cause="{}: {}".format(blob, cause),
        hint="Remove the workspace's snapshots/.cache folder and submit the run again.",
    )


def _copy_content(source: int, copy: int, size: int) -> None:
    if size > _SMALL and (_clone(source, copy) or _send(source, copy, size)):
        return
    os.lseek(source, 0, os.SEEK_SET)
    while True:
        piece = os.read(source, min(size + 1, _PIECE))
        if not piece:
            return
        view = memoryview(piece)
        while view:
            view = view[os.write(copy, view) :]


def _clone(source: int, copy: int) -> bool:
    try:
        fcntl.ioctl(copy, _CLONE, source)
    except OSError:
        return False
    return True


def _send(source: int, copy: int, size: int) -> bool:
    """Lets the kernel copy; False, with nothing written, where it cannot."""
    position = 0
    while position < size:
        try:
            sent = os.sendfile(copy, source, position, size - position)
        except OSError:
            if position:
                raise
            return False
        if not sent:
            raise OSError(errno.EIO, "the content became shorter while it was copied")
        position += sent
    return True


def _remove(folder: str) -> None:
    if os.path.isdir(folder):
        # Rarely needed, and slow to import.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)

"""Making a run's working folder from its snapshot. Python 3.6, standard library: this runs on the node.

The folder is made under another name and renamed when it is complete, so that a killed agent leaves nothing that
could be mistaken for it.
"""

import errno
import fcntl
import os

from trainmaster.job.agent import jsonfile
from trainmaster.job.errors import SnapshotException

# Up to this size one read and one write cost less than asking the kernel to do better.
_SMALL = 1 << 16
_PIECE = 1 << 20
# The kernel's "share the blocks of that file" (FICLONE), for file systems that can.
_CLONE = 0x40049409


def lay_out(manifest_path, blobs_folder, destination):
    """Make the folder `destination` as the manifest describes it, with contents copied from `blobs_folder`."""
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


def _cannot_lay_out(destination, error):
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and error.filename2 == destination:
        return SnapshotException(
            "The working folder {} is there already".format(destination),
            cause="It was laid out before, or something else is in its place.",
            hint="Remove it, or submit the run again.",
        )
    return SnapshotException(
        "Cannot make the working folder {}".format(destination),
        cause=str(error),
        hint="Is the disk full or read-only on this node?",
    )


def read_manifest(path):
    """Files (path, digest, size, executable), links and empty folders of a snapshot. Raises SnapshotException."""
    try:
        manifest = jsonfile.read(str(path))
        files = [
            (_checked(item["path"]), item["digest"], item["size"], item["executable"]) for item in manifest["files"]
        ]
        links = [(_checked(item["path"]), _encodable(item["target"])) for item in manifest["links"]]
        return files, links, [_checked(folder) for folder in manifest["folders"]]
    except OSError as error:
        raise SnapshotException(
            "The snapshot's manifest cannot be read",
            cause=str(error),
            hint="Is the workspace's folder the same on this node? If so, submit the run again.",
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SnapshotException(
            "The snapshot's manifest {} is damaged".format(path),
            cause="{}: {}".format(type(error).__name__, error),
            hint="Remove the file and submit the run again.",
        ) from None


def _checked(path):
    """`path`, if it stays inside the folder: a manifest edited by hand must not write anywhere else."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("the path {!r} is not a relative path inside the snapshot".format(path))
    return _encodable(path)


def _encodable(text):
    if b"\0" in os.fsencode(text):
        raise ValueError("{!r} cannot be in a path".format(text))
    return text


def _fill(root, manifest, blobs):
    files, links, folders = manifest
    made = {""}
    for path in folders:
        _make_folder(root, path, made)
    for path, digest, size, executable in files:
        _make_folder(root, path.rpartition("/")[0], made)
        _copy(blob_path(blobs, digest), root + "/" + path, size, 0o777 if executable else 0o666, path)
    # Links come last: no file can be written through one.
    for path, target in links:
        _make_folder(root, path.rpartition("/")[0], made)
        os.symlink(target, root + "/" + path)


def _make_folder(root, path, made):
    if path not in made:
        os.makedirs(root + "/" + path, exist_ok=True)
        made.add(path)


def blob_path(blobs, digest):
    """Where the content with this digest lies. Raises SnapshotException."""
    if not (isinstance(digest, str) and digest.isalnum()):
        raise SnapshotException(
            "The snapshot's manifest is damaged",
            cause="{!r} is not a digest.".format(digest),
            hint="Remove the manifest and submit the run again.",
        )
    return "{}/{}/{}".format(blobs, digest[:2], digest)


def _copy(blob, target, size, mode, path):
    try:
        source = os.open(blob, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _broken(blob, path, error.strerror) from None
    try:
        found = os.fstat(source).st_size
        if found != size:
            raise _broken(blob, path, "it has {} bytes instead of {}".format(found, size))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        copy = os.open(target, flags, mode)
        try:
            _copy_content(source, copy, size)
        finally:
            os.close(copy)
    finally:
        os.close(source)


def _broken(blob, path, cause):
    return SnapshotException(
        "The content of {} is missing from the snapshot or damaged".format(path),
        cause="{}: {}".format(blob, cause),
        hint="Remove the workspace's snapshots/.cache folder and submit the run again.",
    )


def _copy_content(source, copy, size):
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


def _clone(source, copy):
    try:
        fcntl.ioctl(copy, _CLONE, source)
    except OSError:
        return False
    return True


def _send(source, copy, size):
    """Let the kernel copy; False, with nothing written, where it cannot."""
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


def _remove(folder):
    if os.path.isdir(folder):
        # Rarely wanted, and slow to load.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)

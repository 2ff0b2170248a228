"""Whether folders are still as they were when last taken: the hot loop of an unchanged snapshot.

It is also a program of its own: for large trees a second process checks folders from the end while the first one does
so from the front (threads would only wait for each other: most of the time goes into one short system call per file).
So this module imports next to nothing, and works on the plain tuples that the cache holds.
"""

import marshal
import os
from operator import attrgetter

Signature = tuple[int, int, int, int]
IgnoreFile = tuple[bytes, Signature]
# path, own signature, ignore file, subfolders, names, signatures, contents, skipped, kept: see `tree.Folder`.
Record = tuple[bytes, Signature, IgnoreFile | None, bytes, bytes, bytes, bytes, bytes, bool]

# The change time cannot be set by a program, so a content change behind a restored modification time shows too.
sign = attrgetter("st_mtime_ns", "st_ctime_ns", "st_ino", "st_size")

CHECKSUM_SIZE = 32
_FOLDERS = 5
"""Where the folders are in the cache's tuple."""
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(root: bytes, path: bytes) -> int:
    """A descriptor of the folder `path` below `root`: short names relative to it are far cheaper than long paths."""
    return os.open(root + b"/" + path if path else root, _OPEN_FOLDER)


def sign_all(descriptor: int, names: list[bytes]) -> list[Signature]:
    """The signatures of `names` in an open folder; links are not followed."""
    stat = os.stat
    return [sign(stat(name, dir_fd=descriptor, follow_symlinks=False)) for name in names]


def pack(signatures: list[Signature]) -> bytes:
    """Signatures as bytes that are equal if they are. Marshal version 2: later ones depend on reference counts."""
    return marshal.dumps(signatures, 2)


def split(joined: bytes) -> list[bytes]:
    """The names that were joined with NUL, the one byte that is in no name."""
    return joined.split(b"\0") if joined else []


def is_unchanged(root: bytes, record: Record) -> bool:
    """Whether the folder has the same names, and each the same signature, as when `record` was made."""
    path, own, ignore_file, _, names, signatures = record[:6]
    try:
        descriptor = open_folder(root, path)
    except OSError:
        return False
    try:
        if sign(os.fstat(descriptor)) != own:
            return False
        if ignore_file and sign_all(descriptor, [ignore_file[0]]) != [ignore_file[1]]:
            return False
        return pack(sign_all(descriptor, split(names))) == signatures
    except OSError:
        return False
    finally:
        os.close(descriptor)


def main(root: bytes) -> None:
    """Check the folders of the cache on standard input from the last to the first; one byte of answer for each."""
    cached = os.pread(0, os.fstat(0).st_size, 0)
    folders = marshal.loads(memoryview(cached)[CHECKSUM_SIZE:])[_FOLDERS]
    for record in reversed(folders):
        os.write(1, b"1" if is_unchanged(root, record) else b"0")

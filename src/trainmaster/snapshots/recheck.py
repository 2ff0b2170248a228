"""Checks whether folders are unchanged since the last snapshot: the hot loop of an unchanged snapshot.

It works on the plain tuples that the cache holds, and compares all signatures of a folder at once, as bytes.
"""

import os
import sys
from array import array
from collections.abc import Callable
from itertools import chain, repeat
from operator import attrgetter

Signature = tuple[int, int, int, int]
IgnoreFile = tuple[bytes, Signature]
# path, own signature, ignore file, subfolders, names, signatures, contents, skipped, kept: see `tree.Folder`.
Record = tuple[bytes, Signature, IgnoreFile | None, bytes, bytes, bytes, bytes, bytes, bool]
PackNames = Callable[[int, list[bytes]], bytes]
"""The packed signatures of names in an open folder."""

# Programs cannot set the change time, so a change is visible even if the modification time is restored.
sign = attrgetter("st_mtime_ns", "st_ctime_ns", "st_ino", "st_size")

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECOND_NS = 1_000_000_000
_WORD = (1 << 64) - 1


def open_folder(root: bytes, path: bytes) -> int:
    """Open the folder `path` below `root`: names relative to a descriptor are much cheaper than long paths."""
    return os.open(root + b"/" + path if path else root, _OPEN_FOLDER)


def split(joined: bytes) -> list[bytes]:
    """Split names joined with NUL, which no name contains."""
    return joined.split(b"\0") if joined else []


def pack(signatures: list[Signature]) -> bytes:
    """Pack signatures into comparable bytes: six columns of 64-bit words, in the layout of the kernel's statx."""
    modified, changed, inodes, sizes = zip(*signatures, strict=True) if signatures else ((), (), (), ())
    words = [word & _WORD for word in inodes + sizes]
    for times in (changed, modified):
        words += [time // _SECOND_NS & _WORD for time in times]
        words += [time % _SECOND_NS for time in times]
    return array("Q", words).tobytes()


def unpack(packed: bytes) -> list[Signature]:
    """Unpack what `pack` packed."""
    words = array("q", packed).tolist()
    count = len(words) // 6
    inodes, sizes, changed, changed_ns, modified, modified_ns = (
        words[column * count : (column + 1) * count] for column in range(6)
    )
    return [
        (second * _SECOND_NS + part, changed_second * _SECOND_NS + changed_part, inode, size)
        for second, part, changed_second, changed_part, inode, size in zip(
            modified, modified_ns, changed, changed_ns, inodes, sizes, strict=True
        )
    ]


def pack_names(descriptor: int, names: list[bytes]) -> bytes:
    """Pack the signatures of `names` in an open folder; links are not followed."""
    stat = os.stat
    return pack([sign(stat(name, dir_fd=descriptor, follow_symlinks=False)) for name in names])


def fast_pack_names() -> PackNames:
    """`pack_names` through the C library, for many files: `os.stat` creates about twenty objects per file.

    Loading ctypes takes a few milliseconds. Where the C library or the kernel has no statx, this is `pack_names`.
    """
    try:
        import ctypes

        statx = ctypes.PyDLL(None).statx
    except (ImportError, AttributeError, OSError):
        return pack_names
    at_once, size, words = 1024, 256, 256 // 8
    no_follow, basic = 0x100, 0x7FF
    buffer = ctypes.create_string_buffer(at_once * size)
    # Objects are created once, and no argument types are declared, which would create an object per argument.
    slots = [ctypes.c_void_p(ctypes.addressof(buffer) + number * size) for number in range(at_once)]
    view = memoryview(buffer).cast("B").cast("Q")
    columns = (4, 5, 12, 13, 14, 15)  # inode, size, changed, its nanoseconds, modified, its nanoseconds

    def pack_some(descriptor: int, names: list[bytes]) -> bytes:
        packed: list[list[bytes]] = [[] for _ in columns]
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            if any(map(statx, repeat(descriptor), some, repeat(no_follow), repeat(basic), slots)):
                raise FileNotFoundError("a file disappeared")
            for column, parts in zip(columns, packed, strict=True):
                parts.append(view[column : len(some) * words : words].tobytes())
        return b"".join(chain.from_iterable(packed))

    works = sys.byteorder == "little" and statx(-1, b"/", no_follow, basic, slots[0]) == 0
    return pack_some if works else pack_names


def is_unchanged(root: bytes, record: Record, pack_some: PackNames = pack_names) -> bool:
    """Whether the folder still has the names and signatures of `record`."""
    path, own, ignore_file, _, names, signatures = record[:6]
    try:
        descriptor = open_folder(root, path)
    except OSError:
        return False
    try:
        if sign(os.fstat(descriptor)) != own:
            return False
        if ignore_file and pack_some(descriptor, [ignore_file[0]]) != pack([ignore_file[1]]):
            return False
        return pack_some(descriptor, split(names)) == signatures
    except OSError:
        return False
    finally:
        os.close(descriptor)

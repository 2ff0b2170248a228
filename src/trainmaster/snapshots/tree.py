"""Walks the source: every folder, which of its files are copied, and which of those the cache already knows."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Set
from typing import NamedTuple

from trainmaster.snapshots.blobs import SourceChangedError, unreadable
from trainmaster.snapshots.ignore import (
    GIT_IGNORE_FILE,
    IGNORE_FILE,
    RuleSet,
    Verdict,
    is_environment,
    judge,
    parse_rules,
)
from trainmaster.snapshots.recheck import (
    IgnoreFile,
    Record,
    Signature,
    open_folder,
    pack,
    sign,
    split,
    unpack,
)

# Timestamps come from a clock that ticks every few milliseconds: a second change within one tick is invisible. Files
# younger than this are read again next time.
_TICK_NS = 100_000_000
# For file systems that store whole (or even) seconds.
_COARSE_TICK_NS = 2_100_000_000
_NEVER_EQUAL: Signature = (-1, -1, -1, -1)

FILE = b"-"
PROGRAM = b"x"
LINK = b"@"


class Folder:
    """One folder of the source. Its entries (files and links) are in three parallel lists."""

    def __init__(self, path: bytes, signature: Signature) -> None:
        self.path = path
        self.signature = signature
        self.ignore_file: IgnoreFile | None = None
        self.subfolders: list[bytes] = []
        self.names: list[bytes] = []
        self.signatures: list[Signature] = []
        self.contents: list[bytes] = []
        """A kind, followed by the digest or the link's target; empty for a file that is not hashed yet."""
        self.skipped: list[bytes] = []
        """Names of sockets, pipes and devices."""
        self.kept = True
        """False for a Python environment, which is ignored completely."""
        self.record: Record | None = None
        """The cache's record, if it is still valid."""

    def path_of(self, name: bytes) -> bytes:
        """The path of `name` relative to the source."""
        return self.path + b"/" + name if self.path else name


def to_record(folder: Folder, scan_start_ns: int) -> Record:
    """Convert `folder` for the cache. Entries too young to be trusted get a signature that never matches."""
    if folder.record is not None:
        return folder.record
    ignore_file = folder.ignore_file
    return (
        folder.path,
        _settle(folder.signature, scan_start_ns),
        (ignore_file[0], _settle(ignore_file[1], scan_start_ns)) if ignore_file else None,
        b"\0".join(folder.subfolders),
        b"\0".join(folder.names),
        pack([_settle(signature, scan_start_ns) for signature in folder.signatures]),
        b"\0".join(folder.contents),
        b"\0".join(folder.skipped),
        folder.kept,
    )


def _settle(signature: Signature, scan_start_ns: int) -> Signature:
    newest = max(signature[0], signature[1])
    tick = _TICK_NS if signature[1] % 1_000_000_000 else _COARSE_TICK_NS
    return signature if newest < scan_start_ns - tick else _NEVER_EQUAL


def from_record(record: Record) -> Folder:
    """Convert a record of the cache back into a folder."""
    path, own, ignore_file, subfolders, names, signatures, contents, skipped, kept = record
    folder = Folder(path, own)
    folder.ignore_file = ignore_file
    folder.subfolders = split(subfolders)
    folder.names = split(names)
    folder.signatures = unpack(signatures)
    folder.contents = split(contents)
    folder.skipped = split(skipped)
    folder.kept = kept
    return folder


class Scope:
    """The ignore rules of a folder; read only when a folder has to be listed."""

    def __init__(self, root: bytes, path: bytes, ignore_name: bytes | None, parent: Scope | None) -> None:
        self._root = root
        self._path = path
        self._ignore_name = ignore_name
        self._parent = parent
        self._rules: RuleSet | None = None
        self._is_read = False

    @property
    def has_own_file(self) -> bool:
        """Whether there is an `.amlignore`, which replaces all `.gitignore` files."""
        return self._ignore_name == IGNORE_FILE or (self._parent is not None and self._parent.has_own_file)

    def enter(self, path: bytes, ignore_name: bytes | None) -> Scope:
        """The scope inside the folder `path`."""
        return Scope(self._root, path, ignore_name, self) if ignore_name else self

    def judge(self, path: bytes, is_folder: bool) -> Verdict:
        """Decide whether `path` is ignored."""
        return judge(self._read(), path, is_folder)

    def _read(self) -> RuleSet | None:
        if not self._is_read:
            above = self._parent._read() if self._parent else None
            self._rules = self._parse(above) if self._ignore_name else above
            self._is_read = True
        return self._rules

    def _parse(self, above: RuleSet | None) -> RuleSet:
        path = b"/".join(part for part in (self._root, self._path, self._ignore_name) if part)
        try:
            with open(path, "rb") as file:
                return parse_rules(file.read(), self._path, above)
        except FileNotFoundError:
            raise SourceChangedError from None
        except OSError as error:
            raise unreadable(path, error) from None


class _Visit(NamedTuple):
    path: bytes
    scope: Scope
    rules_known: bool
    """Whether the rules of the folders above are those that the cache was made with."""


class Walk(NamedTuple):
    """One walk through the source; `known` are the records of the cache."""

    root: bytes
    excluded: bytes | None
    """The workspace, if it is inside the source."""
    known: Mapping[bytes, Record]
    unchanged: Set[bytes]
    """Folders that were just checked and match the cache."""

    def folders(self) -> list[Folder]:
        """All folders, parents first."""
        found: list[Folder] = []
        waiting = [_Visit(b"", Scope(self.root, b"", None, None), rules_known=True)]
        while waiting:
            folder, below = self._visit(waiting.pop())
            found.append(folder)
            waiting.extend(below)
        return found

    def _visit(self, visit: _Visit) -> tuple[Folder, list[_Visit]]:
        record = self.known.get(visit.path)
        if visit.rules_known and record is not None and visit.path in self.unchanged:
            folder = from_record(record)
            folder.record = record
            return folder, _visit_subfolders(folder, _scope_of(folder, visit), rules_known=True)
        try:
            descriptor = open_folder(self.root, visit.path)
        except (FileNotFoundError, NotADirectoryError):
            raise SourceChangedError from None
        except OSError as error:
            raise unreadable(self._full_path(visit), error) from None
        try:
            return self._list(visit, descriptor, record)
        except FileNotFoundError:
            raise SourceChangedError from None
        except OSError as error:
            raise unreadable(self._full_path(visit), error) from None
        finally:
            os.close(descriptor)

    def _full_path(self, visit: _Visit) -> bytes:
        return self.root + b"/" + visit.path if visit.path else self.root

    def _list(self, visit: _Visit, descriptor: int, record: Record | None) -> tuple[Folder, list[_Visit]]:
        # Read the folder's signature first: a name added during the listing then shows as a change next time.
        folder = Folder(visit.path, sign(os.fstat(descriptor)))
        kinds = _list_kinds(descriptor)
        if self._is_unwanted_environment(visit, kinds):
            folder.kept = False
            return folder, []
        folder.ignore_file = _find_ignore_file(visit, kinds, descriptor)
        scope = _scope_of(folder, visit)
        for name, kind in sorted(kinds.items()):
            path = folder.path_of(name)
            if path == self.excluded or scope.judge(path, kind == _FOLDER).ignored:
                continue
            chosen = {_FOLDER: folder.subfolders, _SPECIAL: folder.skipped}.get(kind, folder.names)
            chosen.append(name)
        _fill(folder, descriptor, record)
        rules_known = visit.rules_known and record is not None and record[2] == folder.ignore_file
        return folder, _visit_subfolders(folder, scope, rules_known)

    def _is_unwanted_environment(self, visit: _Visit, kinds: Mapping[bytes, str]) -> bool:
        if not visit.path or not is_environment(kinds.keys()):
            return False
        return not visit.scope.judge(visit.path, is_folder=True).wanted


def _scope_of(folder: Folder, visit: _Visit) -> Scope:
    return visit.scope.enter(folder.path, folder.ignore_file[0] if folder.ignore_file else None)


def _visit_subfolders(folder: Folder, scope: Scope, rules_known: bool) -> list[_Visit]:
    return [_Visit(folder.path_of(name), scope, rules_known) for name in folder.subfolders]


_FOLDER = "folder"
_ENTRY = "entry"
_SPECIAL = "special"


def _list_kinds(descriptor: int) -> dict[bytes, str]:
    kinds: dict[bytes, str] = {}
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                kind = _FOLDER
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                kind = _ENTRY
            else:
                kind = _SPECIAL
            kinds[os.fsencode(entry.name)] = kind
    return kinds


def _find_ignore_file(visit: _Visit, kinds: Mapping[bytes, str], descriptor: int) -> IgnoreFile | None:
    if visit.scope.has_own_file:
        return None
    candidates = (GIT_IGNORE_FILE,) if visit.path else (IGNORE_FILE, GIT_IGNORE_FILE)
    for name in candidates:
        if kinds.get(name) != _ENTRY:
            continue
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        # Like git, do not follow a linked ignore file: a change of its target would not be noticed.
        if stat.S_ISREG(found.st_mode):
            return name, sign(found)
    return None


def _fill(folder: Folder, descriptor: int, record: Record | None) -> None:
    """Fill in signatures and contents of the folder's entries, as far as known without reading files."""
    known = _recall_contents(record)
    for name in folder.names:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        signature = sign(found)
        content = known.get((name, signature), b"")
        if not content and stat.S_ISLNK(found.st_mode):
            content = LINK + os.readlink(name, dir_fd=descriptor)
        elif not content and not stat.S_ISREG(found.st_mode):
            raise SourceChangedError
        folder.signatures.append(signature)
        folder.contents.append(content)


def _recall_contents(record: Record | None) -> dict[tuple[bytes, Signature], bytes]:
    if record is None:
        return {}
    before = from_record(record)
    return dict(zip(zip(before.names, before.signatures, strict=True), before.contents, strict=True))

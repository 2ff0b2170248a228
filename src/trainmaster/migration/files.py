"""Which files are read: what was named, and below folders every script and notebook that no ignore file leaves out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.snapshots.ignore import (
    GIT_IGNORE_FILE,
    IGNORE_FILE,
    RuleSet,
    is_environment,
    judge,
    parse_rules,
)

_ENDINGS = (".py", ".ipynb")


def readable(paths: list[str]) -> Iterator[Path]:
    """The files, each once, in order."""
    seen: set[Path] = set()
    for given in paths:
        path = Path(given)
        if not path.exists():
            raise UserErrorException(f"there is no file or folder {given}")
        for found in _below(path, b"", None) if path.is_dir() else [path]:
            if found.resolve() not in seen:
                seen.add(found.resolve())
                yield found


def _below(folder: Path, inner: bytes, rules: RuleSet | None) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        # It is told like a file that cannot be read, and the others go on.
        yield folder
        return
    names = {os.fsencode(entry.name) for entry in entries}
    if inner and is_environment(names):
        return
    for name in (IGNORE_FILE, GIT_IGNORE_FILE):
        # As in a snapshot: the first of the two that is there counts.
        if name in names and (folder / os.fsdecode(name)).is_file():
            rules = parse_rules((folder / os.fsdecode(name)).read_bytes(), inner, rules)
            break
    for entry in entries:
        path = os.path.join(inner, os.fsencode(entry.name))
        is_folder = entry.is_dir(follow_symlinks=False)
        if judge(rules, path, is_folder).ignored:
            continue
        if is_folder:
            yield from _below(folder / entry.name, path, rules)
        elif entry.name.endswith(_ENDINGS) and entry.is_file():
            yield folder / entry.name

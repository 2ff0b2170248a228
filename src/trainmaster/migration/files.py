"""Which files are read: those that were named, and in folders all scripts and notebooks that are not ignored."""

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


def find_scripts(paths: list[str]) -> Iterator[Path]:
    """The files, each once, in order. A folder among them cannot be read."""
    seen: set[Path] = set()
    for given in paths:
        path = Path(given)
        if not path.exists():
            raise UserErrorException(f"{given} does not exist")
        for found in _walk(path, b"", None) if path.is_dir() else [path]:
            if found.resolve() not in seen:
                seen.add(found.resolve())
                yield found


def _walk(folder: Path, inner: bytes, rules: RuleSet | None) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        # Reported like a file that cannot be read, and the walk continues.
        yield folder
        return
    names = {os.fsencode(entry.name) for entry in entries}
    if inner and is_environment(names):
        return
    for name in (IGNORE_FILE, GIT_IGNORE_FILE):
        # As in a snapshot, the first of the two that exists counts.
        if name in names and (folder / os.fsdecode(name)).is_file():
            rules = parse_rules((folder / os.fsdecode(name)).read_bytes(), inner, rules)
            break
    for entry in entries:
        path = os.path.join(inner, os.fsencode(entry.name))
        is_folder = entry.is_dir(follow_symlinks=False)
        if judge(rules, path, is_folder).ignored:
            continue
        if is_folder:
            yield from _walk(folder / entry.name, path, rules)
        elif entry.name.endswith(_ENDINGS) and entry.is_file():
            yield folder / entry.name

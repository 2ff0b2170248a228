"""What differs between two runs: arguments, settings, packages, metrics and code. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainmaster.shared.arguments import arguments_of, words_of_command

LARGEST_FILE = 512 * 1024
"""Of a file whose lines are compared."""
_MOST_LINES = 10_000
_LONGEST_DIFF = 100_000
_LONGEST_IN_ALL = 2_000_000
_MOST_FILES = 500
_LONGEST_VALUE = 2000

# They have a part of their own, or say nothing about what the run did.
_LEFT_OUT = ("arguments", "command", "environment", "inherited_variables", "snapshot_id", "source_directory", "version")


@dataclass(frozen=True)
class ValueDifference:
    """Something that has another value in the other run; null if a run does not have it."""

    name: str
    left: str | None
    right: str | None


@dataclass(frozen=True)
class FileDifference:
    """A file that was added, removed or changed."""

    path: str
    kind: Literal["added", "removed", "changed"]
    diff: str = ""
    """The lines that differ, in unified format."""
    notice: str = ""
    """Why there are no lines."""
    added: int = 0
    """Lines."""
    removed: int = 0


@dataclass(frozen=True)
class RunDifferences:
    """What differs between two runs."""

    left: str
    right: str
    arguments: tuple[ValueDifference, ...]
    settings: tuple[ValueDifference, ...]
    """Target, nodes, user, and what else was set for the job, by name."""
    environment: tuple[ValueDifference, ...]
    """Of its definition."""
    packages: tuple[ValueDifference, ...]
    """Versions of packages in the locks of both environments."""
    metrics: tuple[ValueDifference, ...]
    """Last values."""
    files: tuple[FileDifference, ...]
    notices: tuple[str, ...] = ()
    """What could not be compared, and why."""
    machine: tuple[ValueDifference, ...] = ()
    """Of the machines that the processes ran on."""


def compare_values(left: Mapping[str, str], right: Mapping[str, str]) -> tuple[ValueDifference, ...]:
    """Those that differ, by name.

    >>> compare_values({"lr": "0.1", "seed": "1"}, {"lr": "0.2", "seed": "1"})
    (ValueDifference(name='lr', left='0.1', right='0.2'),)
    """
    return tuple(
        ValueDifference(name, _shorten(left.get(name)), _shorten(right.get(name)))
        for name in sorted({*left, *right})
        if left.get(name) != right.get(name)
    )


def _shorten(value: str | None) -> str | None:
    return value if value is None or len(value) <= _LONGEST_VALUE else value[:_LONGEST_VALUE] + "…"


def list_arguments(spec: str) -> dict[str, str]:
    """The arguments in the specification of a job; those without a name by their place."""
    job = _load(spec)
    words = [*words_of_command(_texts(job.get("command"))), *_texts(job.get("arguments"))]
    found = arguments_of(words)
    return found or {str(number): word for number, word in enumerate(words)}


def list_settings(spec: str) -> dict[str, str]:
    """The other settings in the specification of a job, by names such as `distribution.kind`."""
    job = _load(spec)
    return dict(_flatten({name: value for name, value in job.items() if name not in _LEFT_OUT}))


def list_environment(spec: str) -> dict[str, str]:
    """The definition of the environment in the specification of a job."""
    found = _load(spec).get("environment") or {}
    # The packages have a part of their own.
    return dict(_flatten({name: value for name, value in found.items() if name != "lock"}))


def _load(spec: str) -> dict[str, Any]:
    try:
        found = json.loads(spec) if spec else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(words: Any) -> list[str]:
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flatten(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        if value:
            yield name, "\n".join(value)
    elif value not in (None, "", [], {}):
        yield name, value if isinstance(value, str) else json.dumps(value)


def compare_code(
    left: Mapping[str, str],
    right: Mapping[str, str],
    read: Callable[[str, int], bytes | None],
    has_time: Callable[[], bool] = lambda: True,
) -> tuple[tuple[FileDifference, ...], list[str]]:
    """The files that differ, and notices. Both sides are paths with the digests of their contents.

    `read` takes a digest and a size, and returns the content, None if it is larger or not there. Lines are compared
    as long as `has_time` says so.
    """
    differing = sorted(path for path in {*left, *right} if left.get(path) != right.get(path))
    found: list[FileDifference] = []
    total = 0
    for path in differing[:_MOST_FILES]:
        has_room = total < _LONGEST_IN_ALL and has_time()
        difference = _compare_file(path, left.get(path), right.get(path), read, has_room)
        total += len(difference.diff)
        found.append(difference)
    more = len(differing) - len(found)
    return tuple(found), [f"{more} more files differ."] if more else []


def _compare_file(
    path: str, left: str | None, right: str | None, read: Callable[[str, int], bytes | None], has_room: bool
) -> FileDifference:
    kind: Literal["added", "removed", "changed"] = (
        "added" if left is None else "removed" if right is None else "changed"
    )
    if not has_room:
        return FileDifference(path, kind, notice="Too much differs to show the lines of this file.")
    texts: list[list[str]] = []
    for digest in (left, right):
        data = b"" if digest is None else read(digest, LARGEST_FILE)
        if data is None:
            return FileDifference(path, kind, notice="It is too large to be compared line by line.")
        if b"\0" in data:
            return FileDifference(path, kind, notice="It is not a text.")
        texts.append(data.decode("utf-8", "replace").splitlines(keepends=True))
    if max(map(len, texts)) > _MOST_LINES:
        return FileDifference(path, kind, notice="It has too many lines to be compared.")
    return _make_diff(path, kind, texts[0], texts[1])


def _make_diff(
    path: str, kind: Literal["added", "removed", "changed"], left: Sequence[str], right: Sequence[str]
) -> FileDifference:
    lines = list(difflib.unified_diff(left, right, f"a/{path}", f"b/{path}"))
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    if len(text) > _LONGEST_DIFF:
        cut = text[: text.rfind("\n", 0, _LONGEST_DIFF) + 1]
        return FileDifference(path, kind, cut, "Only the first differences are shown.", added, removed)
    return FileDifference(path, kind, text, "", added, removed)

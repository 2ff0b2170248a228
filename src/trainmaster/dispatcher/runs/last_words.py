"""Finds the exception or error message in the last lines that a failed script printed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmaster.shared.terminal import without_escapes

_LONGEST = 300
_HEADER = re.compile(r"[\s|+]*(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'[\s|]+File "(?P<file>.+)", line (?P<line>\d+)(?:, in .*)?')
# In an exception group, lines start with a bar.
_MARGIN = re.compile(r"[ |]*\| ")
_EXCEPTION = re.compile(r"(?P<type>[^\W\d][\w.]*)(?::(?: .*)?)?")
_NAMED = re.compile(r"[^\W\d][\w.]*(?:Error|Exception|Interrupt|Exit|Warning): \S.*")
# The last line that argparse, optparse and click print.
_USAGE = re.compile(r"(?:\S+: error|Error): \S.*")
# A traceback after one of these lines did not end the script.
_IGNORED = ("Exception ignored", "--- Logging error ---", "Error in atexit.")
_OF_THREAD = "Exception in thread"
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")


def exception_in(tail: str) -> str:
    """The line with the exception that ended a script; empty if its last lines show no exception.

    >>> exception_in('Traceback (most recent call last):\\n  File "a.py", line 1, in <module>\\nKeyError: 1\\n')
    'KeyError: 1'
    >>> exception_in("epoch 3\\n")
    ''
    """
    return next(iter(exceptions_in(tail)), "")


def exceptions_in(tail: str) -> list[str]:
    """The exception that ended a script, followed by its causes."""
    lines = [_plain(line) for line in tail.splitlines()]
    headers = [number for number, line in enumerate(lines) if _HEADER.fullmatch(line)]
    of_main = [number for number in headers if not _previous_line(lines, number).startswith((*_IGNORED, _OF_THREAD))]
    of_threads = [number for number in headers if _previous_line(lines, number).startswith(_OF_THREAD)]
    found = list(_chain(lines, of_main or of_threads))
    if not found and not headers:
        found = [_without_header(lines)]
    return [_shorten(line) for line in found if line]


def message_in(tail: str, exit_code: int | None) -> str:
    """The error message of a script that shows no exception: that of its argument parser.

    >>> message_in("usage: train.py [-h]\\ntrain.py: error: unrecognized arguments: --lr 1\\n", 2)
    'train.py: error: unrecognized arguments: --lr 1'
    """
    line = last_line(tail)
    return line if exit_code == 2 and _USAGE.fullmatch(line) else ""


def last_line(tail: str) -> str:
    """The last line that contains letters or digits."""
    lines = (_plain(line).strip() for line in reversed(tail.splitlines()))
    return _shorten(next((line for line in lines if _says_something(line)), ""))


def _chain(lines: Sequence[str], headers: Sequence[int]) -> Iterator[str]:
    """The exception below the last header, and the exceptions above it that it is chained to."""
    for place in reversed(range(len(headers))):
        yield _find_exception(lines, headers[place])
        if _previous_line(lines, headers[place]) not in _CHAINED:
            return


def _without_header(lines: Sequence[str]) -> str:
    """The exception in a traceback whose first lines are missing or that has another format."""
    first = next((number for number, line in enumerate(lines) if _FRAME.fullmatch(line)), None)
    if first is not None:
        return _find_exception(lines, first - 1)
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last if _NAMED.fullmatch(last) else ""


def _find_exception(lines: Sequence[str], header: int) -> str:
    """The exception of the traceback that starts with `header`: the first line that does not belong to a frame."""
    place = ""
    for number in range(header + 1, len(lines)):
        line = _MARGIN.sub("", lines[number], count=1)
        frame = _FRAME.fullmatch(lines[number])
        if frame:
            place = f"{frame['file'].rpartition('/')[2]}, line {frame['line']}"
        elif line.strip() and not line.startswith((" ", "\t")):
            found = _EXCEPTION.fullmatch(line)
            return _whole(line, found["type"], lines[number + 1 :], place) if found else ""
    return ""


def _whole(line: str, kind: str, after: Sequence[str], place: str) -> str:
    """The line, with the place of a syntax error, or with the next line if this line ends with a colon."""
    if kind in _SYNTAX and place:
        return f"{line} ({place})"
    if line.endswith(":"):
        return f"{line} {next((each.strip() for each in after if _says_something(each)), '')}".rstrip()
    return line.rstrip(": ")


def _previous_line(lines: Sequence[str], number: int) -> str:
    """The last line before this one that is not empty."""
    return next((line.strip() for line in reversed(lines[:number]) if line.strip()), "")


def _says_something(line: str) -> bool:
    return any(letter.isalnum() for letter in line)


def _plain(line: str) -> str:
    text = without_escapes(line).rstrip()
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shorten(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."

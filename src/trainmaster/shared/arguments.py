"""The arguments of a script by name, as they stand on its command line. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence

_ASSIGNMENT = re.compile(r"[A-Za-z_][\w./-]*=")
FLAG = "true"
"""The value of an argument that has none."""


def plain_name(name: str) -> str:
    """The name of an argument, however it was written.

    >>> plain_name("--batch-size"), plain_name("batch_size")
    ('batch_size', 'batch_size')
    """
    return (name.lstrip("-") or name).replace("-", "_")


def arguments_of(words: Iterable[str]) -> dict[str, str]:
    """Name to value: `--lr 0.1`, `--lr=0.1`, `lr=0.1` and flags. The last one of a name counts.

    Several values are joined by a space. Words without a name are left out.

    >>> arguments_of(["data.csv", "--lr", "0.1", "--layers", "64", "32", "--shift", "-1", "model.depth=3", "--quiet"])
    {'lr': '0.1', 'layers': '64 32', 'shift': '-1', 'model.depth': '3', 'quiet': 'true'}
    """
    found: dict[str, list[str]] = {}
    values: list[str] | None = None
    for word in words:
        if is_name(word):
            name, equals, value = word.partition("=")
            values = found[plain_name(name)] = [value] if equals else []
            if equals:
                values = None
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            found[plain_name(name)] = [value]
            values = None
        elif values is not None:
            values.append(word)
    return {name: " ".join(values) if values else FLAG for name, values in found.items()}


def number_of(text: str) -> float | None:
    """The finite number that `text` is; None for any other text.

    >>> number_of("1e-3"), number_of("nan"), number_of("1_000")
    (0.001, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def words_of_command(command: Sequence[str]) -> list[str]:
    """The words of a command that may be written as one text for a shell."""
    words: list[str] = []
    for text in command:
        try:
            words += shlex.split(text)
        except ValueError:
            words.append(text)
    return words


def is_name(word: str) -> bool:
    """Whether a word is the name of an argument: `--lr`, `-x`, but not `-1`."""
    if not word.startswith("-") or not word.strip("-"):
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False

r"""What a terminal is shown of texts from scripts, logs and services: colours, and no other control.

A terminal obeys whatever it is sent: its title, the clipboard, a cleared screen. So of escape sequences only those that
choose colours and styles (SGR, `ESC [ ... m`) pass, and of control characters only tab, line feed and carriage return,
which progress bars need. Files and pipes get every byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO, Any

# A sequence begins with ESC, or with the one character (C1) that stands for ESC and another.
_STRING_START = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])"
_STRING = r"[^\x07\x1b\x9c\x18\x1a\n]*"
_CONTROL = re.compile(
    # Titles, the clipboard, ...: to the end mark or, where that is missing, to the end of the line.
    rf"{_STRING_START}{_STRING}(?:\x07|\x1b\\|[\x9c\x18\x1a]|(?=[\n\x1b]))"
    r"|(?:\x1b\[|\x9b)(?P<style>[0-9;:]*)m"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-Z\\`-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# What may be the beginning of a sequence whose rest has yet to come.
_BEGUN = re.compile(rf"(?:{_STRING_START}{_STRING}\x1b?|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*)\Z")
_LONGEST_BEGUN = 1 << 12
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")


class Filter:
    """Removes control sequences that a terminal must not receive, even if they arrive in several pieces."""

    def __init__(self) -> None:
        self._begun = ""

    def pass_on(self, text: str) -> str:
        """What of the next piece is shown now."""
        text = self._begun + text
        self._begun = ""
        if text.isprintable():
            return text
        begun = _BEGUN.search(text)
        if begun is not None:
            text, self._begun = text[: begun.start()], _shorten(begun[0])
        return _CONTROL.sub(_style_alone, text)


def _style_alone(found: re.Match[str]) -> str:
    style = found["style"]
    return "" if style is None else f"\x1b[{style}m"


def _shorten(begun: str) -> str:
    """Keep only the beginning of a string that does not end, so that it cannot fill the memory."""
    return begun if len(begun) < _LONGEST_BEGUN else begun[:2]


def clean(text: str) -> str:
    r"""A whole text as a terminal may be shown it.

    >>> clean("\x1b[31mred\x1b[0m\x1b]52;c;aGk=\x07\x1b[2J 100 %\r\n")
    '\x1b[31mred\x1b[0m 100 %\r\n'
    """
    return Filter().pass_on(text)


def without_escapes(text: str) -> str:
    r"""A whole text without colours too.

    >>> without_escapes("\x1b[31mred\x1b[0m\x1b[2J")
    'red'
    """
    return _STYLE.sub("", clean(text))


def is_terminal(stream: IO[str]) -> bool:
    """Whether a person looks at this stream."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


class SafeStream:
    """A terminal to which nothing is written but what `Filter` leaves; otherwise as the stream it stands for."""

    def __init__(self, stream: IO[str]) -> None:
        self.unfiltered = stream
        self._filter = Filter()

    def write(self, text: str) -> int:
        self.unfiltered.write(self._filter.pass_on(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)

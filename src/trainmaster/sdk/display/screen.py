"""Printing: colours only on a terminal, JSON alone on standard output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.terminal import SafeStream, clean
from trainmaster.shared.terminal import is_terminal as is_terminal

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def has_colours(stream: IO[str]) -> bool:
    """Whether to use colours on this stream (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def draws(stream: IO[str]) -> bool:
    """Whether this stream can redraw lines."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, styles: str, stream: IO[str] | None = None) -> str:
    """`text` in the styles (`bold red`), if `stream` (default: standard output) shows colours."""
    if not styles or not text or not has_colours(stream or sys.stdout):
        return text
    codes = ";".join(_CODES[style] for style in styles.split())
    return f"\x1b[{codes}m{text}\x1b[0m"


def say(text: str = "") -> None:
    """Prints data to standard output."""
    sys.stdout.write(text + "\n")


def note(text: str, styles: str = "dim") -> None:
    """Prints a message to standard error, where it does not mix with data."""
    sys.stderr.write(paint(text, styles, sys.stderr) + "\n")
    sys.stderr.flush()


@contextlib.contextmanager
def note_warnings() -> Iterator[None]:
    """Prints warnings of the SDK at the end, without the lines of code they point to."""
    import warnings

    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        yield
    for each in noticed:
        note(f"note: {each.message}", "yellow")


def section(title: str, lines: Sequence[str]) -> None:
    """Prints a section with a title to standard output."""
    say(paint(title, "bold"))
    for line in lines:
        say(f"  {line}")
    say()


def say_json(data: Any) -> None:
    """Prints `data` as JSON: indented on a terminal, in one line for programs."""
    import json

    say(json.dumps(strict(data), indent=2 if is_terminal(sys.stdout) else None, allow_nan=False))


def strict(value: Any) -> Any:
    """`value` for strict JSON: NaN and the infinities become strings.

    >>> strict({"loss": [0.5, float("nan"), float("-inf")]})
    {'loss': [0.5, 'NaN', '-Infinity']}
    """
    if isinstance(value, float) and value - value != 0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value


def show_error(error: TrainmasterError) -> None:
    """Prints headline, cause and hint to standard error."""
    lines = [f"{paint('error:', 'bold red', sys.stderr)} {paint(error.headline, 'bold', sys.stderr)}"]
    lines += [f"  {line}" for line in error.cause.splitlines()]
    lines += [f"  {paint(line, 'cyan', sys.stderr)}" for line in error.hint.splitlines()]
    sys.stderr.write("\n".join(lines) + "\n")


def show_error_as_json(error: TrainmasterError, code: int) -> None:
    """Prints the error as `{"error": ...}` to standard output."""
    say_json({"error": {**error.to_wire(), "exit_code": code}})


def width_of_terminal() -> int | None:
    """The number of columns of standard output; None if it is not a terminal, so that nothing is cut."""
    if not is_terminal(sys.stdout):
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def draw(output: IO[str], lines: list[str], above: int) -> None:
    """Draws `lines` over the `above` lines that were drawn before."""
    _write(getattr(output, "unfiltered", output), redraw_sequence(lines, above))


def redraw_sequence(lines: list[str], above: int) -> str:
    """The text that draws `lines` over the `above` lines drawn before. Only colour codes in the lines are kept.

    >>> redraw_sequence(["a"], 2)
    '\\x1b[2Aa\\x1b[K\\n\\x1b[J'
    """
    up = f"\x1b[{above}A" if above else ""
    return up + "".join(f"{clean(line)}\x1b[K\n" for line in lines) + "\x1b[J"


def write(output: IO[str], text: str) -> None:
    """Prints `text` at once. On a terminal, all escape sequences but colours are removed."""
    # A SafeStream filters itself, and knows about unfinished sequences.
    is_open = is_terminal(output) and not isinstance(output, SafeStream)
    _write(output, clean(text) if is_open else text)


def _write(output: IO[str], text: str) -> None:
    try:
        output.write(text)
    except UnicodeEncodeError:
        # A character that the terminal cannot show must not end the program.
        encoding: str = getattr(output, "encoding", None) or "ascii"
        output.write(text.encode(encoding, "replace").decode(encoding))
    output.flush()

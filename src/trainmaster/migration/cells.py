"""Scripts and the cells of notebooks as plain Python: what only IPython or Python 2 understands is replaced, line by
line, so that every line keeps its number. Pure.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from dataclasses import dataclass

_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3", "local")
_WRITES = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+)?(\S+)")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_LINE = re.compile(r"(\s*)(?:[\w.,\s\[\]'\"]+=\s*)?([%!])(.*)")
_HELP = re.compile(r"\s*[\w.]+\?{1,2}\s*|\s*\?{1,2}[\w.]+\s*")
_TIMED = re.compile(r"(?:time|timeit|prun)\s+(?!-)(.+)")
_PRINT = re.compile(r"(\s*)print\s*(?:>>\s*[\w.]+\s*,\s*|\s(?!\s*\())(.+)")
_EXCEPT = re.compile(r"(\s*except\s+[\w.]+)\s*,\s*(\w+)\s*:(.*)")


@dataclass(frozen=True)
class Piece:
    """Python text with the lines of its cell."""

    text: str
    shell: tuple[tuple[int, str], ...] = ()
    """Lines for a shell: number and text."""
    own: bool = False
    """A script of its own (`%%writefile train.py`), which shares no names with the notebook."""


def cell(source: str) -> Piece:
    """A cell of a notebook.

    >>> cell("%matplotlib inline\\nimport os").text
    'pass\\nimport os'
    >>> cell("!pip install azureml-sdk\\nx = 1").shell
    ((1, 'pip install azureml-sdk'),)
    """
    lines = textwrap.dedent(source).split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    written = _WRITES.match(lines[first])
    magic = _CELL_MAGIC.match(lines[first])
    if written is not None:
        if not written[1].strip("'\"").endswith(".py"):
            return Piece("")
        return Piece("\n".join(["" for _ in lines[: first + 1]] + lines[first + 1 :]), own=True)
    if magic is not None:
        rest = [*["" for _ in lines[: first + 1]], *lines[first + 1 :]]
        if magic[1] in _PYTHON_CELLS:
            return cell_lines(rest)
        shell = magic[1] in ("bash", "sh", "script", "cmd")
        return Piece("", tuple((n + 1, line) for n, line in enumerate(rest) if line.strip()) if shell else ())
    return cell_lines(lines)


def cell_lines(lines: list[str]) -> Piece:
    """Lines with magics and shell commands among them."""
    if _is_python("\n".join(lines)):
        return Piece("\n".join(lines))
    kept: list[str] = []
    shell: list[tuple[int, str]] = []
    continued = False
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if continued:
            shell.append((number, line.strip()))
            kept.append("")
        elif match is not None and not _is_remainder(lines, number):
            timed = _TIMED.fullmatch(match[3]) if match[2] == "%" else None
            shell.append((number, match[3].lstrip("!%").strip()))
            kept.append(match[1] + (timed[1] if timed is not None else "pass"))
        else:
            kept.append("pass" if _HELP.fullmatch(line) else line)
            continue
        continued = line.endswith("\\")
    return Piece("\n".join(kept), tuple(shell))


def _is_python(text: str) -> bool:
    """Most cells are: in those no line can be mistaken for a magic."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _is_remainder(lines: list[str], number: int) -> bool:
    """Whether a line that begins with % goes on with the expression above it."""
    above = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    return above.rstrip().endswith(("(", ",", "[", "{", "+", "%", "\\", '"', "'")) and not above.lstrip().startswith(
        ("%", "!")
    )


def modern(text: str) -> str:
    """Python 2's print and except as Python 3 has them; everything else stays.

    >>> modern("try:\\n    print 'a', b\\nexcept IOError, e:\\n    pass")
    "try:\\n    print('a', b)\\nexcept IOError as e:\\n    pass"
    """
    return "\n".join(_modern_line(line) for line in text.split("\n"))


def _modern_line(line: str) -> str:
    said = _PRINT.fullmatch(line)
    if said is not None:
        return f"{said[1]}print({said[2].strip(', ')})"
    caught = _EXCEPT.fullmatch(line)
    return f"{caught[1]} as {caught[2]}:{caught[3]}" if caught is not None else line

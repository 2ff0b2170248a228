"""Converts the cells of notebooks and scripts for Python 2 to plain Python. Lines keep their numbers. Pure."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
import warnings
from dataclasses import dataclass

_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3", "local")
_SHELL_CELLS = ("bash", "sh", "script", "cmd")
# In Databricks notebooks, such a first line applies to the whole cell.
_WHOLE = re.compile(r"%(sh|bash|md|sql|scala|r|fs|html)\b(.*)")
_WRITES = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+|--append\s+)?(\S+)")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_LINE = re.compile(r"(\s*)(?:[\w.,\s\[\]'\"]+=\s*)?([%!])(?!=)(.*)")
# IPython accepts these magics and shell commands without a mark.
_UNMARKED = re.compile(
    r"(\s*)()((?:pip3?|conda|mamba|cd|ls|ll|mkdir|rmdir|cp|mv|rm|cat|less|more|man|az|git|wget|curl)\s+[^\s=(,.\[].*)"
)
_HELP = re.compile(r"\s*[\w.]+\?{1,2}\s*|\s*\?{1,2}[\w.]+\s*")
_TIMED = re.compile(r"(?:time|timeit|prun)\s+(?!-)(.+)")
_PRINT = re.compile(r"(\s*)print\s*(?:>>\s*[\w.]+\s*,\s*|\s(?!\s*\())(.+)")
_EXCEPT = re.compile(r"(\s*except\s+[\w.]+)\s*,\s*(\w+)\s*:(.*)")


@dataclass(frozen=True)
class Piece:
    """Python text with the line numbers of its cell."""

    text: str
    shell: tuple[tuple[int, str], ...] = ()
    """Lines for a shell: line number and text."""
    own: bool = False
    """Whether it is a separate script (`%%writefile train.py`), which shares no names with the notebook."""


def cell(source: str) -> Piece:
    """The Python and the shell commands in a cell of a notebook.

    >>> cell("%matplotlib inline\\nimport os").text
    'pass\\nimport os'
    >>> cell("!pip install azureml-sdk\\nx = 1").shell
    ((1, 'pip install azureml-sdk'),)
    """
    lines = textwrap.dedent(source).split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
    rest = [*["" for _ in lines[: first + 1]], *lines[first + 1 :]]
    written = _WRITES.match(lines[first])
    magic = _CELL_MAGIC.match(lines[first])
    whole = _WHOLE.fullmatch(lines[first])
    if written is not None:
        return Piece(_body(rest), own=True) if written[1].strip("'\"").endswith(".py") else Piece("")
    if magic is not None:
        if magic[1] in _PYTHON_CELLS:
            return cell_lines(rest)
        return _commands(rest) if magic[1] in _SHELL_CELLS else Piece("")
    if whole is not None and whole[1] in _SHELL_CELLS:
        rest[first] = whole[2]
        return _commands(rest)
    found = cell_lines(lines)
    return Piece("") if whole is not None and not _is_python(found.text) else found


def _body(lines: list[str]) -> str:
    """The script that a cell writes. A part that is appended to a script may be indented."""
    text = "\n".join(lines)
    dedented = textwrap.dedent(text)
    return dedented if not _is_python(text) and _is_python(dedented) else text


def _commands(lines: list[str]) -> Piece:
    return Piece("", tuple((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()))


def cell_lines(lines: list[str]) -> Piece:
    """The Python in lines that may contain magics and shell commands."""
    if _is_python("\n".join(lines)):
        return Piece("\n".join(lines))
    kept: list[str] = []
    shell: list[tuple[int, str]] = []
    continued = False
    for number, line in enumerate(lines, 1):
        match = _command(line)
        if continued:
            shell.append((number, line.strip()))
            kept.append("")
        elif match is not None and not _is_open(kept):
            timed = _TIMED.fullmatch(match[3]) if match[2] == "%" else None
            shell.append((number, match[3].lstrip("!%").strip()))
            kept.append(match[1] + (timed[1] if timed is not None else "pass"))
        else:
            kept.append("pass" if _HELP.fullmatch(line) else line)
            continue
        continued = line.endswith("\\")
    return Piece("\n".join(kept), tuple(shell))


def _command(line: str) -> re.Match[str] | None:
    """Indentation, mark and text of a line for IPython or a shell; None for any other line."""
    found = _LINE.fullmatch(line)
    if found is None and not _is_python(line.strip()):
        found = _UNMARKED.fullmatch(line)
    return found


def _is_python(text: str) -> bool:
    """Whether the text parses as Python, as most cells do; then none of its lines is a magic."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _is_open(lines: list[str]) -> bool:
    """Whether the next line continues the last of these: in brackets, in a long string, or after a backslash."""
    text = "\n".join(lines)
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            pass
    except tokenize.TokenError as error:
        return "EOF" in str(error) or "triple-quoted" in str(error)
    except SyntaxError:
        return False
    return text.endswith("\\")


def modern(text: str) -> str:
    """The text with the print and except statements of Python 2 written as in Python 3.

    >>> modern("try:\\n    print 'a', b\\nexcept IOError, e:\\n    pass")
    "try:\\n    print('a', b)\\nexcept IOError as e:\\n    pass"
    """
    return "\n".join(_modern_line(line) for line in text.split("\n"))


def _modern_line(line: str) -> str:
    printed = _PRINT.fullmatch(line)
    if printed is not None:
        return f"{printed[1]}print({printed[2].strip(', ')})"
    caught = _EXCEPT.fullmatch(line)
    return f"{caught[1]} as {caught[2]}:{caught[3]}" if caught is not None else line

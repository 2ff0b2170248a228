"""Reads pip's requirements files, and refuses lines that cannot be part of an environment."""

from __future__ import annotations

import re
from pathlib import Path

from trainmaster.job.errors import UserErrorException

_OTHER_FILE = re.compile(r"(-r|-c|-e)(\b|\S)|--(requirement|constraint|editable)\b")
_COMMENT = re.compile(r"(^|\s)#.*$")
_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*(?P<rest>.*)")
_AFTER_NAME = ("<", ">", "=", "!", "~", "(", ";", "@", "--")
_NO_VERSION = re.compile(r"[<>=!~]\s*$")
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".tar.bz2", ".zip")


def read_requirements_file(file: Path, where: str) -> list[str]:
    """Read the lines of `file` without comments; `where` names it in error messages."""
    lines = []
    for number, line in _logical_lines(text_of(file, where)):
        check_requirement(f"line {number} of {where}", line)
        lines.append(line)
    return lines


def check_requirement(where: str, line: str) -> None:
    """Refuse lines that cannot be resolved on another machine (other files, local paths), and typical mistakes."""
    if not _COMMENT.sub("", line).strip():
        raise UserErrorException(f"{where} has no package: {line!r}")
    check_no_other_file(where, line)
    _check_specifier(where, line)
    if not line.startswith("-") and _is_local(line):
        raise UserErrorException(
            f"{where} is a local path, which is not supported: {line!r}",
            hint="Use the name and version of the package, or a URL.",
        )


def check_no_other_file(where: str, line: str) -> None:
    """Refuse `-r other.txt` and the like: the other file is not available when the environment is built."""
    if _OTHER_FILE.match(line):
        raise UserErrorException(
            f"{where} refers to another file or folder, which is not supported: {line!r}",
            hint="List the packages themselves.",
        )


def _check_specifier(where: str, line: str) -> None:
    """Refuse a name followed by anything but a version. The resolver checks the details."""
    named = _NAMED.fullmatch(line)
    if named is None or "://" in line:
        return
    name, rest = named["name"], named["rest"]
    if re.match(r"=[^=]", rest):
        raise UserErrorException(
            f"{where} has a single equals sign: {line!r}", hint=f"Write {name}=={rest[1:].strip()} for pip."
        )
    if (rest and not rest.startswith(_AFTER_NAME)) or _NO_VERSION.search(rest.partition(";")[0]):
        raise UserErrorException(
            f"{where} is not a valid requirement: {line!r}",
            hint="Write one package, such as numpy or 'numpy>=1.26,<3'.",
        )


def text_of(file: Path, where: str) -> str:
    """Read a text file of the user; `where` names it in error messages."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserErrorException(f"{where} cannot be read", cause=str(error), hint="Save it as UTF-8 text.") from None
    except OSError as error:
        raise UserErrorException(f"{where} cannot be read", cause=f"{error.strerror}: {file}") from None


def _logical_lines(text: str) -> list[tuple[int, str]]:
    found = []
    pending, begun = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).strip()
        begun = begun if pending else number
        if line.endswith("\\"):
            pending += line[:-1].rstrip() + " "
            continue
        joined = (pending + line).strip()
        pending = ""
        if joined:
            found.append((begun, joined))
    if pending.strip():
        found.append((begun, pending.strip()))
    return found


def _is_local(line: str) -> bool:
    place = line.partition(" @ ")[2].strip() or line
    if place.startswith((".", "/", "~", "file:")):
        return True
    return "://" not in place and place.split(";")[0].strip().lower().endswith(_ARCHIVES)

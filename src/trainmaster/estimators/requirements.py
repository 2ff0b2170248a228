"""pip's requirements, from a file and from lists."""

from __future__ import annotations

import re
from pathlib import Path

from trainmaster.environments.conda_dependencies import package_name
from trainmaster.errors import UserErrorException
from trainmaster.estimators.source import file_inside

_OTHER_FILE = re.compile(r"(-r|-c|-e)(\b|\S)|--(requirement|constraint|editable)\b")
_COMMENT = re.compile(r"(^|\s)#.*$")
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".tar.bz2", ".zip")


def read_requirements(source_directory: str, given: str) -> list[str]:
    """The lines of `pip_requirements_file`, without comments."""
    file = file_inside(source_directory, "pip_requirements_file", given)
    lines = []
    for number, line in _logical_lines(_text_of(file, given)):
        check_requirement(f"line {number} of pip_requirements_file {given!r}", line)
        lines.append(line)
    return lines


def check_requirement(where: str, line: str) -> None:
    """Refuses what an environment cannot be built from elsewhere: other files and local paths."""
    if _OTHER_FILE.match(line):
        raise UserErrorException(
            f"{where} refers to another file or folder, which is not supported: {line!r}",
            hint="Write the packages themselves there.",
        )
    if not line.startswith("-") and _is_local(line):
        raise UserErrorException(
            f"{where} is a local path, which is not supported: {line!r}",
            hint="Give the package by name and release, or by a URL.",
        )


def merge(packages: list[str], from_file: list[str]) -> list[str]:
    """`packages`, then the file's lines for other packages: the program goes before the file."""
    named = {package_name(package) for package in packages}
    return [
        *packages,
        *(line for line in from_file if line.startswith("-") or package_name(line) not in named),
    ]


def _text_of(file: Path, given: str) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserErrorException(
            f"pip_requirements_file {given!r} cannot be read", cause=str(error), hint="Save it as UTF-8 text."
        ) from None


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

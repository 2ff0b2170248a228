"""The source folder and the files that must be in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from trainmaster.job.errors import ExperimentExecutionException, UserErrorException
from trainmaster.sdk.estimators import values
from trainmaster.shared.job_spec import EntryKind
from trainmaster.shared.spelling import closest

# Limits the search for a hint in a folder of data.
_LOOKED_AT = 2000
_SHELLS = (".sh", ".bash", ".zsh", ".ksh", ".csh", ".fish")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Entry:
    """What a run starts: a file of the source folder or a module, and how."""

    script: str
    kind: EntryKind = "python"
    program: tuple[str, ...] = ()


def source_folder(given: str) -> Path:
    """The source folder as an absolute path, checked at submit."""
    folder = Path(given).absolute()
    if not folder.exists():
        raise ExperimentExecutionException(
            f"source_directory {given!r} does not exist", cause=f"{folder} does not exist."
        )
    if not folder.is_dir():
        raise ExperimentExecutionException(
            f"source_directory {given!r} is not a folder", hint="Give the folder that contains the script."
        )
    return folder


def find_entry(folder: Path, parameter: str, given: str) -> Entry:
    """A Python script, a notebook, or a script whose first line names another program; checks that it exists."""
    try:
        script = values.relative_path(parameter, given)
    except UserErrorException as error:
        raise ExperimentExecutionException(error.headline, hint=error.hint) from None
    file = folder / script
    if not file.exists():
        raise ExperimentExecutionException(
            f"{parameter} {given!r} does not exist in source_directory",
            cause=f"{file} does not exist.",
            hint=_suggest_script(folder, script)
            or "The script must be inside source_directory, and its path relative to it.",
        )
    if not file.is_file():
        raise ExperimentExecutionException(f"{parameter} {given!r} is not a file", hint="Give a script.")
    if file.suffix.lower() == ".ipynb":
        return Entry(script, "notebook")
    program = _program_of(file)
    return Entry(script, "program", program) if program else Entry(script)


def find_module(folder: Path, parameter: str, given: str) -> Entry:
    """A module to start as `python -m` does. One of the source folder must exist; others are those of packages."""
    path = "/" in given or (given.endswith(".py") and (folder / given).is_file())
    if path or not _MODULE.fullmatch(values.text(parameter, given)):
        raise ExperimentExecutionException(
            f"{parameter} {given!r} is not the name of a module",
            hint="Write its name with dots, without '.py': package.train." if path else "Write it as package.train.",
        )
    first, *others = given.split(".")
    if not others or not (folder / first).is_dir():
        return Entry(given, "module")
    place = folder.joinpath(first, *others)
    if place.with_suffix(".py").is_file() or (place / "__main__.py").is_file():
        return Entry(given, "module")
    what = f"{place}.py does not exist."
    if place.is_dir():
        what = f"{given} is a package without a file __main__.py, so Python cannot start it."
    names = [
        path[: -len(".py")].replace("/", ".") for path in islice(_scripts(folder), _LOOKED_AT) if path[-3:] == ".py"
    ]
    close = closest(given, names)
    raise ExperimentExecutionException(
        f"{parameter} {given!r} does not exist in source_directory",
        cause=what,
        hint=f"Did you mean {close!r}?" if close else "",
    )


def _program_of(file: Path) -> tuple[str, ...]:
    """The program in the first line of a script with its options, if it is not Python."""
    try:
        with open(file, "rb") as content:
            first = content.readline(200)
    except OSError:
        # The snapshot reports why it cannot be read.
        return ()
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word not in ("-S", "--split-string")]
    if words:
        return () if "py" in os.path.basename(words[0]) else tuple(words)
    return ("bash",) if file.suffix.lower() in _SHELLS else ()


def _suggest_script(folder: Path, script: str) -> str:
    """A script of the folder with a similar path, or with the same name in another folder."""
    there = list(islice(_scripts(folder), _LOOKED_AT))
    name = os.path.basename(script)
    same = [path for path in there if os.path.basename(path) in (name, f"{name}.py")]
    if same:
        return f"Did you mean {same[0]!r}?"
    # Without endings, which would make all names similar.
    stems = {os.path.splitext(path)[0]: path for path in there}
    close = closest(os.path.splitext(script)[0], stems)
    return f"Did you mean {stems[close]!r}?" if close else ""


def _scripts(folder: Path) -> Iterator[str]:
    """The Python scripts and notebooks in a folder and below, those at the top first."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "__")))
        for name in sorted(names):
            if name.endswith((".py", ".ipynb", *_SHELLS)):
                yield os.path.relpath(os.path.join(path, name), folder)


def file_inside(source_directory: str, parameter: str, given: str) -> Path:
    """A file inside the source folder that a parameter of an estimator names, checked in the constructor."""
    folder = Path(source_directory).resolve()
    # Joining keeps an absolute path as it is, and resolving follows links.
    file = (folder / values.text(parameter, given)).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        raise UserErrorException(
            f"{parameter} {given!r} is not a file inside source_directory {source_directory!r}",
            hint="Put it into the folder, and give its path relative to the folder.",
        )
    return file

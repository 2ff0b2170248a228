"""The source folder and the files that must be in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from trainmaster.job.errors import ExperimentExecutionException, UserErrorException
from trainmaster.sdk.estimators import not_yet, values
from trainmaster.shared.spelling import closest

# Limits the search for a hint in a folder of data.
_LOOKED_AT = 2000
_SHELLS = (".sh", ".bash", ".zsh", ".ksh", ".csh", ".fish")


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


def entry_script(folder: Path, parameter: str, given: str) -> str:
    """The path of the script relative to the folder, after checking that it exists."""
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
        raise ExperimentExecutionException(f"{parameter} {given!r} is not a file", hint="Give a Python script.")
    if file.suffix.lower() == ".ipynb":
        not_yet.notebook_script(parameter, given)
    program = _program_of(file)
    if program:
        raise ExperimentExecutionException(
            f"{parameter} {given!r} is not a Python script, but one for {program}",
            hint=f"Run it as the command of a ScriptRunConfig: command=[{program!r}, {script!r}]. "
            f"Or start it from a Python script: subprocess.run([{program!r}, {script!r}], check=True).",
        )
    return script


def _program_of(file: Path) -> str:
    """The program in the first line of a script, if it is not Python."""
    try:
        with open(file, "rb") as content:
            first = content.readline(200)
    except OSError:
        # The snapshot reports why it cannot be read.
        return ""
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    names = [os.path.basename(word) for word in words if not word.startswith("-")]
    name = next((each for each in names if each != "env"), "")
    if name:
        return "" if "py" in name else name
    return "bash" if file.suffix.lower() in _SHELLS else ""


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

"""The source folder and the files that must be in it."""

from __future__ import annotations

from pathlib import Path

from trainmaster.errors import ExperimentExecutionException, UserErrorException
from trainmaster.estimators import not_yet, values


def source_folder(given: str) -> Path:
    """The source folder as an absolute path; looked at when a run is submitted."""
    folder = Path(given).absolute()
    if not folder.exists():
        raise ExperimentExecutionException(
            f"source_directory {given!r} does not exist", cause=f"There is nothing at {folder}."
        )
    if not folder.is_dir():
        raise ExperimentExecutionException(
            f"source_directory {given!r} is not a folder", hint="Give the folder that the script is in."
        )
    return folder


def entry_script(folder: Path, parameter: str, given: str) -> str:
    """The script relative to the folder, once it is sure to be there."""
    try:
        script = values.relative_path(parameter, given)
    except UserErrorException as error:
        raise ExperimentExecutionException(error.headline, hint=error.hint) from None
    file = folder / script
    if not file.exists():
        raise ExperimentExecutionException(
            f"{parameter} {given!r} does not exist in source_directory",
            cause=f"There is nothing at {file}.",
            hint="The script must be inside source_directory, and its path relative to it.",
        )
    if not file.is_file():
        raise ExperimentExecutionException(f"{parameter} {given!r} is not a file", hint="Give a Python script.")
    if file.suffix.lower() == ".ipynb":
        not_yet.notebook_script(given)
    return script


def file_inside(source_directory: str, parameter: str, given: str) -> Path:
    """A file that an estimator's parameter names inside the source folder; looked at in the constructor."""
    folder = Path(source_directory).resolve()
    # Joining lets an absolute path stand for itself, and resolving shows where links lead.
    file = (folder / values.text(parameter, given)).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        raise UserErrorException(
            f"{parameter} {given!r} is not a file inside source_directory {source_directory!r}",
            hint="Put it into the folder, and give its path relative to the folder.",
        )
    return file

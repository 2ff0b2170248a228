"""The code of a service: a folder or single files, taken as a snapshot like the code of a run."""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.backend.backend import ContentStore
from trainmaster.shared.service_spec import ServiceCode


def find_script(parameter: str, given: object, folder: str | os.PathLike[str] | None = None) -> Path:
    """The full path of the scoring script, in `folder` or in the current folder. It must exist and be valid Python."""
    if not isinstance(given, str | os.PathLike) or not str(given):
        raise WebserviceException(
            f"{parameter} must be the path of the scoring script, not {given!r}",
            hint="It is a script with init() and run(data).",
        )
    base = Path(folder) if folder is not None else Path.cwd()
    if not base.is_dir():
        raise WebserviceException(f"source_directory {str(folder)!r} is not a folder", hint="Check its path.")
    script = (base / given).absolute()
    if script.suffix != ".py":
        raise WebserviceException(
            f"{parameter} {str(given)!r} is not a Python script", hint="Its name must end in .py."
        )
    if folder is not None and not script.resolve().is_relative_to(base.resolve()):
        raise WebserviceException(
            f"{parameter} {str(given)!r} is not inside source_directory {str(folder)!r}",
            hint="Give its path relative to source_directory.",
        )
    if not script.is_file():
        raise WebserviceException(
            f"{parameter} {str(given)!r} does not exist",
            cause=f"The file {script} does not exist.",
            hint="Give its path relative to source_directory."
            if folder is not None
            else "Give its path relative to the current folder.",
        )
    return script


def check_parses(script: Path) -> None:
    """Refuses a script that is not valid Python, before anything is built."""
    try:
        ast.parse(script.read_bytes(), str(script))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        cause = "".join(traceback.format_exception_only(error)).rstrip()
        raise WebserviceException(f"{script.name} is not valid Python{where}", cause=cause) from None
    except OSError as error:
        raise WebserviceException(f"{script} cannot be read", cause=str(error)) from None


def take_folder(contents: ContentStore, script: Path, folder: str | os.PathLike[str]) -> ServiceCode:
    """A snapshot of a source folder."""
    source = Path(folder).absolute()
    snapshot = contents.take_snapshot(source)
    entry = script.resolve().relative_to(source.resolve()).as_posix()
    return ServiceCode(snapshot.id, entry, source_directory=str(source))


def take_files(contents: ContentStore, script: Path, others: Sequence[str | os.PathLike[str]] = ()) -> ServiceCode:
    """A snapshot of a single script with further files and folders."""
    paths = [script, *(Path(other).absolute() for other in others)]
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as place:
        for path in paths:
            _copy(path, Path(place))
        snapshot = contents.take_snapshot(Path(place))
    return ServiceCode(snapshot.id, script.name, files=tuple(str(path) for path in paths))


def take_again(contents: ContentStore, code: ServiceCode) -> ServiceCode:
    """A new snapshot of the code, from where it was taken before."""
    if code.source_directory:
        script = find_script("entry_script", code.entry_script, code.source_directory)
        check_parses(script)
        return take_folder(contents, script, code.source_directory)
    if not code.files:
        raise WebserviceException("this service has no code of yours to read again", hint="Use update().")
    script = find_script("entry_script", code.files[0])
    check_parses(script)
    return take_files(contents, script, code.files[1:])


def _copy(path: Path, place: Path) -> None:
    if not path.exists():
        raise WebserviceException(f"dependency {str(path)!r} does not exist")
    target = place / path.name
    if target.exists():
        raise WebserviceException(
            f"two files of the service have the name {path.name!r}",
            hint="All of them are in one folder of the service. Rename one of them.",
        )
    try:
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy2(path, target)
    except OSError as error:
        raise WebserviceException(f"{path} cannot be copied", cause=str(error)) from None

"""`trainmaster import mlflow` and `trainmaster export mlflow`."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.environments.sources import mask_passwords
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.text import duration

_DATABASES = ("sqlite", "postgresql", "postgres", "mysql", "mssql")
_BAR = 20
"""Characters."""
_SOURCES = "Name a tracking server (http://...), a folder mlruns, or a database."

if TYPE_CHECKING:
    from trainmaster.sdk.mlflow.transfer_state import Report


def import_mlflow_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the address of a tracking server, a folder mlruns, the file of a database, or the URL of one",
    )
    _add_options(parser)


def import_mlflow(options: Options) -> int:
    """Copy experiments, runs with their whole histories and files, and registered models from MLflow.

    It can be repeated and interrupted: what was copied completely is left alone, the rest is continued. Ids of runs and
    numbers of versions stay the same. The package mlflow has to be installed.

    JSON: {"experiments", "runs", "unchanged_runs", "values", "files", "logged_models", "versions", "left_out",
    "problems"}

      trainmaster import mlflow http://tracking.example.org:5000
      trainmaster import mlflow ./mlruns --experiment spiral
    """
    source = find_address(options.source)
    workspace = open_workspace(options.workspace)
    return _copy(options, source, workspace.get_mlflow_tracking_uri(), into_workspace=True)


def export_mlflow_arguments(parser: Parser) -> None:
    parser.add_argument(
        "target", metavar="TARGET", help="the address of a tracking server, the file of a database, or the URL of one"
    )
    _add_options(parser)


def export_mlflow(options: Options) -> int:
    """Copy the experiments, runs and registered models of the workspace to MLflow.

    It can be repeated and interrupted: what was copied completely is left alone, the rest is continued. Runs get new
    ids; the tag trainmaster.copied_from has the old one. The package mlflow has to be installed.

    JSON: {"experiments", "runs", "unchanged_runs", "values", "files", "logged_models", "versions", "left_out",
    "problems"}

      trainmaster export mlflow http://tracking.example.org:5000
    """
    workspace = open_workspace(options.workspace)
    target = find_address(options.target, must_exist=False)
    return _copy(options, workspace.get_mlflow_tracking_uri(), target, into_workspace=False)


def _add_options(parser: Parser) -> None:
    parser.add_argument(
        "--experiment", metavar="NAME", action="append", default=[], help="only this experiment; may be repeated"
    )
    parser.add_argument("--no-files", action="store_true", help="leave out the artifacts of runs and models")


def _copy(options: Options, source: str, target: str, into_workspace: bool) -> int:
    # MLflow 3 opens folders of MLflow 2 only if it is told to.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from trainmaster.sdk.mlflow.transfer import CopyError, Transfer
        from trainmaster.sdk.mlflow.transfer_sides import Side
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mlflow":
            raise
        raise UserErrorException("the package mlflow is not installed", hint="Run: pip install mlflow") from None
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    sides = Side(source, not into_workspace), Side(target, into_workspace)
    try:
        report = Transfer(*sides, _make_progress(), not options.no_files).copy(tuple(options.experiment))
    except CopyError as error:
        place = source if into_workspace else target
        hint = "Check the address. What was copied already is not copied again."
        raise UserErrorException(f"MLflow at {place} gave up", cause=str(error), hint=hint) from None
    if options.json:
        say_json(asdict(report))
    else:
        _show(report)
    return exits.UNUSABLE if report.problems else exits.OK


def find_address(given: str, must_exist: bool = True) -> str:
    """The tracking address that a person means: a URL, a folder, or the file of a database."""
    if "://" in given:
        address = given
    else:
        path = Path(given).expanduser().absolute()
        if not path.exists() and (must_exist or path.suffix != ".db"):
            raise UserErrorException(f"there is nothing at {path}", hint=_SOURCES)
        address = path.as_uri() if path.is_dir() else f"sqlite:///{path}"
    if must_exist:
        _check_content(address)
    return address


def _check_content(address: str) -> None:
    """Refuse a folder or a database without experiments: MLflow would create them there."""
    scheme = address.partition(":")[0]
    if scheme == "file":
        is_there = any(Path(unquote(urlsplit(address).path)).glob("*/meta.yaml"))
    elif scheme.partition("+")[0] in _DATABASES:
        is_there = _has_experiments(address)
    else:
        return
    if not is_there:
        raise UserErrorException(f"there are no experiments of MLflow at {mask_passwords(address)}", hint=_SOURCES)


def _has_experiments(address: str) -> bool:
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        url = make_url(address)
        # Opening a file that does not exist would create it.
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            return False
        engine = create_engine(url)
        try:
            return inspect(engine).has_table("experiments")
        finally:
            engine.dispose()
    except (ArgumentError, SQLAlchemyError, ImportError) as error:
        cause = mask_passwords(str(error).splitlines()[0])
        headline = f"the database {mask_passwords(address)} cannot be read"
        raise UserErrorException(headline, cause=cause, hint=_SOURCES) from None


def _make_progress() -> Callable[[Report, int], None]:
    """Shows how far the copy is, on a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return lambda report, total: None
    began = time.monotonic()

    def show(report: Report, total: int) -> None:
        text = write_progress(report.runs, report.unchanged_runs, total, time.monotonic() - began)
        sys.stderr.write(f"\r\x1b[K{text}, {report.values:,} values, {report.files:,} files")
        sys.stderr.flush()

    return show


def write_progress(copied: int, known: int, total: int, seconds: float) -> str:
    """How many runs are done, and how long the others will take. Runs that were there before cost almost nothing.

    >>> write_progress(copied=50, known=100, total=400, seconds=20.0)
    '150 of 400 runs [#######.............] 38 %, 1m 40s left'
    """
    done = copied + known
    share = done / total if total else 1.0
    bar = "#" * int(share * _BAR)
    text = f"{done:,} of {total:,} runs [{bar:.<{_BAR}}] {share:.0%}".replace("%", " %")
    if not copied or done >= total:
        return text
    return f"{text}, {duration(seconds / copied * (total - done))} left"


def _show(report: Report) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    counts: list[tuple[int, str]] = [
        (report.experiments, "experiments"),
        (report.runs, "runs copied"),
        (report.unchanged_runs, "runs were copied before"),
        (report.values, "values of metrics"),
        (report.files, "files"),
        (report.logged_models, "logged models"),
        (report.versions, "versions of registered models"),
    ]
    for count, what in counts:
        if count:
            say(f"{count:>9,}  {what}")
    if report.left_out:
        note("Not copied, because there is no place for it here:")
        for each in report.left_out:
            note(f"  {each}")
    if report.problems:
        note(f"{len(report.problems)} could not be copied:")
        for each in report.problems:
            note(f"  {each}")

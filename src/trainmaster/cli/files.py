"""`trainmaster files` and `download`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace, run_folder
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of, size
from trainmaster.sdk.run import files as run_files
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.run_files import left_names, path_of

_COLUMNS = (Column("SIZE", right=True, style=lambda text: "dim"), Column("FILE"))


def _add_names(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only files whose names begin so")


def files_arguments(parser: Parser) -> None:
    _add_names(parser)
    parser.add_argument("-a", "--all", action="store_true", help="also what the script left elsewhere, as code/...")


def files(options: Options) -> int:
    """The files of a run: logs, and what the script wrote to outputs/ and logs/. JSON: a list of {"name", "bytes"}.

    With --all also files that the script wrote to other places of its working folder, or changed there. They are named
    code/..., and 'download' copies them by these names.
    """
    workspace = open_workspace(options.workspace)
    folder = run_folder(workspace, find_run(workspace, options.run))
    found = sizes(folder, options.prefix)
    if options.all and options.prefix.partition("/")[0] != "code":
        found += _with_sizes(folder, [name for name in left_names(folder) if name.startswith(options.prefix)])
    if options.json:
        say_json([{"name": name, "bytes": count} for name, count in found])
    elif found:
        rows = [(size(count), name) for name, count in found]
        for line in render(_COLUMNS, rows, width_of_terminal(), paint):
            say(line)
    else:
        note(f"Run {folder.path.name} has no {'such ' if options.prefix else ''}files.")
    return exits.OK


def sizes(folder: RunFolder, prefix: str) -> list[tuple[str, int]]:
    """Name and size of the files whose names begin with `prefix`; one that goes away meanwhile is left out."""
    return _with_sizes(folder, run_files.beginning_with(folder, prefix))


def _with_sizes(folder: RunFolder, names: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for name in names:
        with suppress(FileNotFoundError):
            found.append((name, path_of(folder, name).stat().st_size))
    return found


def download_arguments(parser: Parser) -> None:
    _add_names(parser)
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help="where to (default: here)")


def download(options: Options) -> int:
    """Copy the files of a run, under their own names. JSON: {"run", "folder", "files": [path, ...]}."""
    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    folder = run_folder(workspace, record)
    if not sizes(folder, options.prefix):
        raise UserErrorException(
            f"run {record.id} has no files that begin with '{options.prefix[:300]}'",
            hint=f"'trainmaster files {record.id}' lists what it has.",
        )
    copied = run_files.download_all(folder, options.prefix, options.output)
    if options.json:
        say_json({"run": record.id, "folder": options.output, "files": [str(path) for path in copied]})
        return exits.OK
    for path in copied:
        say(str(path))
    note(f"{count_of(len(copied), 'file')} to {options.output}")
    return exits.OK

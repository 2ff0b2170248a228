"""`trainmaster files` and `download`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace, run_folder
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, size
from trainmaster.sdk.run import files as run_files
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.run_files import list_left_files, path_of


def _add_names(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only files whose names begin with it")


def files_arguments(parser: Parser) -> None:
    _add_names(parser)
    parser.add_argument("-a", "--all", action="store_true", help="also files written elsewhere, as code/...")


def files(options: Options) -> int:
    """List the files of a run: its logs, and what the script wrote to outputs/ and logs/.

    With --all, files that the script wrote or changed elsewhere in its working folder are listed too. Their names begin
    with code/, and 'download' accepts these names.

    JSON: a list of {"name", "bytes"}.
    """
    workspace = open_workspace(options.workspace)
    folder = run_folder(workspace, find_run(workspace, options.run))
    found = sizes(folder, options.prefix)
    if options.all and options.prefix.partition("/")[0] != "code":
        found += _with_sizes(folder, [name for name in list_left_files(folder) if name.startswith(options.prefix)])
    listing: Listing[tuple[str, int]] = Listing(
        columns=(Column("SIZE", right=True, style=lambda text: "dim"), Column("FILE")),
        row=lambda each: (size(each[1]), each[0]),
        json=lambda each: {"name": each[0], "bytes": each[1]},
        empty=f"Run {folder.path.name} has no {'such ' if options.prefix else ''}files.",
    )
    return listing.show(found, options)


def sizes(folder: RunFolder, prefix: str) -> list[tuple[str, int]]:
    """Name and size of the files whose names begin with `prefix`."""
    return _with_sizes(folder, run_files.names_with_prefix(folder, prefix))


def _with_sizes(folder: RunFolder, names: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for name in names:
        # Scripts delete files while they are listed.
        with suppress(FileNotFoundError):
            found.append((name, path_of(folder, name).stat().st_size))
    return found


def download_arguments(parser: Parser) -> None:
    _add_names(parser)
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help="the folder to copy to (default: this one)")


def download(options: Options) -> int:
    """Copy the files of a run to a folder, under their own names.

    JSON: {"run", "folder", "files": [path, ...]}.
    """
    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    folder = run_folder(workspace, record)
    if not sizes(folder, options.prefix):
        raise UserErrorException(
            f"run {record.id} has no files whose names begin with '{options.prefix[:300]}'",
            hint=f"'trainmaster files {record.id}' lists its files.",
        )
    copied = run_files.download_all(folder, options.prefix, options.output)
    if options.json:
        say_json({"run": record.id, "folder": options.output, "files": [str(path) for path in copied]})
        return exits.OK
    for path in copied:
        say(str(path))
    note(f"Copied {count_of(len(copied), 'file')} to {options.output}.")
    return exits.OK

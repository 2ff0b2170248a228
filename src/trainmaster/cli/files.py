"""`trainmaster files` and `download`."""

from __future__ import annotations

from pathlib import Path

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, size
from trainmaster.sdk.run import files as run_files


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

      trainmaster files last
      trainmaster files last outputs/
    """
    workspace = open_workspace(options.workspace)
    run_id = find_run(workspace, options.run).id
    kept = workspace.backend.run_files(run_id)
    found = kept.sizes(run_files.names_with_prefix(kept, options.prefix))
    if options.all and options.prefix.partition("/")[0] != "code":
        found += kept.sizes([name for name in kept.list_left_names() if name.startswith(options.prefix)])
    listing: Listing[tuple[str, int]] = Listing(
        columns=(Column("SIZE", right=True, style=lambda text: "dim"), Column("FILE")),
        row=lambda each: (size(each[1]), each[0]),
        json=lambda each: {"name": each[0], "bytes": each[1]},
        empty=f"Run {run_id} has no {'such ' if options.prefix else ''}files.",
    )
    return listing.show(found, options)


def download_arguments(parser: Parser) -> None:
    _add_names(parser)
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help="the folder to copy to (default: this one)")


def download(options: Options) -> int:
    """Copy the files of a run to a folder, under their own names.

    JSON: {"run", "folder", "files": [path, ...]}.

      trainmaster download last outputs/ -o results
    """
    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    kept = workspace.backend.run_files(record.id)
    names = run_files.names_with_prefix(kept, options.prefix)
    if not kept.sizes(names):
        raise UserErrorException(
            f"run {record.id} has no files whose names begin with '{options.prefix[:300]}'",
            hint=f"'trainmaster files {record.id}' lists its files.",
        )
    copied = [run_files.copy_file(kept, name, Path(options.output) / name) for name in names]
    if options.json:
        say_json({"run": record.id, "folder": options.output, "files": [str(path) for path in copied]})
        return exits.OK
    for path in copied:
        say(str(path))
    note(f"Copied {count_of(len(copied), 'file')} to {options.output}.")
    return exits.OK

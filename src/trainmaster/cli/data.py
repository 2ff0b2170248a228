"""`trainmaster data list`, `show` and `upload`."""

from __future__ import annotations

import time
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.script.dataset_views import describe_sources
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of, moment
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain

_COLUMNS = (
    Column("DATASET", style=lambda text: "bold"),
    Column("VERSION", right=True),
    Column("KIND"),
    Column("REGISTERED"),
    Column("SOURCE"),
)
_MOST_FILES = 20


def listing_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def listing(options: Options) -> int:
    """The registered datasets, each in its newest version. JSON: a list of {"id", "name", "version", "kind",
    "description", "tags", "created_at", "definition"}.
    """
    workspace = open_workspace(options.workspace)
    records = [from_plain(DatasetRecord, each) for each in workspace.connection.call("datasets.list")]
    if options.json:
        say_json([_as_json(record) for record in records])
    elif not records:
        note("There is none yet; dataset.register(workspace, name) or 'trainmaster data upload' makes one.")
    else:
        for line in render(_COLUMNS, [_row(record) for record in records], width_of_terminal(), paint):
            say(line)
    return exits.OK


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--version", metavar="N", default="latest", dest="dataset_version", help="default: the newest")


def show(options: Options) -> int:
    """One dataset and its files. JSON: the keys of `data list`, and "files" (a list of names)."""
    from trainmaster.sdk.datasets.abstract import of_record

    workspace = open_workspace(options.workspace)
    plain = workspace.connection.call("datasets.get", name=options.name, version=options.dataset_version)
    record = from_plain(DatasetRecord, plain)
    files = [file.name for file in of_record(workspace, plain)._all_files()]
    if options.json:
        say_json({**_as_json(record), "files": files})
        return exits.OK
    say(f"{record.name}, version {record.version}: {_kind(record)}")
    if record.description:
        say(record.description)
    say(f"Source      {_source(record)}")
    say(f"Registered  {moment(record.created_at, time.time())}")
    if record.tags:
        say(f"Tags        {', '.join(f'{key}={value}' for key, value in record.tags.items())}")
    say(f"Files       {len(files)}")
    for name in files[:_MOST_FILES]:
        say(f"  {name}")
    if len(files) > _MOST_FILES:
        say(f"  and {len(files) - _MOST_FILES} more")
    return exits.OK


def upload_arguments(parser: Parser) -> None:
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("name", metavar="NAME", help="the dataset's name; a new version if there is one")
    parser.add_argument("--datastore", metavar="STORE", help="default: the workspace's default datastore")
    parser.add_argument("--path", metavar="PATH", help="where in the datastore; default: datasets/NAME")
    parser.add_argument("--pattern", metavar="PATTERN", help="only these files, such as '*.jpg'")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")


def upload(options: Options) -> int:
    """Copy a folder to a datastore and register it as a dataset of files. JSON: the dataset, as in `data list`."""
    from trainmaster.sdk.datasets import Dataset
    from trainmaster.sdk.datastores import Datastore

    workspace = open_workspace(options.workspace)
    store = Datastore.get(workspace, options.datastore) if options.datastore else Datastore.get_default(workspace)
    target = (store, options.path or f"datasets/{options.name}")
    made = Dataset.File.upload_directory(
        options.folder, target, options.pattern, options.overwrite, show_progress=False
    ).register(workspace, options.name, create_new_version=True)
    if options.json:
        say_json(_as_json(from_plain(DatasetRecord, workspace.connection.call("datasets.get", id=made.id))))
        return exits.OK
    files = count_of(len(made._all_files()), "file")
    say(f"Dataset '{made.name}' version {made.version} has {files}, in {target[1]} of datastore '{store.name}'.")
    return exits.OK


def _row(record: DatasetRecord) -> tuple[str, ...]:
    when = moment(record.created_at, time.time())
    return record.name, str(record.version), _kind(record), when, _source(record)


def _kind(record: DatasetRecord) -> str:
    return "table" if record.definition.kind == "tabular" else "files"


def _source(record: DatasetRecord) -> str:
    shown: str = describe_sources([to_plain(source) for source in record.definition.sources])
    return shown


def _as_json(record: DatasetRecord) -> dict[str, Any]:
    return {**to_plain(record), "kind": record.definition.kind, "created_at": iso(record.created_at)}

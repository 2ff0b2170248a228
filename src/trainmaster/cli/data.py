"""`trainmaster data list`, `show` and `upload`."""

from __future__ import annotations

import time
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_facts, show_names, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.script.dataset_views import describe_sources
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, moment
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain


def list_datasets(options: Options) -> int:
    """List the registered datasets, each in its newest version.

    JSON: a list of {"id", "name", "version", "kind", "description", "tags", "created_at", "definition"}.

      trainmaster data list
    """
    found = open_workspace(options.workspace).connection.call("datasets.list")
    return _LISTING.show([from_plain(DatasetRecord, each) for each in found], options)


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the dataset's name")
    parser.add_argument("--version", metavar="N", default="latest", dest="dataset_version", help="default: the newest")


def show(options: Options) -> int:
    """Show one dataset and its files.

    JSON: the keys of 'data list', and "files", a list of names.

      trainmaster data show digits --version 2
    """
    from trainmaster.sdk.datasets.kinds import dataset_from_record

    workspace = open_workspace(options.workspace)
    plain = workspace.connection.call("datasets.get", name=options.name, version=options.dataset_version)
    record = from_plain(DatasetRecord, plain)
    files = [file.name for file in dataset_from_record(workspace, plain)._all_files()]
    if options.json:
        say_json({**_as_json(record), "files": files})
        return exits.OK
    say(f"{record.name}, version {record.version}: {_kind(record)}")
    if record.description:
        say(record.description)
    show_facts(
        [
            ("Source", _source(record)),
            ("Registered", moment(record.created_at, time.time())),
            ("Tags", ", ".join(f"{key}={value}" for key, value in record.tags.items())),
            ("Files", str(len(files))),
        ]
    )
    show_names(files)
    return exits.OK


def upload_arguments(parser: Parser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="the folder to copy")
    parser.add_argument("name", metavar="NAME", help="the dataset's name; an existing one gets a new version")
    parser.add_argument("--datastore", metavar="STORE", help="default: the workspace's default datastore")
    parser.add_argument("--path", metavar="PATH", help="the folder in the datastore; default: datasets/NAME")
    parser.add_argument("--pattern", metavar="PATTERN", help="copy only matching files, such as '*.jpg'")
    parser.add_argument("--overwrite", action="store_true", help="replace files that already exist")


def upload(options: Options) -> int:
    """Copy a folder to a datastore and register it as a dataset of files.

    JSON: the dataset, as in 'data list'.

      trainmaster data upload ./images digits --pattern '*.png'
    """
    from trainmaster.sdk.datasets import Dataset
    from trainmaster.sdk.datastores import Datastore

    workspace = open_workspace(options.workspace)
    store = Datastore.get(workspace, options.datastore) if options.datastore else Datastore.get_default(workspace)
    target = (store, options.path or f"datasets/{options.name}")
    dataset = Dataset.File.upload_directory(
        options.folder, target, options.pattern, options.overwrite, show_progress=False
    ).register(workspace, options.name, create_new_version=True)
    record = from_plain(DatasetRecord, workspace.connection.call("datasets.get", id=dataset.id))
    files = count_of(len(dataset._all_files()), "file")
    place = f"{target[1]} of datastore '{store.name}'"
    text = f"Dataset '{dataset.name}' version {dataset.version} has {files}, in {place}."
    return show_result(options, _as_json(record), text)


def _row(record: DatasetRecord) -> tuple[str, ...]:
    when = moment(record.created_at, time.time())
    return record.name, str(record.version), _kind(record), when, _source(record)


def _kind(record: DatasetRecord) -> str:
    return "table" if record.definition.kind == "tabular" else "files"


def _source(record: DatasetRecord) -> str:
    return describe_sources([to_plain(source) for source in record.definition.sources])


def _as_json(record: DatasetRecord) -> dict[str, Any]:
    return {**to_plain(record), "kind": record.definition.kind, "created_at": iso(record.created_at)}


_LISTING: Listing[DatasetRecord] = Listing(
    columns=(
        Column("DATASET", style=lambda text: "bold"),
        Column("VERSION", right=True),
        Column("KIND"),
        Column("REGISTERED"),
        Column("SOURCE"),
    ),
    row=_row,
    json=_as_json,
    empty="There are no datasets yet. dataset.register(workspace, name) or 'trainmaster data upload' creates one.",
)

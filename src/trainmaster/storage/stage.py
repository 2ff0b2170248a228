"""Copies the data of a run in before the job, and its outputs back after the job.

    python -m trainmaster.storage.stage <plan.json> before|after

It is a separate process, so that no storage driver is ever loaded into the dispatcher. The options of the datastores,
including keys, come as JSON from standard input. It prints what it does. On an error it exits with 1, and the last line
of standard error is the error as JSON. It can be repeated after it was killed: existing files are complete and are
skipped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.job.errors import DatastoreException, TrainmasterError
from trainmaster.job.script.dataset_files import WebFiles, find_files, local_files, matcher, select
from trainmaster.job.script.dataset_views import copy_files, describe_sources, show_files
from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.job.script.store_paths import printable
from trainmaster.job.script.store_progress import say_aloud
from trainmaster.job.script.store_sources import Source, Sources, sources_in
from trainmaster.job.script.store_transfer import download, upload
from trainmaster.shared.orphans import die_with
from trainmaster.shared.serialization import to_plain
from trainmaster.storage.dataplan import DataPlan, Gather, Link, Transfer, read_plan
from trainmaster.storage.storage import open_storage

if TYPE_CHECKING:
    from trainmaster.job.script.store_progress import Say


def main(arguments: list[str]) -> int:
    """Carry out one half of a plan; return the exit code."""
    if len(arguments) not in (2, 3) or arguments[1] not in ("before", "after"):
        usage = "Usage: python -m trainmaster.storage.stage <plan.json> before|after [parent process]"
        return _report(TrainmasterError(usage))
    if len(arguments) == 3:
        die_with(int(arguments[2]))
    # Unwinds the stack, so that no partial file is left behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        plan = _with_options(read_plan(Path(arguments[0])), b"" if sys.stdin.isatty() else sys.stdin.buffer.read())
        bring_in(plan, say_aloud) if arguments[1] == "before" else send_back(plan, say_aloud)
    except TrainmasterError as error:
        return _report(error)
    except Exception as error:  # noqa: BLE001 - the dispatcher shows this to a person, who gets no traceback of ours
        return _report(DatastoreException(f"The data could not be staged: {type(error).__name__}: {error}"))
    return 0


def _with_options(plan: DataPlan, given: bytes) -> DataPlan:
    """Add the options of the stores: keys come through a pipe and are never in a file."""
    options = json.loads(given) if given.strip() else {}
    stores = {name: replace(store, options=options.get(name, store.options)) for name, store in plan.stores.items()}
    return replace(plan, stores=stores)


def bring_in(plan: DataPlan, say: Say) -> None:
    """Provide everything that must exist when the script starts."""
    for folder in plan.folders:
        _make(Path(folder))
    for link in plan.outer_links:
        _link(link, say)
    for transfer in plan.downloads:
        _bring(transfer, _open(plan, transfer), say)
    for gather in plan.gathers:
        _gather(gather, plan, say)


def send_back(plan: DataPlan, say: Say) -> None:
    """Upload what the script wrote."""
    for transfer in plan.uploads:
        _take_back(transfer, _open(plan, transfer), say)


def _bring(transfer: Transfer, storage: Storage, say: Say) -> None:
    where = f"datastore {transfer.store!r}"
    files = storage.list(transfer.path)
    local = Path(transfer.local)
    if not files and not _is_empty_folder(transfer, storage):
        raise DatastoreException(
            f"Datastore {transfer.store!r} has nothing at {printable(transfer.path or '/')}",
            hint="Upload it first, or correct the path.",
        )
    if [file.path for file in files] != [transfer.path]:
        _make(local)
    download(storage, [(file, _local_of(file, transfer)) for file in files], transfer.overwrite, say, where)


def _gather(gather: Gather, plan: DataPlan, say: Say) -> None:
    """Show the files of a dataset under their names: as links if possible, else as copies."""

    def open_place(key: tuple[str, str]) -> Any:
        kind, name = key
        if kind == "store":
            return open_storage(plan.stores[name].url, plan.stores[name].options)
        return WebFiles(name) if kind == "web" else local_files()

    sources = [to_plain(source) for source in gather.sources]
    files = select(find_files(sources, open_place), gather.steps)
    if not files:
        raise DatastoreException(
            f"No files found at {describe_sources(sources)}",
            hint="Upload it first, or correct the path of the dataset.",
        )
    _make(Path(gather.local))
    pairs = [(file, f"{gather.local}/{file.name}") for file in files]
    if gather.copy:
        # Existing files are complete, even if an earlier stage was killed.
        copy_files([pair for pair in pairs if not os.path.exists(pair[1])])
    else:
        show_files(pairs)
    say(f"Provided {len(files)} files of {describe_sources(sources)}")


def _is_empty_folder(transfer: Transfer, storage: Storage) -> bool:
    root = storage.local_path()
    return not transfer.path if root is None else os.path.isdir(os.path.join(root, transfer.path))


def _local_of(file: StoredFile, transfer: Transfer) -> Path:
    inner = file.path[len(transfer.path) :].lstrip("/")
    return Path(transfer.local) / inner if inner else Path(transfer.local)


def _take_back(transfer: Transfer, storage: Storage, say: Say) -> None:
    local = Path(transfer.local)
    if local.is_dir():
        sources = sources_in(local)
    elif local.is_file():
        sources = Sources((Source(local, local.name),))
    else:
        say(f"Nothing to upload to datastore {transfer.store!r}: the script did not write {printable(local)}")
        return
    if transfer.globs:
        chosen = [matcher(glob) for glob in transfer.globs]
        files = tuple(file for file in sources.files if any(fits(file.path) for fits in chosen))
        sources = Sources(files, sources.left_out)
    upload(storage, sources, transfer.path, transfer.overwrite, say, f"datastore {transfer.store!r}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatastoreException(
            f"The folder {printable(folder)} cannot be created",
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error


def _link(link: Link, say: Say) -> None:
    path = Path(link.path)
    _make(path.parent)
    try:
        path.symlink_to(link.target)
        say(f"Linked {printable(path)} to {printable(link.target)}")
    except FileExistsError:
        # Links stay after their run, because another run may use them.
        if not path.is_symlink() or os.readlink(path) != link.target:
            raise DatastoreException(
                f"path_on_compute {printable(path)} already exists",
                cause=f"It is a link to {printable(os.readlink(path))}, maybe from an earlier run."
                if path.is_symlink()
                else "",
                hint="Remove it, or choose another path_on_compute.",
            ) from None
    except OSError as error:
        raise DatastoreException(
            f"The link {printable(path)} cannot be created",
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error


def _open(plan: DataPlan, transfer: Transfer) -> Storage:
    record = plan.stores[transfer.store]
    return open_storage(record.url, record.options)


def _report(error: TrainmasterError) -> int:
    print(error.message, flush=True)
    print(json.dumps(error.to_wire()), file=sys.stderr, flush=True)
    return 1


def _run() -> NoReturn:
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    _run()

"""Copies between a datastore and a run's folder, for a script that cannot reach the storage itself.

    python -m trainmaster.storage.storage_request <parent process>

The request, with the options of the datastore, comes as JSON from standard input. It prints what it does. On an error
it exits with 1, and the last line of standard error is the error as JSON. It can be repeated.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from trainmaster.job.errors import DatastoreException, TrainmasterError
from trainmaster.job.script.store_paths import store_path
from trainmaster.job.script.store_progress import say_aloud, say_nothing
from trainmaster.job.script.store_sources import sources_in
from trainmaster.job.script.store_transfer import download, files_by_prefix, upload
from trainmaster.shared.orphans import die_with
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.storage.storage import open_storage


def main(parent: int, given: bytes) -> int:
    """Carry out the request; return the exit code."""
    die_with(parent)
    # Unwinds the stack, so that no partial file is left behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        go(json.loads(given))
    except TrainmasterError as error:
        return _report(error)
    except Exception as error:  # noqa: BLE001 - the script's author is shown this, without a traceback of ours
        return _report(DatastoreException(f"The files could not be copied: {type(error).__name__}: {error}"))
    return 0


def go(order: dict[str, Any]) -> None:
    """Download the files at `prefix` of the store, upload the folder to `target`, or list what is at `list`."""
    record = from_plain(DatastoreRecord, order["store"])
    storage, folder, where = (
        open_storage(record.url, record.options),
        Path(order["files"]),
        f"datastore {record.name!r}",
    )
    if "list" in order:
        listed = [(file.path, file.size) for file in storage.list(store_path(order["list"]))]
        (folder / "list.json").write_text(json.dumps(listed))
    elif "prefix" in order:
        found = files_by_prefix(storage, store_path(order["prefix"]))
        # The script itself reports which files were new.
        download(storage, [(file, folder / file.path) for file in found], True, say_nothing, where)
    else:
        upload(storage, sources_in(folder), store_path(order["target"]), order["overwrite"], say_aloud, where)


def _report(error: TrainmasterError) -> int:
    print(json.dumps(error.to_wire()), file=sys.stderr, flush=True)
    return 1


def _run() -> NoReturn:
    sys.exit(main(int(sys.argv[1]), sys.stdin.buffer.read()))


if __name__ == "__main__":
    _run()

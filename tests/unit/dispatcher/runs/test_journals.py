"""Reading journals: whatever a script puts into their folder, what was logged properly is kept."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainmaster.dispatcher.runs.journals import Ingest
from trainmaster.dispatcher.store import Store
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.records import RunRecord, Status


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.create(tmp_path / "store.db")
    store.runs.add(
        RunRecord(id="run", experiment="e", status=Status.RUNNING, created_at=1.0, target="local", submitted_by="me")
    )
    yield store
    store.close()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.journals.mkdir(parents=True)
    return folder


def line(name: str, value: float) -> bytes:
    return json.dumps({"k": "metric", "n": name, "v": value, "t": 1.0}).encode() + b"\n"


def bring_in(store: Store, folder: RunFolder) -> None:
    ingest = Ingest(store)
    asyncio.run(ingest.bring_in("run", folder))
    ingest.close()


def values(store: Store) -> dict[str, tuple[float, ...]]:
    return {series.name: series.values for series in store.metrics.read("run")}


def warnings(store: Store) -> tuple[str, ...]:
    record = store.runs.get("run")
    assert record is not None
    return record.warnings


def dangling_link(place: Path) -> None:
    place.symlink_to("nowhere")


def link_loop(place: Path) -> None:
    place.symlink_to(place.name)


def link_to_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def folder_of_that_name(place: Path) -> None:
    place.mkdir()


def pipe(place: Path) -> None:
    os.mkfifo(place)


def unix_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(place))


def name_that_is_not_text(place: Path) -> None:
    (place.parent / os.fsdecode(b"0-\xff.jsonl")).write_bytes(line("loss", 9.0))


@pytest.mark.parametrize(
    "make",
    [dangling_link, link_loop, link_to_device, folder_of_that_name, pipe, unix_socket, name_that_is_not_text],
)
def test_a_name_that_cannot_be_read_is_skipped_with_a_warning(
    make: Callable[[Path], None], store: Store, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.journals)
    (folder.journals / "0-1-a.jsonl").write_bytes(line("loss", 1.0))
    make(folder.journals / "0-0-x.jsonl")
    (folder.journals / "1-1-a.jsonl").write_bytes(line("loss", 2.0))
    bring_in(store, folder)
    assert values(store) == {"loss": (1.0, 2.0)}
    (warning,) = warnings(store)
    assert warning.startswith("Folder 'journals': skipped 1 entry that cannot be read; the first: '0-")
    found = Ingest(store).rest("run", folder)
    assert found == []


def test_one_warning_counts_them_all(store: Store, folder: RunFolder) -> None:
    ingest = Ingest(store)
    for number in range(3):
        dangling_link(folder.journals / f"{number}.jsonl")
        asyncio.run(ingest.bring_in("run", folder))
    assert warnings(store) == (
        "Folder 'journals': skipped 3 entries that cannot be read; the first: '0.jsonl' is not a regular file",
    )


def test_a_file_in_the_place_of_the_folder(store: Store, folder: RunFolder) -> None:
    folder.journals.rmdir()
    folder.journals.touch()
    bring_in(store, folder)
    assert len(warnings(store)) == 1


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "growing"])
def test_a_line_beyond_the_limit_costs_that_line(store: Store, folder: RunFolder, ended: bool) -> None:
    journal = folder.journals / "0-1-a.jsonl"
    with open(journal, "wb") as file:
        file.write(line("loss", 1.0) + b'{"k":"metric","n":"loss","t":1.0,"v":"')
        for _ in range(70):
            file.write(b"x" * 2**20)
        if not ended:
            file.flush()
            bring_in(store, folder)
            file.write(b"x" * 2**20)
        file.write(b'"}\n' + line("loss", 2.0))
    bring_in(store, folder)
    assert values(store) == {"loss": (1.0, 2.0)}
    assert warnings(store) == (
        "Journal '0-1-a.jsonl': 1 record was passed over; the first: its line is longer than 64 MB",
    )

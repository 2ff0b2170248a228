"""Files of datastores by operations: nothing outside of a datastore is read or written."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.sdk.backend.operation_storage import OperationStorage
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import to_plain


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[InnerDispatcher]:
    (tmp_path / "workspace").mkdir()
    made = InnerDispatcher(tmp_path / "workspace")
    yield made
    made.close()


@pytest.fixture
def folder(dispatcher: InnerDispatcher, tmp_path: Path) -> Path:
    """The folder of the datastore `files`."""
    place = tmp_path / "files"
    place.mkdir()
    dispatcher.call("datastores.put", record=to_plain(DatastoreRecord("files", str(place))))
    return place


@pytest.mark.parametrize("path", ["../outside.txt", "link.txt", "linked/outside.txt", "a/../../outside.txt"])
def test_nothing_outside_of_the_folder_is_read_or_written(
    dispatcher: InnerDispatcher, folder: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises((UserErrorException, DatastoreException)):
        dispatcher.call("datastores.read", name="files", path=path)
    new = path.replace("outside", "new")
    data = base64.b64encode(b"new").decode()
    if path == "link.txt":
        # The link is replaced; what it led to stays.
        dispatcher.call("datastores.write", name="files", path=path, upload="u", start=0, data=data, last=True)
        assert not (folder / path).is_symlink()
    else:
        with pytest.raises((UserErrorException, DatastoreException)):
            dispatcher.call("datastores.write", name="files", path=new, upload="u", start=0, data=data, last=True)
    assert (tmp_path / "outside.txt").read_text() == "secret"
    assert sorted(os.listdir(tmp_path)) == ["files", "outside.txt", "workspace"]


def test_links_inside_of_the_folder_are_followed(dispatcher: InnerDispatcher, folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a.txt").write_text("text")
    (folder / "linked").symlink_to(folder / "real")
    found = dispatcher.call("datastores.read", name="files", path="linked/a.txt")
    assert (base64.b64decode(found["data"]), found["size"]) == (b"text", 4)


def test_pieces_may_be_sent_again(dispatcher: InnerDispatcher, folder: Path) -> None:
    def send(start: int, data: bytes, last: bool = False) -> None:
        text = base64.b64encode(data).decode()
        dispatcher.call("datastores.write", name="files", path="a/b", upload="u", start=start, data=text, last=last)

    send(0, b"abc")
    send(3, b"def")
    send(0, b"abc")
    send(3, b"def")
    assert not (folder / "a" / "b").exists()
    for _ in range(2):
        # As after an answer that was lost.
        send(6, b"g", last=True)
    assert (folder / "a" / "b").read_bytes() == b"abcdefg"
    assert os.listdir(folder / "a") == ["b"]
    with pytest.raises(DatastoreException, match="cannot be written"):
        send(6, b"other", last=True)


def test_a_storage_that_is_not_a_folder(dispatcher: InnerDispatcher, tmp_path: Path) -> None:
    place = tmp_path / "bucket"
    (place / "in").mkdir(parents=True)
    (place / "in" / "a.bin").write_bytes(b"x" * 10)
    dispatcher.call("datastores.put", record=to_plain(DatastoreRecord("bucket", f"simplecache::file://{place}")))
    storage = OperationStorage(dispatcher, "bucket")  # type: ignore[arg-type]
    assert storage.list("") == [("in/a.bin", 10)]
    storage.get("in/a.bin", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"x" * 10
    storage.put(tmp_path / "back", "out/b.bin")
    assert (place / "out" / "b.bin").read_bytes() == b"x" * 10
    assert storage.exists("out/b.bin") and not storage.exists("out")
    with pytest.raises(DatastoreException):
        storage.get("missing", tmp_path / "missing")
    # What passed through the workspace does not stay there.
    assert list((dispatcher.folder.path / "transfers").rglob("*.bin")) == []


def test_the_server_reads_folders_itself(dispatcher: InnerDispatcher, folder: Path) -> None:
    (folder / "a.txt").write_text("text")
    for op, args in {
        "datastores.files": {},
        "datastores.read": {"path": "a.txt"},
        "datastores.write": {"path": "a.txt", "upload": "u", "start": 0, "data": "", "last": True},
    }.items():
        with pytest.raises(UserErrorException, match="is a folder"):
            dispatcher.call(op, name="files", with_folders=False, **args)

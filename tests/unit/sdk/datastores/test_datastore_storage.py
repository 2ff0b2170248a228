import zipfile

import pytest

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.storage import StoredFile
from trainmaster.sdk.datastores import Datastore
from trainmaster.storage.storage import open_storage
from trainmaster.storage.urls import local_folder, mask_url


@pytest.fixture
def archive(tmp_path):
    def make(names):
        path = tmp_path / "archive.zip"
        with zipfile.ZipFile(path, "w") as opened:
            for name in names:
                opened.writestr(name, name)
        return path

    return make


@pytest.fixture(params=["folder", "file_url", "memory"])
def storage(request, tmp_path):
    if request.param == "memory":
        request.getfixturevalue("memory")
        return open_storage("memory://conformance")
    return open_storage(str(tmp_path / "s") if request.param == "folder" else (tmp_path / "s").as_uri())


def test_every_storage_does_the_same(storage, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"12345")
    assert storage.list("") == []
    assert storage.list("missing/path") == []
    storage.put(source, "a/b/c")
    storage.put(source, "a/d")
    storage.put(source, "ab")
    assert storage.list("") == [StoredFile("a/b/c", 5), StoredFile("a/d", 5), StoredFile("ab", 5)]
    assert storage.list("a") == [StoredFile("a/b/c", 5), StoredFile("a/d", 5)]
    assert storage.list("a/b/c") == [StoredFile("a/b/c", 5)]
    assert storage.list("a/b/c/e") == []
    assert storage.exists("a/d")
    assert not storage.exists("a")
    assert not storage.exists("x")
    storage.get("a/d", tmp_path / "new" / "folder" / "d")
    assert (tmp_path / "new" / "folder" / "d").read_bytes() == b"12345"
    with pytest.raises(DatastoreException, match="cannot be read"):
        storage.get("x", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(DatastoreException, match="gone"):
        storage.put(tmp_path / "gone", "y")
    assert not storage.exists("y")
    source.write_bytes(b"6")
    storage.put(source, "a/d")
    assert storage.list("a/d") == [StoredFile("a/d", 1)]


def test_the_root_of_memory(memory, tmp_path):
    storage = open_storage("memory://")
    (tmp_path / "f").write_bytes(b"1")
    storage.put(tmp_path / "f", "top")
    assert storage.list("") == [StoredFile("top", 1)]


def test_an_archive_is_read_only(workspace, archive, tmp_path, contents):
    url = f"zip://::{archive(['a.txt', 'sub/b.txt'])}"
    store = Datastore.register(workspace, "packed", url)
    assert store.datastore_type == "zip"
    assert store.download(tmp_path / "back") == 2
    assert contents(tmp_path / "back") == {"a.txt": b"a.txt", "sub/b.txt": b"sub/b.txt"}
    assert store.download(tmp_path / "back2", prefix="sub/b.txt") == 1
    with pytest.raises(DatastoreException, match="cannot be written"):
        store.upload_files([tmp_path / "back" / "a.txt"], target_path="x")


@pytest.mark.parametrize("name", ["../escape", "a/../../escape", "/../escape"])
def test_an_archive_cannot_write_outside(workspace, archive, tmp_path, name):
    store = Datastore.register(workspace, "packed", f"zip://::{archive(['ok', name])}")
    with pytest.raises(DatastoreException, match="leaves the store"):
        store.download(tmp_path / "deep" / "back")
    assert not list(tmp_path.rglob("*escape*"))


def test_a_missing_archive(workspace, tmp_path):
    store = Datastore.register(workspace, "packed", f"zip://::{tmp_path / 'missing.zip'}")
    with pytest.raises(DatastoreException, match="cannot be opened"):
        store.download(tmp_path / "back")


def test_broken_options(workspace, tmp_path, archive):
    store = Datastore.register(workspace, "packed", f"zip://::{archive(['a'])}", options={"zip": {"mode": "?"}})
    with pytest.raises(DatastoreException, match="cannot be opened"):
        store.download(tmp_path / "back")


def test_local_folder():
    assert local_folder("s3://bucket") is None
    assert local_folder("zip://::/a.zip") is None
    assert str(local_folder("/data/a::b")) == "/data/a::b"
    assert str(local_folder("file://localhost/a%20b/")) == "/a b"


def test_shown_url():
    assert mask_url("sftp://me:pass@host/x") == "sftp://me:***@host/x"
    assert mask_url("s3://bucket/x") == "s3://bucket/x"

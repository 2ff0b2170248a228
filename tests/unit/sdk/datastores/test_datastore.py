import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.script import store_paths
from trainmaster.sdk.datastores import Datastore
from trainmaster.storage import storage


def test_the_default_store_looks_as_in_v1(workspace):
    store = Datastore.get_default(workspace)
    assert (store.name, store.datastore_type) == ("workspaceblobstore", "AzureBlob")
    assert (store.account_name, store.container_name) == ("local", "datastore")
    assert store.workspace is workspace
    assert Datastore(workspace).name == Datastore(workspace, "workspaceblobstore").name == store.name


def test_register_get_default_unregister(workspace, tmp_path):
    made = Datastore.register(workspace, "extra", tmp_path / "extra")
    assert (made.datastore_type, made.container_name) == ("Folder", "extra")
    assert Datastore.get(workspace, "extra").url == str(tmp_path / "extra")
    made.set_as_default()
    assert Datastore.get_default(workspace).name == "extra"
    assert set(Datastore.get_all(workspace)) == {"workspaceblobstore", "extra"}
    with pytest.raises(UserErrorException):
        Datastore.register(workspace, "extra", tmp_path)
    assert Datastore.register(workspace, "extra", tmp_path, overwrite=True).url == str(tmp_path)
    made.unregister()
    with pytest.raises(UserErrorException, match="has no datastore 'extra'") as caught:
        Datastore.get(workspace, "extra")
    assert "workspaceblobstore" in caught.value.hint


def test_folders_are_registered_by_their_absolute_path(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = str(tmp_path / "a b")
    for number, url in enumerate(["a b", "./x/../a b", "~/a b", (tmp_path / "a b").as_uri(), Path("a b")]):
        assert Datastore.register(workspace, f"store{number}", url).url == expected


@pytest.mark.parametrize("name", ["", "../x", "a\nb", "a/b", "x" * 256])
def test_names(workspace, name):
    with pytest.raises(UserErrorException, match="cannot be the name"):
        Datastore.register(workspace, name, "/tmp")
    with pytest.raises(UserErrorException, match="cannot be the name"):
        Datastore.get(workspace, name)


@pytest.mark.parametrize("url", ["", "  ", "/a\nb", "/a\0b", "s3:/bucket", "file:/x"])
def test_what_is_no_address(workspace, url):
    with pytest.raises(UserErrorException, match="is not an address"):
        Datastore.register(workspace, "x", url)


def test_a_file_is_no_folder(workspace, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserErrorException, match="is a file"):
        Datastore.register(workspace, "x", tmp_path / "file")


def test_a_file_url_of_another_machine(workspace):
    with pytest.raises(UserErrorException, match="another machine"):
        Datastore.register(workspace, "x", "file://host/folder")


def test_an_unknown_protocol(workspace):
    with pytest.raises(DatastoreException, match="nothing knows how to open 'gopher'"):
        Datastore.register(workspace, "x", "gopher://host")


def test_a_missing_driver_is_named(workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(DatastoreException, match="not installed") as caught:
        Datastore.register(workspace, "x", "s3://bucket")
    assert caught.value.hint == "pip install s3fs"


def test_options_are_plain(workspace):
    with pytest.raises(UserErrorException, match="plain values"):
        Datastore.register(workspace, "x", "memory://x", options={"session": object()})


def test_secrets_are_not_shown(workspace):
    store = Datastore.register(workspace, "x", "memory://user:topsecret@host/x", options={"key": "alsosecret"})
    assert "secret" not in repr(store)
    assert store.container_name == "host"
    assert store.datastore_type == "memory"


@pytest.mark.parametrize("module", [store_paths, storage])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_importing_does_not_load_fsspec():
    code = (
        "import sys, trainmaster.sdk.datastores, trainmaster.storage.staging, trainmaster.storage.stage;"
        "assert 'fsspec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_store_does_not_load_fsspec(tmp_path):
    code = (
        "import sys; from pathlib import Path; from trainmaster.storage.storage import open_storage;"
        "store = open_storage(sys.argv[1]); (Path(sys.argv[1]) / 'a').touch(); assert store.list('');"
        "assert 'fsspec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)

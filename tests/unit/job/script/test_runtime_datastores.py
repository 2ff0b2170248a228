"""Datastores as a job has them: which way their files go, and what is copied."""

from __future__ import annotations

import inspect
import os
import sys
from types import SimpleNamespace

import pytest

from trainmaster.job.errors import DatastoreException, TrainmasterError, UserErrorException
from trainmaster.job.lookup import load_public
from trainmaster.job.script.datasets import Dataset
from trainmaster.job.script.datastores import DataReference, Datastore
from trainmaster.sdk.backend.opening import open_backend
from trainmaster.sdk.datastores.datastore import Datastore as ClientDatastore
from trainmaster.sdk.datastores.reference import DataReference as ClientReference
from trainmaster.shared.folders import WorkspaceFolder


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "store"
    place.mkdir()
    return place


@pytest.fixture
def store(folder):
    return Datastore(None, _facts=facts(folder))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with files, in the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made" / "sub").mkdir(parents=True)
    (tmp_path / "made" / "a").write_text("a")
    (tmp_path / "made" / "sub" / "b").write_text("b")
    return tmp_path / "made"


def facts(place, **other):
    inode = os.stat(place).st_ino
    known = {"name": "sets", "url": str(place), "folder": str(place), "inode": inode, "is_default": False}
    return {**known, "datastore_type": "Folder", "account_name": "local", "container_name": "store", **other}


def below(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir())


class TestUpload:
    def test_a_folder(self, store, folder, made):
        reference = store.upload("made", target_path="/results/", show_progress=False)
        assert below(folder) == ["results/a", "results/sub/b"]
        assert (reference.datastore, reference.path_on_datastore, reference.mode) == (store, "results", "mount")

    def test_what_is_there_stays(self, store, folder, made, capsys):
        store.upload("made")
        (made / "a").write_text("newer")
        store.upload("made")
        assert (folder / "a").read_text() == "a"
        assert "Skipped a: it already exists" in capsys.readouterr().out
        store.upload("made", overwrite=True)
        assert (folder / "a").read_text() == "newer"
        said = capsys.readouterr().out.splitlines()
        assert said == [
            "Uploaded a (5 bytes)",
            "Uploaded sub/b (1 bytes)",
            "Uploaded 2 files (6 bytes) to datastore 'sets'",
        ]

    def test_links_and_pipes_are_left_out_as_outside_of_jobs(self, store, folder, made, tmp_path, capsys):
        (tmp_path / "secret").write_text("s")
        (made / "out").symlink_to(tmp_path / "secret")
        (made / "up").symlink_to(made)
        (made / "nowhere").symlink_to("nothing")
        (made / "same").symlink_to("a")
        os.mkfifo(made / "pipe")
        store.upload("made", show_progress=True)
        assert below(folder) == ["a", "same", "sub/b"] and not (folder / "same").is_symlink()
        assert capsys.readouterr().out.count("Left out ") == 4

    def test_the_store_is_not_uploaded_into_itself(self, store, folder, made, tmp_path):
        (folder / "old").write_text("")
        store.upload(".", target_path="all", show_progress=False)
        assert below(folder) == ["all/made/a", "all/made/sub/b", "old"]

    def test_files(self, store, folder, made, capsys):
        store.upload_files(["made/a", made / "sub" / "b"], target_path="one", show_progress=False)
        store.upload_files(["made/a"], relative_root=".", target_path="two", show_progress=False)
        store.upload_files([], target_path="three")
        store.upload_files(["made/sub/b", "made/a", "made/a"], target_path="four")
        said = capsys.readouterr().out.splitlines()[-3:]
        assert [line.split(" (")[0] for line in said] == ["Uploaded four/sub/b", "Uploaded four/a", "Uploaded 2 files"]
        assert below(folder) == ["four/a", "four/sub/b", "one/a", "one/sub/b", "two/made/a"]

    @pytest.mark.parametrize(
        ("use", "words"),
        [
            (lambda store: store.upload("none"), "does not exist"),
            (lambda store: store.upload("made/a"), "is not a folder"),
            (lambda store: store.upload_files("made/a"), "takes a list"),
            (lambda store: store.upload_files(["made/a", "none"]), "Nothing was uploaded: no such file"),
            (lambda store: store.upload_files(["made/a"], relative_root="made/sub"), "not below relative_root"),
            (lambda store: store.upload("made", target_path="../x"), "leaves the datastore"),
            (lambda store: store.download("made/a"), "is not a folder"),
            (lambda store: store.download("x", prefix=3), "path"),
        ],
    )
    def test_refused(self, store, folder, made, use, words):
        with pytest.raises(UserErrorException, match=words):
            use(store)
        assert below(folder) == []

    def test_a_full_place_says_so(self, store, folder, made):
        (folder / "results").write_text("a file in the way")
        with pytest.raises(DatastoreException, match=r"Uploaded only 0 of 2 files .* cannot be written"):
            store.upload("made", "results", show_progress=False)
        assert below(folder) == ["results"]


class TestDownload:
    def test_by_prefix(self, store, folder, tmp_path, capsys):
        for name in ("mnist/a", "mnist/b", "mnist2/c", "other"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        (folder / ".trainmaster-0123.part").write_text("on its way")
        assert store.download(tmp_path / "1", prefix="mnist") == 2
        assert store.download(tmp_path / "2", prefix="mnist/a") == 1
        assert store.download(tmp_path / "3", prefix="mni") == 3
        assert store.download(str(tmp_path / "4")) == 4
        assert store.download(tmp_path / "5", prefix="no/such") == 0
        assert below(tmp_path / "1") == ["mnist/a", "mnist/b"]
        assert below(tmp_path / "3") == ["mnist/a", "mnist/b", "mnist2/c"]
        assert (store.download(tmp_path / "1", "mnist"), store.download(tmp_path / "1", "mnist", True)) == (0, 2)
        assert "skipped 2 files that already existed" in capsys.readouterr().out

    def test_links_are_followed_but_not_for_ever(self, store, folder, tmp_path):
        (folder / "a").mkdir()
        (folder / "a" / "x").write_text("x")
        (folder / "b").symlink_to("a")
        (folder / "a" / "up").symlink_to("..")
        store.download(tmp_path / "got", show_progress=False)
        workspace = SimpleNamespace(backend=open_backend(WorkspaceFolder(tmp_path / "workspace")))
        theirs = ClientDatastore.from_record(workspace, _record(folder))
        theirs.download(tmp_path / "theirs", show_progress=False)
        assert below(tmp_path / "got") == below(tmp_path / "theirs")


def _record(folder):
    from trainmaster.shared.records import DatastoreRecord

    return DatastoreRecord("sets", str(folder))


class TestSeen:
    """A folder is used directly only if it is the same."""

    def test_on_the_dispatchers_machine(self, store, folder):
        assert store.visible_folder() == str(folder)

    @pytest.mark.parametrize("name", ["TRAINMASTER_LETTERS", "TRAINMASTER_CONTAINER"])
    def test_elsewhere(self, folder, tmp_path, monkeypatch, name):
        monkeypatch.setenv(name, "1")
        assert Datastore(None, _facts=facts(folder)).visible_folder() == str(folder)
        assert Datastore(None, _facts=facts(folder, inode=1)).visible_folder() is None
        assert Datastore(None, _facts=facts(folder, folder=str(tmp_path / "none"))).visible_folder() is None
        assert Datastore(None, _facts=facts(folder, folder=None)).visible_folder() is None

    def test_a_dataset_of_one_that_is_not_seen(self, folder):
        with pytest.raises(DatastoreException, match="cannot be used inside this job") as raised:
            Dataset.File.from_files((Datastore(None, _facts=facts(folder, folder=None)), "x"))
        assert "as_download()" in raised.value.hint


def test_datasets_of_it(store, folder):
    (folder / "set").mkdir()
    (folder / "set" / "a.csv").write_text("n\n1\n")
    for path in ((store, "set/*.csv"), store.path("set"), [(store, "set/a.csv")]):
        assert Dataset.File.from_files(path).to_path() == ["/a.csv"]


def test_references_as_outside_of_jobs(store):
    theirs = ClientReference(ClientDatastore.from_record(None, _record(".")), None, "x")
    for ours in (store.path("./x/"), DataReference(store, None, "/x")):
        assert len(str(ours)) == len(str(theirs)) and str(ours) == "$AZUREML_DATAREFERENCE_" + ours.data_reference_name
        assert ours.as_download("there").path("y").path_on_datastore == theirs.path("y").path_on_datastore == "x/y"
    assert str(store.as_mount()) == "$AZUREML_DATAREFERENCE_sets"
    assert [store.as_mount().mode, store.as_download().mode, store.as_upload("p").path_on_compute] == [
        "mount", "download", "p",
    ]  # fmt: skip
    for wrong in ({"mode": "fly"}, {"data_reference_name": "a b"}, {"path_on_compute": "../x"}):
        for kind in (DataReference, ClientReference):
            with pytest.raises(UserErrorException, match=r"Unknown data mode|cannot be the name|leaves the working"):
                kind(store, **wrong)


def test_what_a_job_has_not(store):
    with pytest.raises(AttributeError, match="inside a job a datastore has no 'unregister'"):
        store.unregister()
    with pytest.raises(TrainmasterError, match=r"Datastore\.register cannot be used in this job"):
        Datastore.register(None, "name", "/folder")
    for name in ("", None, 3):
        with pytest.raises(UserErrorException, match="cannot be the name"):
            Datastore.get(None, name)


def test_with_the_full_trainmaster_its_class_is_the_one(monkeypatch):
    monkeypatch.setenv("TRAINMASTER_RUN_ID", "run_1")
    monkeypatch.delitem(sys.modules, "trainmaster.job.script.datastore", raising=False)
    assert load_public("Datastore") is ClientDatastore


@pytest.mark.parametrize("ours, theirs", [(Datastore, ClientDatastore), (DataReference, ClientReference)])
def test_parameters_and_defaults_as_outside_of_jobs(ours, theirs):
    shared = [name for name in dir(ours) if not name.startswith("_") and callable(getattr(theirs, name, None))]
    assert len(shared) >= 4
    for name in ("__init__", *shared):
        inside, outside = (_parameters(getattr(each, name)) for each in (ours, theirs))
        assert inside == outside, name


def _parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.default) for each in found if not each.name.startswith("_")]

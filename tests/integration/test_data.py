"""Datastores in jobs: mounted, downloaded and uploaded data as the script sees it."""

from __future__ import annotations

import json
import os

import pytest
from tests.backends import folder_of
from tests.conftest import ended, until

from trainmaster import DataReference, Datastore
from trainmaster.job.errors import DatastoreException, UserErrorException

BACKENDS = ("local", "server")

LOOK = """
import json, os, sys
path = sys.argv[sys.argv.index('--data') + 1] if '--data' in sys.argv else None
variables = {n: v for n, v in os.environ.items() if n.startswith('AZUREML_DATAREFERENCE_')}
seen = next(iter(variables.values()), path)
print(json.dumps({
    'path': path,
    'variables': variables,
    'real': os.path.realpath(seen),
    'files': sorted(os.listdir(seen)) if os.path.isdir(seen) else open(seen).read(),
}))
"""


@pytest.fixture
def store(shared, tmp_path):
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "deep" / "b.txt").write_text("b")
    store = shared.get_default_datastore()
    store.upload(source, target_path="set", show_progress=False)
    return store


def seen_by(run):
    details = ended(run)
    assert details["status"] == "Completed", details["error"]["message"]
    return json.loads(run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"])


def test_mount_is_a_link_not_a_copy(launch, store, shared):
    reference = store.path("set", data_reference_name="training").as_mount()
    run = launch(LOOK, script_params={"--data": reference})
    seen = seen_by(run)
    assert seen["path"] == seen["variables"]["AZUREML_DATAREFERENCE_training"]
    assert seen["real"] == os.path.realpath(folder_of(shared) / "datastore" / "set")
    assert seen["files"] == ["a.txt", "deep"]
    assert run.get_details()["runDefinition"]["dataReferences"]["training"]["mode"] == "mount"


def test_bare_store_and_inputs(launch, store):
    seen = seen_by(launch(LOOK, script_params={"--data": store}, inputs=[store.as_mount()]))
    assert list(seen["variables"]) == ["AZUREML_DATAREFERENCE_workspaceblobstore"]
    assert "set" in seen["files"]


def test_inputs_alone(launch, store):
    reference = DataReference(store, "only", "set")
    seen = seen_by(launch(LOOK, inputs=[reference]))
    assert seen["path"] is None
    assert list(seen["variables"]) == ["AZUREML_DATAREFERENCE_only"]


def test_download_is_a_copy(launch, store, shared):
    run = launch(
        LOOK + "open(os.path.join(seen, 'a.txt'), 'w').write('changed')", inputs=[store.path("set").as_download()]
    )
    seen = seen_by(run)
    assert seen["files"] == ["a.txt", "deep"]
    assert not seen["real"].startswith(str(folder_of(shared) / "datastore"))
    assert (folder_of(shared) / "datastore/set/a.txt").read_text() == "a"
    assert "azureml-logs/65_job_prep-0.txt" in run.get_file_names()


def test_download_to_a_place_of_the_working_folder(launch, store):
    reference = store.path("set").as_download(path_on_compute="here/it/is")
    run = launch("import os\nprint(sorted(os.listdir('here/it/is')))", inputs=[reference])
    assert ended(run)["status"] == "Completed"
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == "['a.txt', 'deep']\n"


@pytest.mark.parametrize("mode", ["as_mount", "as_download"])
def test_path_of_a_file(launch, store, mode):
    seen = seen_by(launch(LOOK, script_params={"--data": getattr(store.path("set/deep/b.txt", "one"), mode)()}))
    assert seen["files"] == "b"
    assert seen["path"].endswith("b.txt")


def test_upload_after_the_job(launch, store, shared):
    reference = store.path("results/new", "out").as_upload()
    script = "import os, sys\nopen(os.path.join(sys.argv[2], 'r.txt'), 'w').write('result')"
    run = launch(script, script_params={"--out": reference})
    assert ended(run)["status"] == "Completed"
    assert (folder_of(shared) / "datastore/results/new/r.txt").read_text() == "result"
    assert run.get_details()["warnings"] == []


def test_upload_of_a_failed_script(launch, store, shared):
    reference = store.path("results/failed", "out").as_upload()
    script = "import os, sys\nopen(os.path.join(sys.argv[2], 'r.txt'), 'w').write('so far')\nsys.exit(1)"
    assert ended(launch(script, script_params={"--out": reference}))["status"] == "Failed"
    assert (folder_of(shared) / "datastore/results/failed/r.txt").read_text() == "so far"


def test_missing_path(launch, store):
    details = ended(launch("", inputs=[store.path("no/such/set").as_download()]))
    assert details["status"] == "Failed"
    assert "no/such/set" in details["error"]["message"]
    assert "workspaceblobstore" in details["error"]["message"]
    assert "Traceback" not in details["error"]["message"]


def test_several_references(launch, store):
    references = [store.path("set", "first").as_mount(), store.path("set/deep", "second").as_download()]
    seen = seen_by(launch(LOOK, inputs=references))
    assert set(seen["variables"]) == {"AZUREML_DATAREFERENCE_first", "AZUREML_DATAREFERENCE_second"}


def test_two_references_of_one_name(launch, store):
    references = [store.path("set", "same").as_mount(), store.path("set/deep", "same").as_mount()]
    with pytest.raises(UserErrorException, match="same"):
        launch("", inputs=references)


def test_store_by_file_url(launch, shared, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.txt").write_text("x")
    store = Datastore.register(shared, "outside", f"file://{tmp_path}/outside", overwrite=True)
    seen = seen_by(launch(LOOK, inputs=[store.as_mount()]))
    assert seen["files"] == ["x.txt"]
    assert seen["real"] == str(tmp_path / "outside")


def test_store_elsewhere_is_copied(launch, shared, tmp_path):
    """A driver of fsspec stands for any storage that is not a folder."""
    (tmp_path / "far" / "set").mkdir(parents=True)
    (tmp_path / "far" / "set" / "x.txt").write_text("x")
    store = Datastore.register(shared, "far", f"simplecache::file://{tmp_path}/far", overwrite=True)
    seen = seen_by(launch(LOOK, inputs=[store.path("set", "far").as_mount()]))
    assert seen["files"] == ["x.txt"]
    assert not seen["real"].startswith(str(tmp_path / "far"))


def test_empty_store_in_memory(launch, shared):
    store = Datastore.register(shared, "memory", "memory://nothing", overwrite=True)
    details = ended(launch("", inputs=[store.path("set").as_download()]))
    assert details["status"] == "Failed"
    assert "'memory' has nothing at" in details["error"]["message"]


@pytest.mark.parametrize("mode", ["as_mount", "as_download"])
def test_a_path_with_a_typo_fails_before_the_script_and_makes_nothing(launch, store, shared, tmp_path, mode):
    script = f"open({str(tmp_path / 'ran')!r}, 'w')"
    details = ended(launch(script, inputs=[getattr(store.path("sett", "data"), mode)()]))
    assert details["status"] == "Failed"
    assert "'workspaceblobstore' has nothing at sett" in details["error"]["message"]
    assert "It has: set" in details["error"]["message"]
    assert not (tmp_path / "ran").exists()
    assert not (folder_of(shared) / "datastore" / "sett").exists()


def test_store_that_is_gone_at_submit(launch, shared, tmp_path):
    store = Datastore.register(shared, "passing", tmp_path / "p", overwrite=True)
    store.unregister()
    with pytest.raises(DatastoreException, match="passing"):
        launch("", inputs=[store.as_mount()])


def test_cancel_while_data_comes_in(launch, shared, tmp_path):
    (tmp_path / "slow").mkdir()
    os.mkfifo(tmp_path / "slow" / "pipe.txt")
    # A driver that never ends reading: the pipe has no writer.
    store = Datastore.register(shared, "slow", f"simplecache::file://{tmp_path}/slow", overwrite=True)
    run = launch("", inputs=[store.path("pipe.txt", "slow").as_download()])
    until(lambda: run.get_detailed_status() == {"status": "Preparing", "details": "copying the data"})
    run.cancel()
    assert ended(run)["status"] == "Canceled"

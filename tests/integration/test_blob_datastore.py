"""Blob containers as datastores, against a real blob server."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from blob_server import ACCOUNT, KEY, blob_server
from tests.conftest import ended

from trainmaster import Dataset, Datastore, OutputFileDatasetConfig
from trainmaster.job.errors import AuthenticationException, DatastoreException, UserErrorException
from trainmaster.sdk.datastores import AbstractAzureStorageDatastore, AzureBlobDatastore

# The first one may have to fetch the server.
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore:Failed to fetch container properties")]

TABLE = "x,y\n1,2\n3,4\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with blob_server(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="module")
def blobs(server, shared, tmp_path_factory):
    """A container with a few files, registered by its account's key."""
    source = tmp_path_factory.mktemp("source")
    for name in ("a.txt", "deep/b.txt", "tables/1.csv", "tables/2.csv"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(TABLE if name.endswith("csv") else name)
    store = Datastore.register_azure_blob_container(
        shared, "blobs", "training", account_key=KEY, create_if_not_exists=True, **server.address
    )
    store.upload(source, target_path="set", show_progress=False)
    return store


@pytest.fixture
def home_of_the_key(blobs, shared):
    """The file with the key that opens the credentials."""
    with contextlib.closing(sqlite3.connect(shared.path / "trainmaster.db")) as database:
        (path,) = database.execute("SELECT value FROM facts WHERE key = 'secrets.key'").fetchone()
    return Path(json.loads(path))


def printed(run):
    details = ended(run)
    assert details["status"] == "Completed", details["error"]["message"]
    return run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def test_what_v1_scripts_ask_a_blob_datastore(blobs, server, shared):
    for found in (blobs, Datastore.get(shared, "blobs"), Datastore(shared, "blobs"), shared.datastores["blobs"]):
        assert isinstance(found, AzureBlobDatastore)
        assert isinstance(found, AbstractAzureStorageDatastore)
        assert (found.datastore_type, found.account_name, found.container_name) == ("AzureBlob", ACCOUNT, "training")
        assert (found.account_key, found.sas_token, found.protocol) == (KEY, None, "http")
        assert found.endpoint == f"http://{server.endpoint}/{ACCOUNT}"


def test_up_and_down(blobs, tmp_path):
    file = tmp_path / "one.txt"
    file.write_text("one")
    blobs.upload_files([file], target_path="ones", show_progress=False)
    assert blobs.download(tmp_path / "down", prefix="ones", show_progress=False) == 1
    assert (tmp_path / "down/ones/one.txt").read_text() == "one"
    file.write_text("two")
    blobs.upload_files([file], target_path="ones", show_progress=False)
    assert blobs.download(tmp_path / "down", prefix="ones", overwrite=True, show_progress=False) == 1
    assert (tmp_path / "down/ones/one.txt").read_text() == "one"
    blobs.upload_files([file], target_path="ones", overwrite=True, show_progress=False)
    assert blobs.download(tmp_path / "down", prefix="ones", overwrite=True, show_progress=False) == 1
    assert (tmp_path / "down/ones/one.txt").read_text() == "two"


def test_a_job_reads_from_the_container_and_uploads_back(blobs, launch, shared, tmp_path):
    script = """
import os, sys
mounted, file, out = sys.argv[2], sys.argv[4], sys.argv[6]
print(sorted(os.listdir(mounted)), open(file).read())
open(os.path.join(out, 'r.txt'), 'w').write(open(os.path.join(mounted, 'deep', 'b.txt')).read())
"""
    run = launch(
        script,
        script_params={
            "--mounted": blobs.path("set").as_mount(),
            "--file": blobs.path("set/a.txt").as_download(),
            "--out": blobs.path("results", "out").as_upload(),
        },
    )
    assert printed(run) == "['a.txt', 'deep', 'tables'] a.txt\n"
    assert run.get_details()["warnings"] == []
    blobs.download(tmp_path, prefix="results", show_progress=False)
    assert (tmp_path / "results/r.txt").read_text() == "deep/b.txt"
    assert_no_key(run, shared)


def assert_no_key(run, shared):
    """The key is in no file of the workspace: not in the run, not in the database."""
    with_key = []
    for folder, _, names in os.walk(shared.path):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    if KEY.encode() in file.read():
                        with_key.append(path)
    assert with_key == []
    assert KEY not in json.dumps(run.get_details())
    assert KEY not in repr(Datastore.get(shared, "blobs"))


def test_datasets_in_a_container(blobs, launch, shared, tmp_path):
    files = Dataset.File.from_files((blobs, "set/**/*.txt"))
    assert files.to_path() == ["/a.txt", "/deep/b.txt"]
    assert Dataset.File.from_files((blobs, "set/a.txt")).to_path() == ["/a.txt"]
    assert sorted(os.path.basename(path) for path in files.download(tmp_path / "d")) == ["a.txt", "b.txt"]
    with files.mount() as mounted:
        assert sorted(os.listdir(mounted.mount_point)) == ["a.txt", "deep"]
    assert not os.path.exists(mounted.mount_point)
    table = Dataset.Tabular.from_delimited_files((blobs, "set/tables/*.csv")).register(shared, "blob table")
    assert list(table.to_pandas_dataframe()["x"]) == [1, 3, 1, 3]
    script = """
import os, sys
from azureml.core import Dataset, Run
run = Run.get_context()
print(sorted(os.listdir(sys.argv[2])), list(run.input_datasets['table'].to_pandas_dataframe()['y']))
open(os.path.join(run.output_datasets['made'], 'm.txt'), 'w').write('made')
try:
    Dataset.get_by_name(run.experiment.workspace, 'blob table')
except Exception as error:
    print(error.headline)
"""
    out = OutputFileDatasetConfig("made", (blobs, "made/{run-id}")).register_on_complete("made in blobs")
    run = launch(
        script,
        script_params={"--files": files.as_named_input("files").as_mount()},
        inputs=[table.as_named_input("table"), out],
    )
    assert printed(run).splitlines() == [
        "['a.txt', 'deep'] [2, 4, 2, 4]",
        "dataset 'blob table' lies in datastore 'blobs', which a job cannot read",
    ]
    made = Dataset.get_by_name(shared, "made in blobs")
    assert made.to_path() == ["/m.txt"]
    assert made._definition.sources[0].path == f"made/{run.id}"


def test_a_token_opens_what_it_may(blobs, server, shared, tmp_path):
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    token = generate_container_sas(
        ACCOUNT,
        "training",
        account_key=KEY,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    store = Datastore.register_azure_blob_container(
        shared, "by_token", "training", sas_token=f"?{token}", **server.address
    )
    assert (store.is_sas, store.sas_token, store.account_key) == (True, token, None)
    assert store.download(tmp_path, prefix="set/deep", show_progress=False) == 1
    (tmp_path / "new.txt").write_text("new")
    with pytest.raises(DatastoreException, match="cannot be written") as error:
        store.upload_files([tmp_path / "new.txt"], show_progress=False)
    assert "Check the credentials" in str(error.value)
    assert token not in str(error.value)


def test_what_is_refused_at_registration(blobs, server, shared):
    wrong = "AAAA" + KEY[4:]
    register = Datastore.register_azure_blob_container
    with pytest.raises(AuthenticationException, match=r"'training' of account .* refuses the account_key") as error:
        register(shared, "wrong", "training", account_key=wrong, **server.address)
    assert wrong not in str(error.value)
    with pytest.raises(DatastoreException, match="there is no container 'missing'"):
        register(shared, "wrong", "missing", account_key=KEY, **server.address)
    with pytest.raises(DatastoreException, match="cannot be reached"):
        register(shared, "wrong", "training", ACCOUNT, account_key=KEY, protocol="http", endpoint="127.0.0.1:1")
    with pytest.raises(UserErrorException, match="there is a datastore 'blobs' already"):
        register(shared, "blobs", "training", account_key=KEY, **server.address)
    assert "wrong" not in shared.datastores


def test_a_wrong_key_fails_the_run_with_its_cause(blobs, server, shared, launch):
    wrong = "AAAA" + KEY[4:]
    store = Datastore.register_azure_blob_container(
        shared, "unseen", "training", account_key=wrong, skip_validation=True, **server.address
    )
    run = launch("", inputs=[store.path("set").as_download()])
    message = ended(run)["error"]["message"]
    assert "az://training/set cannot be listed" in message
    assert "Check the credentials" in message
    assert wrong not in message
    assert "Traceback" not in message


def test_without_its_key_file_the_credentials_are_missed(blobs, shared, home_of_the_key):
    key = home_of_the_key
    aside = key.with_suffix(".aside")
    key.rename(aside)
    try:
        with pytest.raises(DatastoreException, match="credentials of az://training cannot be decrypted"):
            Datastore.get(shared, "blobs").download("/nowhere", show_progress=False)
        assert shared.get_default_datastore().name == "workspaceblobstore"
    finally:
        aside.rename(key)
    assert Datastore.get(shared, "blobs").account_key == KEY


def test_without_the_driver_the_extra_is_named(server):
    program = f"""
import sys
sys.modules['adlfs'] = None
from trainmaster import Datastore
from trainmaster.job.errors import DatastoreException
try:
    Datastore.register_azure_blob_container(None, 'x', 'training', {ACCOUNT!r}, account_key={KEY!r})
except DatastoreException as error:
    print(error.headline, '|', error.hint)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "az://training needs a package that is not installed | pip install 'trainmaster[azure]'\n"

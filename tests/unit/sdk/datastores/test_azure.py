"""Blob containers: from v1's parameters to what the driver wants."""

import inspect

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datastores import AzureBlobDatastore, Datastore
from trainmaster.sdk.datastores.azure import blob_container

KEY = "a2V5" * 8


@pytest.mark.parametrize(
    ("protocol", "endpoint", "address"),
    [
        (None, None, "https://store.blob.core.windows.net"),
        ("http", None, "http://store.blob.core.windows.net"),
        (None, "core.chinacloudapi.cn", "https://store.blob.core.chinacloudapi.cn"),
        ("http", "127.0.0.1:10000", "http://127.0.0.1:10000/store"),
        ("http", "127.0.0.1:10000/store", "http://127.0.0.1:10000/store"),
        ("http", "azurite:10000", "http://azurite:10000/store"),
        ("https", "localhost", "https://localhost/store"),
    ],
)
def test_addresses(protocol, endpoint, address):
    container = blob_container("data", "store", account_key=KEY, protocol=protocol, endpoint=endpoint)
    assert container.blob_endpoint() == address
    assert f"BlobEndpoint={address}" in container.options()["connection_string"]


def test_credentials():
    assert f"AccountKey={KEY};" in blob_container("data", "store", account_key=KEY).options()["connection_string"]
    token = blob_container("data", "store", sas_token="?sv=1&sig=x%3D").options()["connection_string"]
    assert "SharedAccessSignature=sv=1&sig=x%3D;" in token
    assert blob_container("data", "store").options()["anon"] is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"account_name": "No Account"}, "cannot be an account_name"),
        ({"container_name": "a/b"}, "cannot be a container_name"),
        ({"account_key": KEY, "sas_token": "sig=x"}, "not both"),
        ({"account_key": "sv=1&sig=secret"}, "account_key is not a key"),
        ({"sas_token": "a;AccountKey=b"}, "sas_token is not a key"),
        ({"protocol": "ftp"}, "protocol must be http or https"),
        ({"endpoint": "http://127.0.0.1:10000"}, "endpoint must be the end of a host name"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UserErrorException, match=message) as error:
        blob_container(**{"container_name": "data", "account_name": "store", **given})
    assert "secret" not in str(error.value)


def test_the_store_of_every_workspace_is_one(workspace):
    assert isinstance(Datastore.get_default(workspace), AzureBlobDatastore)
    assert isinstance(Datastore(workspace), AzureBlobDatastore)


def test_classes_say_what_they_take():
    assert list(inspect.signature(Datastore).parameters) == ["workspace", "name"]
    assert list(inspect.signature(AzureBlobDatastore).parameters)[:4] == [
        "workspace", "name", "container_name", "account_name"
    ]  # fmt: skip


def test_one_that_is_not_registered(workspace):
    store = AzureBlobDatastore(workspace, "mine", "data", "store", account_key=KEY)
    assert (store.name, store.container_name, store.account_key) == ("mine", "data", KEY)
    assert KEY not in repr(store)


@pytest.mark.parametrize(
    ("kind", "count"),
    [("azure_file_share", 2), ("azure_sql_database", 2), ("azure_my_sql", 4), ("dbfs", 0), ("hdfs", 6)],
)
def test_storages_that_are_not_here_say_what_to_use(workspace, kind, count):
    with pytest.raises(NotImplementedError, match=r"Datastore\.register\("):
        getattr(Datastore, f"register_{kind}")(workspace, "x", *["value"] * count)

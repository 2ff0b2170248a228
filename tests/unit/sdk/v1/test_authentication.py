"""v1's ways to log in are taken and keep nothing that is secret."""

from __future__ import annotations

import pickle

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.v1 import authentication
from trainmaster.sdk.v1.authentication import (
    AzureCliAuthentication,
    InteractiveLoginAuthentication,
    MsiAuthentication,
    ServicePrincipalAuthentication,
    TokenAuthentication,
)

EVERY = [
    InteractiveLoginAuthentication(force=True, tenant_id="t"),
    ServicePrincipalAuthentication("t", "app", "s3cr3t-value"),
    AzureCliAuthentication(cloud="AzureCloud"),
    MsiAuthentication(identity_config={"client_id": "x"}),
    TokenAuthentication(lambda audience: "s3cr3t-value"),
]


@pytest.mark.parametrize("auth", EVERY, ids=lambda auth: type(auth).__name__)
def test_nothing_secret_is_kept(auth):
    assert isinstance(auth, authentication.AbstractAuthentication)
    assert auth.get_authentication_header() == {}
    assert "s3cr3t" not in f"{auth!r} {vars(auth)}"
    assert b"s3cr3t" not in pickle.dumps(auth)
    with pytest.raises(NotImplementedError, match="no cloud"):
        auth.get_token("https://management.azure.com/.default")


def test_wrong_values():
    with pytest.raises(UserErrorException, match="must be a string") as caught:
        ServicePrincipalAuthentication("t", "app", ["s3cr3t-value"])
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(UserErrorException, match="must be a function"):
        TokenAuthentication("s3cr3t-value")

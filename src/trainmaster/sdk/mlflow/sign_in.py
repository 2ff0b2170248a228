"""The token of `trainmaster login` for MLflow's requests, so that no variable needs to have it.

MLflow asks for it if `MLFLOW_TRACKING_AUTH` is `trainmaster`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mlflow.tracking.request_auth.abstract_request_auth_provider import RequestAuthProvider

from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.backend.remote.address import ServerAddress, parse_server
from trainmaster.sdk.backend.remote.tokens import find_token

NAME = "trainmaster"


class SignedIn(RequestAuthProvider):  # type: ignore[misc]
    """MLflow finds this class by an entry point."""

    def get_name(self) -> str:
        """What `MLFLOW_TRACKING_AUTH` has to be."""
        return NAME

    def get_auth(self) -> Any:
        """What adds the token to a request."""
        return add_token


def add_token(request: Any) -> Any:
    """The request with the token of its server. A request to another server stays as it is."""
    address = _find_server(request.url)
    if address is not None:
        request.headers["Authorization"] = f"Bearer {find_token(address)}"
    return request


def _find_server(url: str) -> ServerAddress | None:
    """The server that the user has signed in to, if the request is for it."""
    parts = urlsplit(url)
    before, found, _ = parts.path.partition("/mlflow/")
    try:
        address = parse_server(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{before if found else ''}")
        find_token(address)
    except TrainmasterError:
        return None
    return address

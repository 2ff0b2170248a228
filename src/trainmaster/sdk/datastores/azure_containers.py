"""Checks a blob container before it is registered. Loads the client that comes with the driver."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import AuthenticationException, DatastoreException
from trainmaster.sdk.datastores.azure import BlobContainer
from trainmaster.storage.remote import check_driver

# Because a user waits, a server that does not answer is asked twice, instead of for 90 seconds.
_PATIENCE: dict[str, Any] = {"retry_total": 1, "initial_backoff": 1, "increment_base": 1, "connection_timeout": 20}


def check_container(container: BlobContainer, create: bool) -> None:
    """Raises an error if the container does not exist (with `create`, creates it) or cannot be opened.

    A container without a key or token is not checked.
    """
    check_driver(container.url)
    connection = container.options().get("connection_string")
    if not connection:
        return
    from azure.core.exceptions import AzureError, ResourceNotFoundError
    from azure.storage.blob import ContainerClient

    where = f"container {container.container_name!r} of account {container.account_name!r}"
    client = ContainerClient.from_connection_string(str(connection), container.container_name, **_PATIENCE)
    try:
        with client:
            try:
                # A token for only this container allows this, too.
                next(iter(client.list_blobs(results_per_page=1)), None)
            except ResourceNotFoundError:
                if not create:
                    raise
                client.create_container()
    except ResourceNotFoundError as error:
        raise DatastoreException(
            f"there is no {where}",
            inner_exception=error,
            cause=f"Asked {container.blob_endpoint()}.",
            hint="Check the names, or give create_if_not_exists=True.",
        ) from None
    except AzureError as error:
        raise _explain(error, where, container) from None


def _explain(error: Exception, where: str, container: BlobContainer) -> DatastoreException | AuthenticationException:
    given = getattr(error, "error_code", None)
    code = str(getattr(given, "value", given) or "")
    if getattr(error, "status_code", None) in (401, 403):
        secret = "sas_token" if container.sas_token else "account_key"
        return AuthenticationException(
            f"{where} refuses the {secret}",
            inner_exception=error,
            cause=f"{container.blob_endpoint()} answered {code or 'that access is denied'}.",
            hint=f"Check the {secret}: is it of this account, and still valid?",
        )
    return DatastoreException(
        f"{where} cannot be reached",
        inner_exception=error,
        cause=f"{container.blob_endpoint()}: {type(error).__name__}{f' ({code})' if code else ''}",
        hint="Check account_name, endpoint, protocol and the network.",
    )

"""Looking at a blob container before it gets a name. Loads the driver."""

from __future__ import annotations

from trainmaster.datastores.azure import BlobContainer
from trainmaster.datastores.remote import RemoteStorage
from trainmaster.errors import DatastoreException


def check_container(container: BlobContainer, create: bool) -> None:
    """Refuse a container that is not there (or make it) or does not open."""
    storage = RemoteStorage.open(container.url, dict(container.options()))
    if storage.root_exists():
        return
    if not create:
        raise DatastoreException(
            f"account {container.account_name!r} has no container {container.container_name!r}",
            cause=f"Asked {container.blob_endpoint()}.",
            hint="Check the name, or give create_if_not_exists=True.",
        )
    storage.make_root()

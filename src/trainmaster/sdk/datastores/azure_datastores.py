"""v1's classes for storages in Azure. They are datastores like all others, with the names that scripts ask for."""

from __future__ import annotations

import time
from typing import Any

from trainmaster.job.script.store_paths import check_name
from trainmaster.sdk.datastores.azure import blob_container, part_of_connection
from trainmaster.sdk.datastores.datastore import Datastore, WorkspaceSide
from trainmaster.shared.records import DatastoreRecord


class AbstractAzureStorageDatastore(Datastore):
    """A container or share of a storage account; also the folder that stands for it in a workspace of one's own."""

    @property
    def account_key(self) -> str | None:
        """The key of the account, or None."""
        return part_of_connection(self._record.options, "AccountKey") or None

    @property
    def sas_token(self) -> str | None:
        """The token, or None."""
        return part_of_connection(self._record.options, "SharedAccessSignature") or None

    @property
    def is_sas(self) -> bool:
        """Whether it is opened with a token."""
        return self.sas_token is not None

    @property
    def protocol(self) -> str:
        """http or https."""
        return part_of_connection(self._record.options, "DefaultEndpointsProtocol") or "https"

    @property
    def endpoint(self) -> str:
        """The address of the account."""
        return part_of_connection(self._record.options, "BlobEndpoint")


class AzureBlobDatastore(AbstractAzureStorageDatastore, storage_type="AzureBlob"):
    """A container of Azure Blob Storage."""

    def __init__(
        self,
        workspace: WorkspaceSide,
        name: str,
        container_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        request_session: Any = None,
        workspace_msi_has_access: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        service_data_access_auth_identity: Any = None,
    ) -> None:
        container = blob_container(container_name, account_name, sas_token, account_key, protocol, endpoint)
        record = DatastoreRecord(
            check_name(name, "datastore"), container.url, container.options(), created_at=time.time()
        )
        self._set(workspace, record)


class AzureFileDatastore(AbstractAzureStorageDatastore, storage_type="AzureFile"):
    """A file share of Azure; here the folder by which the workspace has one."""

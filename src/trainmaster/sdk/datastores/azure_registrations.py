"""v1's methods for registering storages of Azure, with their parameters; those without a driver raise an error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.job.script.store_paths import check_name

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datastore import Datastore, WorkspaceSide

_TABLES = "Read tables with pandas.read_sql and keep them with Dataset.Tabular.register_pandas_dataframe in a store"


class AzureRegistrations:
    """The part of `Datastore` that only Azure's storages need."""

    @staticmethod
    def register(
        workspace: WorkspaceSide,
        name: str,
        url: str | os.PathLike[str],
        options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> Datastore:
        """Gives a storage a name."""
        raise NotImplementedError

    @classmethod
    def register_azure_blob_container(
        cls,
        workspace: WorkspaceSide,
        datastore_name: str,
        container_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
        blob_cache_timeout: int | None = None,
        grant_workspace_access: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
    ) -> Datastore:
        """Registers a container of Azure Blob Storage (needs the extra `azure`).

        Without a token or key the credentials of this machine are used. The container is checked first, unless
        `skip_validation`; `endpoint` and `protocol` select another server with the same protocol.
        """
        from trainmaster.sdk.datastores.azure import blob_container
        from trainmaster.sdk.datastores.azure_containers import check_container

        name = check_name(datastore_name, "datastore")
        container = blob_container(container_name, account_name, sas_token, account_key, protocol, endpoint)
        if create_if_not_exists or not skip_validation:
            check_container(container, create_if_not_exists)
        return cls.register(workspace, name, container.url, container.options(), overwrite)

    @staticmethod
    def register_azure_file_share(
        workspace: WorkspaceSide,
        datastore_name: str,
        file_share_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
    ) -> NoReturn:
        """Not here: fsspec has no driver for file shares with a key or token."""
        _not_here("azure_file_share", "Mount the share on this machine and register that folder")

    @staticmethod
    def register_azure_data_lake(
        workspace: WorkspaceSide,
        datastore_name: str,
        store_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        overwrite: bool = False,
        grant_workspace_access: bool = False,
    ) -> NoReturn:
        """Not here: that service has ended."""
        _not_here("azure_data_lake", "That service has ended; register where its data went")

    @classmethod
    def register_azure_data_lake_gen2(
        cls,
        workspace: WorkspaceSide,
        datastore_name: str,
        filesystem: str,
        account_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        grant_workspace_access: bool = False,
    ) -> Datastore:
        """Registers a filesystem of Data Lake Storage Gen2, which is used as a blob container."""
        from trainmaster.sdk.datastores.azure import blob_container

        name = check_name(datastore_name, "datastore")
        container = blob_container(filesystem, account_name, None, None, protocol, endpoint)
        principal = {"tenant_id": tenant_id, "client_id": client_id, "client_secret": client_secret}
        options = {**container.options(), **{key: value for key, value in principal.items() if value}}
        return cls.register(workspace, name, container.url, options, overwrite)

    @staticmethod
    def register_azure_sql_database(
        workspace: WorkspaceSide,
        datastore_name: str,
        server_name: str,
        database_name: str,
        tenant_id: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        resource_url: str | None = None,
        authority_url: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        username: str | None = None,
        password: str | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        grant_workspace_access: bool = False,
        **kwargs: Any,
    ) -> NoReturn:
        """Not here: a database does not store files."""
        _not_here("azure_sql_database", _TABLES)

    @staticmethod
    def register_azure_postgre_sql(
        workspace: WorkspaceSide,
        datastore_name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str,
        port_number: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        enforce_ssl: bool = True,
        **kwargs: Any,
    ) -> NoReturn:
        """Not here: a database does not store files."""
        _not_here("azure_postgre_sql", _TABLES)

    @staticmethod
    def register_azure_my_sql(
        workspace: WorkspaceSide,
        datastore_name: str,
        server_name: str,
        database_name: str,
        user_id: str,
        user_password: str,
        port_number: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        **kwargs: Any,
    ) -> NoReturn:
        """Not here: a database does not store files."""
        _not_here("azure_my_sql", _TABLES)

    @staticmethod
    def register_dbfs(workspace: WorkspaceSide, datastore_name: str) -> NoReturn:
        """Not here."""
        _not_here("dbfs", "Register an address that fsspec knows, such as dbfs://")

    @staticmethod
    def register_hdfs(
        workspace: WorkspaceSide,
        datastore_name: str,
        protocol: str,
        namenode_address: str,
        hdfs_server_certificate: str,
        kerberos_realm: str,
        kerberos_kdc_address: str,
        kerberos_principal: str,
        kerberos_keytab: str | None = None,
        kerberos_password: str | None = None,
        overwrite: bool = False,
    ) -> NoReturn:
        """Not here."""
        _not_here("hdfs", "Register the address, such as hdfs://namenode/folder")


def _not_here(kind: str, instead: str) -> NoReturn:
    raise NotImplementedError(
        f"Datastore.register_{kind} is not part of Trainmaster. {instead}: Datastore.register(workspace, name, url)."
    )

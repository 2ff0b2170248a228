"""Members of v1's Workspace that only have a meaning in Azure. They behave as in a workspace without such resources."""

from __future__ import annotations

from typing import Any, NoReturn

from trainmaster.sdk.workspace.named import Named
from trainmaster.shared import not_yet


class AzureOnly:
    """The members of a Workspace that have nothing to do."""

    def sync_keys(self, no_wait: bool = False) -> None:
        """Nothing: a workspace has no keys of other services."""

    def list_keys(self) -> dict[str, Any]:
        """Nothing: a workspace has no keys of other services."""
        return {}

    @property
    def private_endpoints(self) -> Named[Any]:
        """None: a workspace is not on a network."""
        return Named()

    @property
    def linked_services(self) -> Named[Any]:
        """None: a workspace has no services of Azure."""
        return Named()

    def add_private_endpoint(
        self,
        private_endpoint_config: Any,
        private_endpoint_auto_approval: bool = True,
        location: str | None = None,
        show_output: bool = True,
        tags: dict[str, str] | None = None,
    ) -> None:
        """Nothing: a workspace is not on a network."""

    def delete_private_endpoint_connection(self, private_endpoint_connection_name: str) -> None:
        """Nothing: a workspace has no private endpoints."""

    def set_connection(self, name: str, category: str, target: str, authType: str, value: str) -> NoReturn:
        """Not here."""
        not_yet.connections("set_connection")

    def list_connections(self, category: str | None = None, target: str | None = None) -> list[Any]:
        """None: a workspace has no connections."""
        return []

    def get_connection(self, name: str) -> NoReturn:
        """Not here."""
        not_yet.connections("get_connection")

    def delete_connection(self, name: str) -> NoReturn:
        """Not here."""
        not_yet.connections("delete_connection")

"""What v1's Workspace had that only means something in Azure: it answers as a workspace without any of it would."""

from __future__ import annotations

from typing import Any, NoReturn

from trainmaster.sdk.workspace.named import Named
from trainmaster.shared import not_yet


class AzureOnly:
    """The part of a Workspace that has nothing to do here."""

    def sync_keys(self, no_wait: bool = False) -> None:
        """Nothing: there are no keys of other services."""

    def list_keys(self) -> dict[str, Any]:
        """Nothing: there are no keys of other services."""
        return {}

    @property
    def private_endpoints(self) -> Named[Any]:
        """None: there is no network between you and the workspace."""
        return Named()

    @property
    def linked_services(self) -> Named[Any]:
        """None: there are no services of Azure here."""
        return Named()

    def add_private_endpoint(
        self,
        private_endpoint_config: Any,
        private_endpoint_auto_approval: bool = True,
        location: str | None = None,
        show_output: bool = True,
        tags: dict[str, str] | None = None,
    ) -> None:
        """Nothing: there is no network between you and the workspace."""

    def delete_private_endpoint_connection(self, private_endpoint_connection_name: str) -> None:
        """Nothing: there is none."""

    def set_connection(self, name: str, category: str, target: str, authType: str, value: str) -> NoReturn:
        """Not here."""
        not_yet.connections("set_connection")

    def list_connections(self, category: str | None = None, target: str | None = None) -> list[Any]:
        """None: there are no connections here."""
        return []

    def get_connection(self, name: str) -> NoReturn:
        """Not here."""
        not_yet.connections("get_connection")

    def delete_connection(self, name: str) -> NoReturn:
        """Not here."""
        not_yet.connections("delete_connection")

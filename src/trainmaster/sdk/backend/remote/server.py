"""What a server offers besides its workspaces' own operations: who one is there, and its workspaces."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import WorkspaceException
from trainmaster.sdk.backend.remote.address import ServerAddress
from trainmaster.sdk.backend.remote.http import HttpClient, Request, join_path
from trainmaster.sdk.backend.remote.tokens import find_token

API = "/api/v1"


class Server:
    """A server, as the user of one token."""

    def __init__(self, address: ServerAddress, token: str | None = None) -> None:
        self.address = address
        self.client = HttpClient(address, find_token(address) if token is None else token)

    def me(self) -> dict[str, Any]:
        """Who the token belongs to, and what it may do."""
        found: dict[str, Any] = self.client.call("GET", f"{API}/me")
        return found

    def workspaces(self) -> list[dict[str, Any]]:
        """The workspaces that the user may see."""
        answer = self.client.call("GET", f"{API}/workspaces")
        return list(answer["workspaces"])

    def create_workspace(self, name: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Creates a workspace and returns what is known about it."""
        return as_identity(self.client.call("POST", f"{API}/workspaces", {"name": name, "facts": facts}))

    def identity_of(self, name: str) -> dict[str, Any]:
        """What the server knows about a workspace."""
        path = workspace_path(name)
        answer = self.client.request(
            Request("GET", path, headers={"Accept": "application/json"}), accept=lambda status: status == 404
        )
        if answer.status != 404:
            return as_identity(answer.json())
        names = sorted(str(each["name"]) for each in self.workspaces())
        raise WorkspaceException(
            f"there is no workspace '{name}' on {self.address}",
            cause=f"You may use: {', '.join(names[:20])}." if names else "There is none that you may use.",
            hint="Check the name, or ask an administrator of the server.",
        )

    def choose_workspace(self) -> str:
        """The name of the workspace to use where none was named: the only one, or `default`."""
        names = [str(each["name"]) for each in self.workspaces()]
        if len(names) == 1 or "default" in names:
            return names[0] if len(names) == 1 else "default"
        raise WorkspaceException(
            f"{self.address} has {len(names) or 'no'} workspaces that you may use",
            cause=", ".join(sorted(names)[:10]),
            hint="Name one: TRAINMASTER_WORKSPACE=NAME, --workspace NAME, or 'workspace_name' in config.json."
            if names
            else "Ask an administrator of the server for one.",
        )


def as_identity(answer: dict[str, Any]) -> dict[str, Any]:
    """What is known about a workspace, in one dict as in its file `workspace.json`."""
    own = {name: answer[name] for name in ("name", "id", "created_at") if name in answer}
    return {**answer.get("facts", {}), **own}


def workspace_path(name: str) -> str:
    """Where the API of a workspace begins."""
    return f"{API}/workspaces{join_path(name)}"

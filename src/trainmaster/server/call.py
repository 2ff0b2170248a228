"""One request, as a handler sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from trainmaster.sdk.backend.backend import RunNews
from trainmaster.server.api.table import Route, Table
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.server.feeds.change_feeds import ChangeFeeds
from trainmaster.server.feeds.run_feeds import RunFeeds
from trainmaster.server.identity.service import IdentityService
from trainmaster.server.identity.sign_in import SignIn
from trainmaster.server.leaders import Leaders
from trainmaster.server.observation import Observation
from trainmaster.server.operations import adapt, conceal
from trainmaster.server.permissions import Caller
from trainmaster.server.settings import Root, Settings
from trainmaster.server.stopping import Stopping
from trainmaster.server.workspaces import ServedWorkspace, Workspaces


@dataclass(frozen=True)
class Parts:
    """What the server consists of, for handlers."""

    root: Root
    settings: Settings
    table: Table
    workspaces: Workspaces
    dispatchers: Dispatchers
    identity: IdentityService
    sign_in: SignIn
    leaders: Leaders
    observation: Observation = field(default_factory=Observation)
    stopping: Stopping = field(default_factory=Stopping)
    feeds: RunFeeds = field(default_factory=RunFeeds)
    changes: ChangeFeeds = field(default_factory=ChangeFeeds)


@dataclass(frozen=True)
class Call:
    """One request whose caller has the permission of its route."""

    parts: Parts
    request: Request
    route: Route
    caller: Caller
    request_id: str
    names: Mapping[str, str]
    """The parameters of the path, decoded once."""
    served: ServedWorkspace | None = None

    @property
    def workspace(self) -> ServedWorkspace:
        """The workspace in the path."""
        assert self.served is not None, "the route has no workspace in its path"
        return self.served

    async def ask(self, operation: str, /, **arguments: Any) -> Any:
        """The result of an operation of the workspace's dispatcher."""
        arguments = adapt(operation, arguments, self.caller, self.workspace.name)
        return conceal(operation, await self.parts.dispatchers.call(self.workspace.folder, operation, arguments))

    def watch(self, run_id: str) -> AsyncIterator[RunNews]:
        """The state of a run now and at each change, until it has ended."""
        return self.parts.dispatchers.watch(self.workspace.folder, run_id)

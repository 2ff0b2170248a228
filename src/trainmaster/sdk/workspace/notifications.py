"""Notifications of a workspace: channels by which people hear of runs."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.shared.notifications import EVENTS, WHOLE_WORKSPACE, Channel, DeliveryResult, Event
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


class Notifications:
    """The channels of a workspace, as `workspace.notifications` has them.

    ```python
    workspace.notifications.add("team", webhook="https://example.org/hook", events=["failed", "hung"])
    workspace.notifications.test("team")
    ```
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self) -> builtins.list[Channel]:
        """The channels for the runs of all users, and those for your own."""
        found = self._workspace.connection.call("notifications.list", owner=user_name())
        return [from_plain(Channel, each) for each in found]

    def add(
        self,
        name: str,
        *,
        webhook: str = "",
        email: str | Sequence[str] = "",
        command: str = "",
        events: Sequence[Event] = EVENTS,
        experiment: str = "",
        only_chosen: bool = False,
        mine: bool = False,
        key: str = "",
    ) -> Channel:
        """Add a channel, or replace the one with this name. `mine` is only told of runs that you submit.

        Give exactly one of `webhook` (a URL, signed with `key`), `email` (one or several addresses) and `command`.
        With `only_chosen`, it is only told of runs that name it.
        """
        addresses = email if isinstance(email, str) else ", ".join(email)
        given = {
            kind: text for kind, text in (("webhook", webhook), ("email", addresses), ("command", command)) if text
        }
        if len(given) != 1:
            raise UserErrorException(
                "a channel is exactly one of webhook, email and command", hint="For example email='ann@example.org'."
            )
        ((kind, address),) = given.items()
        told = {"events": [*events], "experiment": experiment, "only_chosen": only_chosen, "key": key}
        whose = {"owner": user_name()} if mine else {"created_by": user_name()}
        operation = "notifications.put_own" if mine else "notifications.put"
        call = self._workspace.connection.call
        return from_plain(Channel, call(operation, name=name, kind=kind, address=address, **told, **whose))

    def test(self, name: str) -> DeliveryResult:
        """Send one notification to a channel now, and say whether it was delivered."""
        return from_plain(DeliveryResult, self._change("test", name))

    def remove(self, name: str) -> None:
        """Remove a channel, with notifications that were not delivered yet."""
        self._change("delete", name)

    def _change(self, verb: str, name: str) -> object:
        channel = next((each for each in self.list() if each.name == name), None)
        if channel is None:
            raise UserErrorException(
                f"there is no channel '{name[:100]}'", hint="workspace.notifications.list() has the channels."
            )
        call = self._workspace.connection.call
        if channel.owner == WHOLE_WORKSPACE:
            return call(f"notifications.{verb}", name=name)
        return call(f"notifications.{verb}_own", name=name, owner=channel.owner)

"""The channels that hear of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notifications import TAG
from trainmaster.shared.spelling import guess

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def notification_tags(workspace: Workspace, channels: str | Sequence[str]) -> dict[str, str]:
    """The tags of a run that these channels hear of. Refuses names that no channel has."""
    names = [channels] if isinstance(channels, str) else list(channels)
    if not names:
        return {}
    check_channels(workspace, names)
    return {TAG: ",".join(dict.fromkeys(names))}


def check_channels(workspace: Workspace, names: Sequence[str]) -> None:
    """Refuses names that no channel has."""
    known = [str(each["name"]) for each in workspace.connection.call("notifications.list")]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UserErrorException(
            f"there is no channel '{str(unknown)[:100]}' for notifications",
            hint=f"{guess(str(unknown), known)}'trainmaster notify list' lists the channels.",
        )

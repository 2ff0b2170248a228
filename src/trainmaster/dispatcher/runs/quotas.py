"""Whether quotas let a run start, and which one it waits for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import EACH_USER, WHOLE_WORKSPACE, Quota

Resource = Literal["runs", "nodes", "gpus"]
RESOURCES: tuple[Resource, ...] = ("runs", "nodes", "gpus")

_NAMES: dict[Resource, tuple[str, str]] = {
    "runs": ("active run", "active runs"),
    "nodes": ("node", "nodes"),
    "gpus": ("GPU", "GPUs"),
}


@dataclass(frozen=True)
class Use:
    """What one run holds or wants."""

    user: str
    nodes: int
    gpus: int

    def count(self, resource: Resource) -> int:
        """How much of a resource."""
        return 1 if resource == "runs" else self.nodes if resource == "nodes" else self.gpus


@dataclass(frozen=True)
class QuotaBook:
    """The quotas of a workspace, and the disk that ended runs take."""

    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By owner."""
    disk_use: Mapping[str, int] = field(default_factory=dict)
    """User to bytes."""

    def list_for(self, user: str) -> Iterator[Quota]:
        """The quotas that a run of this user has to keep: their own, or that of each user, and the workspace's."""
        own = self.quotas.get(user) if user not in (WHOLE_WORKSPACE, EACH_USER) else None
        own = own or self.quotas.get(EACH_USER)
        if own is not None:
            yield own
        if WHOLE_WORKSPACE in self.quotas:
            yield self.quotas[WHOLE_WORKSPACE]

    def count_disk(self, quota: Quota, user: str) -> int:
        """The bytes that count for a quota."""
        return sum(self.disk_use.values()) if quota.owner == WHOLE_WORKSPACE else self.disk_use.get(user, 0)

    def count_allowed(self, wanted: Use) -> int | None:
        """How many runs like this one may be active at once; None without a limit."""
        counts = [
            limit // wanted.count(resource)
            for quota in self.list_for(wanted.user)
            for resource in RESOURCES
            if (limit := getattr(quota, resource)) is not None and wanted.count(resource)
        ]
        return min(counts, default=None)


class QuotaCheck:
    """Checks one run of the queue after the other, in order.

    A run that a quota holds back also holds back later runs that need the same of the same quota, else a large run
    would never start. It holds back no others.
    """

    def __init__(self, book: QuotaBook, held: Mapping[str, Use]) -> None:
        self._book = book
        # By user; None is the workspace.
        self._used: dict[tuple[str | None, Resource], int] = {}
        self._blocked: dict[tuple[str | None, Resource], int] = {}
        """How many runs wait for each limit."""
        for use in held.values():
            self.add(use)

    def add(self, use: Use) -> None:
        """Counts a run that holds nodes."""
        for owner in (use.user, None):
            for resource in RESOURCES:
                self._used[owner, resource] = self._used.get((owner, resource), 0) + use.count(resource)

    def find_reason(self, wanted: Use) -> str:
        """What the run waits for; empty if it may start."""
        for quota in self._book.list_for(wanted.user):
            owner = None if quota.owner == WHOLE_WORKSPACE else wanted.user
            if reason := _find_full_disk(self._book, quota, wanted.user):
                return f"waiting for {reason}"
            for resource in RESOURCES:
                limit = getattr(quota, resource)
                count = wanted.count(resource)
                if limit is None or not count:
                    continue
                used, ahead = self._used.get((owner, resource), 0), self._blocked.get((owner, resource), 0)
                if ahead or used + count > limit:
                    self._blocked[owner, resource] = ahead + 1
                    return _say(quota, wanted.user, resource, limit, used, count, ahead)
        return ""

    def holds_back_all(self, user: str) -> bool:
        """Whether every further run of this user waits for a quota."""
        owners = [None if quota.owner == WHOLE_WORKSPACE else user for quota in self._book.list_for(user)]
        needed: tuple[Resource, ...] = ("runs", "nodes")
        return any((owner, resource) in self._blocked for owner in owners for resource in needed) or bool(
            find_full_disk(self._book, user)
        )

    def fit(self, *uses: Use) -> bool:
        """Whether these further runs would keep all quotas together."""
        owners = {(use.user, quota) for use in uses for quota in self._book.list_for(use.user)}
        for user, quota in owners:
            is_shared = quota.owner == WHOLE_WORKSPACE
            counted = [use for use in uses if is_shared or use.user == user]
            for resource in RESOURCES:
                limit = getattr(quota, resource)
                used = self._used.get((None if is_shared else user, resource), 0)
                if limit is not None and used + sum(use.count(resource) for use in counted) > limit:
                    return False
        return True


def find_full_disk(book: QuotaBook, user: str) -> str:
    """The disk quota that is used up for this user, with the figures; empty if there is none."""
    return next((reason for quota in book.list_for(user) if (reason := _find_full_disk(book, quota, user))), "")


def _find_full_disk(book: QuotaBook, quota: Quota, user: str) -> str:
    used = book.count_disk(quota, user)
    if quota.disk_bytes is None or used < quota.disk_bytes:
        return ""
    return (
        f"the disk quota of {_name(quota, user)}: {_show_bytes(used)} of "
        f"{_show_bytes(quota.disk_bytes)} are used ('trainmaster runs delete' and 'runs prune' free some)"
    )


def check_quotas(book: QuotaBook, wanted: Use) -> None:
    """Refuses a run that its quotas never let start."""
    for quota in book.list_for(wanted.user):
        for resource in RESOURCES:
            limit, count = getattr(quota, resource), wanted.count(resource)
            if limit is not None and count > limit:
                raise ComputeTargetException(
                    f"the run needs {_show_count(count, resource)}, but the quota of {_name(quota, wanted.user)} "
                    f"allows {_show_count(limit, resource)}",
                    hint="Ask for fewer nodes, or have the quota changed: 'trainmaster quota list' shows it.",
                )


def _say(quota: Quota, user: str, resource: Resource, limit: int, used: int, count: int, ahead: int) -> str:
    before = f" ({ahead} {'run' if ahead == 1 else 'runs'} ahead)" if ahead else ""
    wants = "" if resource == "runs" else f", it needs {count}"
    allowed = _show_count(limit, resource)
    return f"waiting for the quota of {_name(quota, user)}: {used} of {allowed} in use{wants}{before}"


def _name(quota: Quota, user: str) -> str:
    return "the workspace" if quota.owner == WHOLE_WORKSPACE else f"user '{user}'"


def _show_count(count: int, resource: Resource) -> str:
    return f"{count} {_NAMES[resource][count != 1]}"


def _show_bytes(count: int) -> str:
    return f"{count / 2**30:.1f} GB"

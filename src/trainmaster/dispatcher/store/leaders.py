"""Which process may write to a database on a server: the one that holds its lock."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.host import host_name

LONGEST_HOST = 40
"""Longer names of machines are cut off: PostgreSQL keeps 63 bytes of what a session says about itself."""


@dataclass(frozen=True)
class Leader:
    """The process that may write to a workspace's database."""

    host: str
    """Empty if the process belongs to another user of the database."""
    pid: int
    since: float

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == host_name()[:LONGEST_HOST]

    @property
    def is_this_process(self) -> bool:
        """Whether it is this process: the server has not noticed yet that the connection is lost."""
        return self.is_here and self.pid == os.getpid()


class OtherLeaderError(WorkspaceException):
    """Another process may write to the database."""

    def __init__(self, database: str, leader: Leader | None) -> None:
        self.leader = leader
        super().__init__(
            f"another dispatcher serves the workspace in the database {database}",
            cause=f"It runs on {leader.host} (process {leader.pid})." if leader and leader.host else "",
            hint="Work on that machine, or through its server. To use this machine, stop that dispatcher.",
        )

"""What every place reports about a service that it has deployed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deployed:
    """A generation that answers requests."""

    host: str
    """Where it listens on this machine; for a cluster, the address for users as a URL without a port."""
    port: int
    warnings: tuple[str, ...] = ()

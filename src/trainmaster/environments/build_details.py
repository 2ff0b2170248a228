"""The result of `Environment.build`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BuildDetails:
    """A successful build. A build that fails raises its error from `Environment.build`."""

    digest: str
    folder: str
    status: str = "Succeeded"

    def wait_for_completion(self, show_output: bool = True) -> BuildDetails:
        """Return at once: `Environment.build` has already waited."""
        return self

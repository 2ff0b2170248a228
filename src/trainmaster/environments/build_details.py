"""What `Environment.build` gives back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BuildDetails:
    """A build that has succeeded; one that fails raises its error from `build`."""

    digest: str
    folder: str
    status: str = "Succeeded"

    def wait_for_completion(self, show_output: bool = True) -> BuildDetails:
        """Returns at once: `build` itself waits."""
        return self

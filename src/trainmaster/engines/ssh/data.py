"""The data of a run on hosts that do not see it: what is brought, under which paths, and what comes back. Pure but for
looking at the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import RunFolder
from trainmaster.storage.dataplan import DataPlan, read_plan

DATA = "data"
OUTSIDE = "outside"


@dataclass(frozen=True)
class RunData:
    """What of a run's data has to be on a host."""

    brought: Mapping[str, Path] = field(default_factory=dict)
    """Path in the run's folder there to the file or folder here."""
    back: tuple[str, ...] = ()
    """Paths in the run's folder there whose changes come back."""
    described: bool = False
    """Whether there is a description of datasets for the script."""

    def paths(self, run_there: str) -> dict[str, str]:
        """Path here to path there, for what does not lie in the run's folder."""
        outside = {name: here for name, here in self.brought.items() if name.startswith(f"{OUTSIDE}/")}
        return {str(here): f"{run_there}/{name}" for name, here in outside.items()}

    def place_here(self, name: str) -> Path | None:
        """Where a file of the run's folder there belongs here, if not at the same place of the folder here."""
        for top, here in self.brought.items():
            if not top.startswith(f"{OUTSIDE}/"):
                continue
            if name == top:
                return here
            if name.startswith(f"{top}/"):
                return here / name[len(top) + 1 :]
        return None


def freight_of(folder: RunFolder) -> RunData:
    """Of a run as its data plan says."""
    if not folder.data_plan.exists():
        return RunData()
    plan = read_plan(folder.data_plan)
    _check(plan)
    outside = {f"{OUTSIDE}/{number}/{Path(path).name}": Path(path) for number, path in enumerate(plan.outside)}
    own = {DATA: folder.path / DATA} if (folder.path / DATA).is_dir() else {}
    uploads = [Path(upload.local) for upload in plan.uploads if Path(upload.local).is_relative_to(folder.path)]
    # Folders of the run's own data are looked at file by file: only those that were changed come back.
    back = (*outside, *(str(path.relative_to(folder.path)) for path in uploads))
    return RunData({**own, **outside}, tuple(dict.fromkeys(back)), described=bool(plan.inputs or plan.outputs))


def _check(plan: DataPlan) -> None:
    """Refuses places that only mean something on this machine."""
    absolute = [link.path for link in plan.outer_links]
    if absolute:
        raise UserErrorException(
            f"data cannot be shown at {absolute[0]} on a host over SSH",
            hint="Choose a path_on_compute in the working folder: a relative one.",
        )

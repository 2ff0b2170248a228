"""The data of a run on hosts that do not share our files: what is uploaded, to which paths, and what comes back.

Pure, except that it reads the run's data plan.
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
    """The data of a run that a host needs."""

    uploads: Mapping[str, Path] = field(default_factory=dict)
    """Path in the run's folder on the host to the file or folder here."""
    back: tuple[str, ...] = ()
    """Paths in the run's folder on the host whose changes come back."""
    has_datasets: bool = False
    """Whether the script gets a description of datasets."""

    def outside_paths(self, run_there: str) -> dict[str, str]:
        """Path here to path on the host, for data outside of the run's folder."""
        outside = {name: here for name, here in self.uploads.items() if name.startswith(f"{OUTSIDE}/")}
        return {str(here): f"{run_there}/{name}" for name, here in outside.items()}

    def find_outside(self, name: str) -> Path | None:
        """The path here of a file in the run's folder on the host; None if it belongs to the run's folder here."""
        for top, here in self.uploads.items():
            if not top.startswith(f"{OUTSIDE}/"):
                continue
            if name == top:
                return here
            if name.startswith(f"{top}/"):
                return here / name[len(top) + 1 :]
        return None


def check_run_data(folder: RunFolder) -> None:
    """Raises an error for data that a host cannot have, before anything is uploaded."""
    if folder.data_plan.exists():
        _check_links(read_plan(folder.data_plan))


def read_run_data(folder: RunFolder) -> RunData:
    """The data of a run according to its data plan. Raises an error for data that a host cannot have."""
    if not folder.data_plan.exists():
        return RunData()
    plan = read_plan(folder.data_plan)
    _check_links(plan)
    outside = {f"{OUTSIDE}/{number}/{Path(path).name}": Path(path) for number, path in enumerate(plan.outside)}
    own = {DATA: folder.path / DATA} if (folder.path / DATA).is_dir() else {}
    uploads = [Path(upload.local) for upload in plan.uploads if Path(upload.local).is_relative_to(folder.path)]
    # Folders of the run's own data are compared file by file: only changed files come back.
    back = (*outside, *(str(path.relative_to(folder.path)) for path in uploads))
    return RunData({**own, **outside}, tuple(dict.fromkeys(back)), has_datasets=bool(plan.inputs or plan.outputs))


def _check_links(plan: DataPlan) -> None:
    absolute = [link.path for link in plan.outer_links]
    if absolute:
        raise UserErrorException(
            f"data cannot be shown at {absolute[0]} on a host over SSH",
            hint="Choose a relative path_on_compute, which is in the working folder.",
        )

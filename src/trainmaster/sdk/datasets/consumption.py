"""DatasetConsumptionConfig: a dataset as an input of a run."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any, NoReturn, cast

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import compute_path
from trainmaster.sdk.datasets.kinds import get_dataset
from trainmaster.sdk.datasets.names import check_variable_name
from trainmaster.sdk.datasets.not_here import not_here
from trainmaster.shared.job_spec import DatasetInput, InputMode

if TYPE_CHECKING:
    from trainmaster.sdk.datasets.abstract import AbstractDataset

PathText = str | os.PathLike[str]

_MODES = ("direct", "mount", "download")


class DatasetConsumptionConfig:
    """A dataset, the name by which a script finds it, and how: `direct` (as a dataset), `mount` or `download`.

    As an argument of a script it stands for the path of the files, or for the id of the dataset with `direct`.
    """

    def __init__(self, name: str, dataset: Any, mode: str = "direct", path_on_compute: PathText | None = None) -> None:
        self._name = check_variable_name(name, "input")
        self.dataset = _dataset(dataset)
        self.mode: InputMode = _mode(mode, self.dataset)
        self.path_on_compute = compute_path(path_on_compute) or None

    @property
    def name(self) -> str:
        """The name of the input."""
        return self._name

    def as_mount(self, path_on_compute: PathText | None = None) -> DatasetConsumptionConfig:
        """The same input; the script sees the files where they are on this machine."""
        return self._with_mode("mount", path_on_compute)

    def as_download(self, path_on_compute: PathText | None = None) -> DatasetConsumptionConfig:
        """The same input; the files are copied for the script."""
        return self._with_mode("download", path_on_compute)

    def as_hdfs(self) -> NoReturn:
        """Not here: there is no HDFS."""
        not_here("as_hdfs", "Use as_mount() or as_download().")

    def to_binding(self) -> DatasetInput:
        """The form that a job specification holds."""
        return DatasetInput(
            name=self.name,
            dataset_id=self.dataset.id,
            definition=self.dataset.definition(),
            mode=self.mode,
            path_on_compute=self.path_on_compute or "",
            dataset_name=self.dataset.name or "",
            dataset_version=self.dataset.version,
        )

    def _with_mode(self, mode: str, path_on_compute: PathText | None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(self.name, self.dataset, mode, path_on_compute or self.path_on_compute)

    def __str__(self) -> str:
        return f"DatasetConsumptionConfig:{self.name}"

    __repr__ = __str__


def make_unnamed_input(dataset: AbstractDataset) -> DatasetConsumptionConfig:
    """An input with a name that no other input has."""
    return DatasetConsumptionConfig(f"input_{uuid.uuid4().hex[:8]}", dataset)


def _dataset(given: Any) -> AbstractDataset:
    if isinstance(given, tuple) and len(given) in (2, 3):
        return cast("AbstractDataset", get_dataset(*given))
    if not hasattr(given, "as_named_input"):
        raise UserErrorException(
            f"an input needs a dataset, not {type(given).__name__}",
            hint="Give a dataset, or a tuple (workspace, name) or (workspace, name, version).",
        )
    return cast("AbstractDataset", given)


def _mode(mode: Any, dataset: AbstractDataset) -> InputMode:
    if mode == "hdfs":
        not_here("mode 'hdfs'", "Use mount or download.")
    if mode not in _MODES:
        raise UserErrorException(f"unknown mode {mode!r} of a dataset input", hint=f"Use one of {', '.join(_MODES)}.")
    if mode != "direct" and dataset.definition().kind == "tabular":
        raise UserErrorException(
            f"a dataset of tables cannot be used with mode {mode!r}",
            cause="It is rows, not files.",
            hint="Leave the mode out (as_named_input(name) alone), or make a Dataset.File of the same path.",
        )
    return cast(InputMode, mode)

"""What all parts of a copy share: the two sides, the ids of what was copied, and the report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from trainmaster.sdk.mlflow.transfer_sides import Side

ORIGIN, COMPLETE = "trainmaster.copied_from", "trainmaster.copied"
"""Tags of a copied run: the id that it had, and the time of its end there once everything is copied."""
ABSENT = "RESOURCE_DOES_NOT_EXIST"


@dataclass
class Report:
    """What was copied, and what was not."""

    experiments: int = 0
    runs: int = 0
    unchanged_runs: int = 0
    values: int = 0
    files: int = 0
    logged_models: int = 0
    versions: int = 0
    left_out: list[str] = field(default_factory=list)
    """What the target has no place for."""
    problems: list[str] = field(default_factory=list)


@dataclass
class Copy:
    """One copy from a source to a target."""

    source: Side
    target: Side
    with_files: bool = True
    report: Report = field(default_factory=Report)
    ids: dict[str, str] = field(default_factory=dict)
    """The id of a run or logged model, and that of its copy."""

    def attempt(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """What a function returns. An error is noted, and the rest goes on."""
        try:
            return function(*args)
        except (MlflowException, OSError) as error:
            self.report.problems.append(f"{what}: {str(error).splitlines()[0]}")
            return None

    def copy_folder(self, address: str, upload: Callable[[str], None]) -> None:
        """Copy the files at an address, if there are any."""
        if not self.with_files:
            return
        with use(self.source.address):
            # Not the one of MLflow's client, which remembers it by the run's id: both sides have the same.
            files = get_artifact_repository(address)
        if isinstance(files, LocalArtifactRepository):
            self._upload(files.artifact_dir, upload)
            return
        with use(self.source.address):
            if not files.list_artifacts():
                return
        with tempfile.TemporaryDirectory(prefix="trainmaster-copy-") as folder:
            with use(self.source.address):
                files.download_artifacts("", dst_path=folder)
            self._upload(folder, upload)

    def _upload(self, folder: str, upload: Callable[[str], None]) -> None:
        count = sum(len(names) for _, _, names in os.walk(folder))
        if count:
            upload(folder)
            self.report.files += count


@contextmanager
def use(address: str) -> Iterator[None]:
    """For a while, this is the tracking address of the process."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(address)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)

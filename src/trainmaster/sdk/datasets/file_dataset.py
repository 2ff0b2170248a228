"""FileDataset: files of any kind."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from trainmaster.job.script.dataset_views import FileView
from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.sdk.datasets.consumption import DatasetConsumptionConfig, make_unnamed_input
from trainmaster.sdk.datasets.not_here import not_here

PathText = str | os.PathLike[str]


class FileDataset(AbstractDataset, FileView, kind="file"):
    """Files of datastores, the web or this machine, made by `Dataset.File.from_files`.

    images = Dataset.File.from_files((datastore, 'animals/**/*.jpg'))
    est = Estimator('./project', entry_script='train.py', script_params={'--images': images.as_mount()})
    """

    def as_mount(self, path_on_compute: PathText | None = None) -> DatasetConsumptionConfig:
        """As an input of a run: the script sees the files, linked where they lie on this machine."""
        return make_unnamed_input(self).as_mount(path_on_compute)

    def as_download(self, path_on_compute: PathText | None = None) -> DatasetConsumptionConfig:
        """As an input of a run: the script gets a copy of the files."""
        return make_unnamed_input(self).as_download(path_on_compute)

    def as_hdfs(self) -> NoReturn:
        """Not here: there is no HDFS."""
        not_here("FileDataset.as_hdfs", "Use as_mount() or as_download().")

    def filter(self, expression: Any) -> NoReturn:
        """Not here."""
        not_here("FileDataset.filter", "Choose files by wildcards in the path, or with take, skip and random_split.")

    def file_metadata(self, col: str) -> NoReturn:
        """Not here."""
        not_here("FileDataset.file_metadata", "Choose files by wildcards in the path.")

    def as_cache(self, datacache_store: Any) -> NoReturn:
        """Not here."""
        not_here("FileDataset.as_cache", "Use as_mount(): files of this machine are linked, not copied.")

    def hydrate(self, datacache_store: Any, replica_count: int | None = None) -> NoReturn:
        """Not here."""
        not_here("FileDataset.hydrate", "Use as_mount(): files of this machine are linked, not copied.")

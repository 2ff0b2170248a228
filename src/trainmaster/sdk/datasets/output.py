"""OutputFileDatasetConfig: a folder that a run writes, and where its files go."""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script import dataset_readers
from trainmaster.job.script.store_paths import compute_path, store_path
from trainmaster.sdk.datasets.names import check_name, check_tags, check_variable_name
from trainmaster.sdk.datasets.not_here import not_here
from trainmaster.sdk.datasets.targets import store_and_path
from trainmaster.shared.job_spec import DatasetOutput, OutputMode

_DEFAULT_PATH = "dataset/{run-id}/{output-name}"


class OutputDatasetConfig:
    """An output of a run, with a name that becomes a variable of the job."""

    def __init__(self, name: str | None = None) -> None:
        self.name = check_variable_name(name or f"output_{uuid.uuid4().hex[:8]}", "output")
        self._register_as = ""
        self._description = ""
        self._tags: dict[str, str] = {}

    def register_on_complete(
        self, name: str, description: str | None = None, tags: Mapping[str, str] | None = None
    ) -> Self:
        """The same output, registered as a (new version of a) dataset when the run has completed."""
        registered = copy.copy(self)
        registered._register_as = check_name(name)
        registered._description = description or ""
        registered._tags = check_tags(tags)
        return registered


class OutputFileDatasetConfig(OutputDatasetConfig):
    """A folder that the script writes files to; they end up in a datastore.

    out = OutputFileDatasetConfig('prepared', destination=(datastore, 'prepared/{run-id}'))
    ScriptRunConfig('./project', 'prepare.py', arguments=['--out', out.as_upload()])
    """

    def __init__(
        self,
        name: str | None = None,
        destination: Any = None,
        source: str | os.PathLike[str] | None = None,
        partition_format: str | None = None,
    ) -> None:
        super().__init__(name)
        if partition_format:
            not_here("OutputFileDatasetConfig(partition_format=...)", "The names of the files have their folders.")
        store, path = (None, "") if destination is None else store_and_path(destination, "destination")
        self.destination = destination
        self.source = compute_path(source) or None
        self._store = store.name if store is not None else ""
        self._path = store_path(path) or _DEFAULT_PATH
        self.mode: OutputMode = "mount"
        self._overwrite = False
        self._globs: tuple[str, ...] = ()

    def as_mount(self, disable_metadata_cache: bool = False) -> OutputFileDatasetConfig:
        """The same output, written directly to the datastore if that is a folder; otherwise uploaded at the end."""
        return self._with_mode("mount", False, ())

    def as_upload(
        self, overwrite: bool = False, source_globs: str | Sequence[str] | None = None
    ) -> OutputFileDatasetConfig:
        """The same output, uploaded after the script has ended; `source_globs` chooses the files."""
        globs = [source_globs] if isinstance(source_globs, str) else list(source_globs or ())
        if not all(isinstance(each, str) and each for each in globs):
            raise UserErrorException(f"source_globs must be text or a list of texts, not {source_globs!r}")
        return self._with_mode("upload", bool(overwrite), tuple(globs))

    def as_input(self, name: str | None = None) -> NoReturn:
        """Not here: there are no pipelines."""
        not_here(
            "OutputFileDatasetConfig.as_input",
            "Wait for the run, then give Dataset.File.from_files((datastore, path)) or the registered dataset "
            "to the next one.",
        )

    def read_delimited_files(
        self,
        include_path: bool = False,
        separator: str = ",",
        header: Any = True,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
    ) -> OutputTabularDatasetConfig:
        """The same output as tables in CSV and similar files."""
        reader = dataset_readers.text_table(
            include_path, True, set_column_types, separator, header, partition_format, False, "utf8"
        )
        return OutputTabularDatasetConfig(self, reader, path_glob)

    def read_parquet_files(
        self,
        include_path: bool = False,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
    ) -> OutputTabularDatasetConfig:
        """The same output as tables in Parquet files."""
        reader = dataset_readers.parquet(include_path, set_column_types, partition_format)
        return OutputTabularDatasetConfig(self, reader, path_glob)

    def to_binding(self) -> DatasetOutput:
        """The form that a job specification holds."""
        return DatasetOutput(
            name=self.name,
            datastore=self._store,
            path=self._path,
            mode=self.mode,
            source=self.source or "",
            overwrite=self._overwrite,
            globs=self._globs,
            register_as=self._register_as,
            description=self._description,
            tags=self._tags,
        )

    def _with_mode(self, mode: OutputMode, overwrite: bool, globs: tuple[str, ...]) -> OutputFileDatasetConfig:
        changed = copy.copy(self)
        changed.mode, changed._overwrite, changed._globs = mode, overwrite, globs
        return changed

    def __str__(self) -> str:
        return f"OutputFileDatasetConfig:{self.name}"

    __repr__ = __str__


class OutputTabularDatasetConfig(OutputDatasetConfig):
    """An output of files that is registered as a dataset of tables."""

    def __init__(self, files: OutputFileDatasetConfig, reader: Mapping[str, Any], path_glob: str | None) -> None:
        super().__init__(files.name)
        if path_glob:
            not_here("path_glob", "Write only the files that belong to the table to this output.")
        self._files = files
        self._reader = dict(reader)

    def to_binding(self) -> DatasetOutput:
        """The form that a job specification holds."""
        from dataclasses import replace

        return replace(
            self._files.to_binding(),
            register_as=self._register_as,
            description=self._description,
            tags=self._tags,
            reader=self._reader,
        )

"""FileDatasetFactory and TabularDatasetFactory: `Dataset.File` and `Dataset.Tabular`."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path
from typing import Any, NoReturn

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script import dataset_readers
from trainmaster.job.script.dataset_factories import FileFactory, TabularFactory
from trainmaster.job.script.dataset_files import matcher
from trainmaster.job.script.dataset_sources import sources_of
from trainmaster.job.script.dataset_views import check_sources
from trainmaster.job.script.store_paths import join, store_path
from trainmaster.sdk.datasets.file_dataset import FileDataset
from trainmaster.sdk.datasets.kinds import dataset_from_definition
from trainmaster.sdk.datasets.not_here import not_here
from trainmaster.sdk.datasets.tabular_dataset import TabularDataset
from trainmaster.sdk.datasets.targets import place_of, source_of, store_and_path
from trainmaster.sdk.datastores import Datastore
from trainmaster.shared.job_spec import DatasetDefinition, DatasetKind, DataSource
from trainmaster.shared.serialization import to_plain


class FileDatasetFactory(FileFactory):
    """Makes datasets of files; also known as `Dataset.File`."""

    @staticmethod
    def upload_directory(
        src_dir: str | os.PathLike[str],
        target: Any,
        pattern: str | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> FileDataset:
        """Copies a folder to a datastore and makes a dataset from it; `pattern` (such as `*.jpg`) chooses files."""
        store, path = store_and_path(target, "target")
        if pattern is None:
            store.upload(src_dir, path, overwrite, show_progress)
        else:
            store.upload_files(_choose_files(Path(src_dir), pattern), src_dir, path, overwrite, show_progress)
        dataset: FileDataset = make_dataset("file", (store, path), True, {})
        return dataset

    @classmethod
    def _make(cls, kind: Any, path: Any, validate: bool, reader: dict[str, Any]) -> Any:
        return make_dataset(kind, path, validate, reader)


class TabularDatasetFactory(TabularFactory):
    """Makes datasets of tables; also known as `Dataset.Tabular`."""

    @staticmethod
    def register_pandas_dataframe(
        dataframe: Any,
        target: Any,
        name: str,
        description: str | None = None,
        tags: Any = None,
        show_progress: bool = True,
        row_group_size: int | None = None,
        make_target_path_unique: bool = True,
    ) -> TabularDataset:
        """Keeps a pandas DataFrame as a Parquet file in a datastore, and registers it (needs pyarrow)."""
        store, path = store_and_path(target, "target")
        if not hasattr(dataframe, "to_parquet"):
            raise UserErrorException(f"dataframe must be a pandas DataFrame, not {type(dataframe).__name__}")
        place = join(store_path(path), str(uuid.uuid4())) if make_target_path_unique else store_path(path)
        with tempfile.TemporaryDirectory(prefix="dataset-") as folder:
            file = Path(folder, "data.parquet")
            options = {} if row_group_size is None else {"row_group_size": row_group_size}
            _write_parquet(dataframe, file, options)
            store.upload_files([file], folder, place, True, show_progress)
        reader = dataset_readers.parquet(False, None, None)
        dataset: TabularDataset = make_dataset("tabular", (store, place), True, reader)
        return dataset.register(store.workspace, name, description, tags, create_new_version=True)

    @staticmethod
    def from_sql_query(
        query: Any, validate: bool = True, set_column_types: Any = None, query_timeout: int = 30
    ) -> NoReturn:
        """Not here: there are no databases among the datastores."""
        not_here("Dataset.Tabular.from_sql_query", "Use pandas.read_sql and register_pandas_dataframe.")

    @staticmethod
    def register_spark_dataframe(
        dataframe: Any,
        target: Any,
        name: str,
        description: str | None = None,
        tags: Any = None,
        show_progress: bool = True,
    ) -> NoReturn:
        """Not here: there is no Spark."""
        not_here("Dataset.Tabular.register_spark_dataframe", "Use dataframe.toPandas() and register_pandas_dataframe.")

    @staticmethod
    def register_dask_dataframe(
        dataframe: Any,
        target: Any,
        name: str,
        description: str | None = None,
        tags: Any = None,
        show_progress: bool = True,
    ) -> NoReturn:
        """Not here."""
        not_here("Dataset.Tabular.register_dask_dataframe", "Use dataframe.compute() and register_pandas_dataframe.")

    @classmethod
    def _make(cls, kind: Any, path: Any, validate: bool, reader: dict[str, Any]) -> Any:
        return make_dataset(kind, path, validate, reader)


def _write_parquet(dataframe: Any, file: Path, options: dict[str, Any]) -> None:
    try:
        dataframe.to_parquet(file, index=False, **options)
    except ImportError as error:
        raise UserErrorException(
            "the frame cannot be kept: a package that writes Parquet files is missing",
            inner_exception=error,
            hint="pip install pyarrow",
        ) from error


def make_dataset(kind: DatasetKind, path: Any, validate: bool, reader: dict[str, Any]) -> Any:
    """A dataset of the files at `path`; with `validate` an error if there are none."""
    stores: dict[str, Datastore] = {}

    def store_source(item: Any) -> dict[str, Any] | None:
        found = place_of(item)
        if found is None:
            return None
        stores[found[0].name] = found[0]
        plain: dict[str, Any] = to_plain(source_of(*found))
        return plain

    sources = sources_of(path, store_source)
    definition = DatasetDefinition(kind, tuple(DataSource(**source) for source in sources), reader)
    workspace = next((store.workspace for store in stores.values()), None)
    dataset = dataset_from_definition(definition, workspace, stores)
    if validate:
        check_sources(sources, dataset._open_place)
    return dataset


def _choose_files(folder: Path, pattern: str) -> list[Path]:
    matches = matcher(pattern)
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [file for file in files if matches(file.name) or matches(file.relative_to(folder).as_posix())]

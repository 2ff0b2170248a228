"""TabularDataset: rows and columns in files."""

from __future__ import annotations

from typing import Any, NoReturn

from trainmaster.job.script.dataset_views import TableView
from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.sdk.datasets.not_here import not_here

_FRAME = "Use to_pandas_dataframe()"


class TabularDataset(AbstractDataset, TableView, kind="tabular"):
    """Tables in CSV, Parquet or JSON-lines files, made by `Dataset.Tabular`.

    table = Dataset.Tabular.from_delimited_files((datastore, 'titanic/*.csv'))
    train, test = table.keep_columns(['Age', 'Survived']).random_split(0.8, seed=1)
    train.to_pandas_dataframe()
    """

    def to_dask_dataframe(
        self,
        sample_size: int = 10000,
        dtypes: Any = None,
        on_error: str = "null",
        out_of_range_datetime: str = "null",
    ) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.to_dask_dataframe", f"{_FRAME} and dask.dataframe.from_pandas.")

    def to_spark_dataframe(self) -> NoReturn:
        """Not here: there is no Spark."""
        not_here("TabularDataset.to_spark_dataframe", f"{_FRAME}.")

    def to_parquet_files(self) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.to_parquet_files", f"{_FRAME}.to_parquet(path).")

    def to_csv_files(self, separator: str = ",") -> NoReturn:
        """Not here."""
        not_here("TabularDataset.to_csv_files", f"{_FRAME}.to_csv(path).")

    def partition_by(
        self,
        partition_keys: Any,
        target: Any,
        name: str | None = None,
        show_progress: bool = True,
        partition_as_file_dataset: bool = False,
    ) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.partition_by", f"{_FRAME} and groupby.")

    def download(
        self, stream_column: str, target_path: Any = None, overwrite: bool = False, ignore_not_found: bool = True
    ) -> NoReturn:
        """Not here: columns hold no files."""
        not_here("TabularDataset.download", "Make a Dataset.File of the files and download that.")

    def mount(self, stream_column: str, mount_point: Any = None) -> NoReturn:
        """Not here: columns hold no files."""
        not_here("TabularDataset.mount", "Make a Dataset.File of the files and mount that.")

    def submit_profile_run(
        self, compute_target: Any, experiment: Any, cache_datastore_name: str | None = None
    ) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.submit_profile_run", f"{_FRAME}.describe().")

    def get_profile(self, workspace: Any = None) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.get_profile", f"{_FRAME}.describe().")

    def get_profile_runs(self, workspace: Any = None) -> NoReturn:
        """Not here."""
        not_here("TabularDataset.get_profile_runs", f"{_FRAME}.describe().")

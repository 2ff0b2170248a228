"""Dataset: makes and finds datasets."""

from __future__ import annotations

from typing import Any, NoReturn

from trainmaster.sdk.datasets.abstract import AbstractDataset
from trainmaster.sdk.datasets.factories import FileDatasetFactory, TabularDatasetFactory
from trainmaster.sdk.datasets.not_here import not_here


class Dataset(AbstractDataset):
    """Makes datasets with `Dataset.File` and `Dataset.Tabular`, and finds registered ones by name or id.

    mnist = Dataset.File.from_files((workspace.get_default_datastore(), 'mnist'))
    mnist.register(workspace, 'mnist')
    Dataset.get_by_name(workspace, 'mnist').to_path()
    """

    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    # How datasets were made until June 2019, before there were two kinds of them.

    @staticmethod
    def auto_read_files(path: Any, include_path: bool = False) -> NoReturn:
        """Not here."""
        not_here("Dataset.auto_read_files", "Use Dataset.Tabular.from_delimited_files(path).")

    @staticmethod
    def from_delimited_files(path: Any, *args: Any, **options: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_delimited_files", "Use Dataset.Tabular.from_delimited_files(path).")

    @staticmethod
    def from_parquet_files(path: Any, *args: Any, **options: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_parquet_files", "Use Dataset.Tabular.from_parquet_files(path).")

    @staticmethod
    def from_json_files(path: Any, *args: Any, **options: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_json_files", "Use Dataset.Tabular.from_json_lines_files(path).")

    @staticmethod
    def from_excel_files(path: Any, *args: Any, **options: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_excel_files", "Use pandas.read_excel and Dataset.Tabular.register_pandas_dataframe.")

    @staticmethod
    def from_binary_files(path: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_binary_files", "Use Dataset.File.from_files(path).")

    @staticmethod
    def from_sql_query(data_source: Any, query: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_sql_query", "Use pandas.read_sql and Dataset.Tabular.register_pandas_dataframe.")

    @staticmethod
    def from_pandas_dataframe(dataframe: Any, *args: Any, **options: Any) -> NoReturn:
        """Not here."""
        not_here("Dataset.from_pandas_dataframe", "Use Dataset.Tabular.register_pandas_dataframe.")

    @staticmethod
    def get(workspace: Any, name: Any = None, id: Any = None) -> NoReturn:
        """Not here."""
        not_here("Dataset.get", "Use Dataset.get_by_name(workspace, name) or Dataset.get_by_id(workspace, id).")

"""v1's factories of datasets, in jobs and outside of them; where the files may be is what differs."""

from trainmaster.job.script import dataset_readers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from trainmaster.job.script.dataset_readers import DataType

    Types = Mapping[str, DataType]
    # Those of jobs, or the SDK's.
    FileDataset = Any
    TabularDataset = Any


class FileFactory:
    """Makes datasets of files."""

    @classmethod
    def from_files(
        cls, path: "Any", validate: bool = True, partition_format: "str | None" = None, is_file: bool = False
    ) -> "FileDataset":
        """The files at `path`: datastore paths, web addresses, paths of this machine, or a list of them."""
        if partition_format:
            raise NotImplementedError(
                "from_files(partition_format=...) is not supported: dataset.to_path() has the folders of each file."
            )
        return cls._make("file", path, validate, {})

    @classmethod
    def _make(cls, kind: str, path: "Any", validate: bool, reader: "dict[str, Any]") -> "Any":
        raise NotImplementedError


class TabularFactory:
    """Makes datasets of tables."""

    @classmethod
    def from_delimited_files(
        cls,
        path: "Any",
        validate: bool = True,
        include_path: bool = False,
        infer_column_types: bool = True,
        set_column_types: "Types | None" = None,
        separator: str = ",",
        header: "Any" = True,
        partition_format: "str | None" = None,
        support_multi_line: bool = False,
        empty_as_string: bool = False,
        encoding: str = "utf8",
    ) -> "TabularDataset":
        """Tables in CSV and similar files. Quoted line breaks are always understood."""
        reader = dataset_readers.text_table(
            include_path,
            infer_column_types,
            set_column_types,
            separator,
            header,
            partition_format,
            empty_as_string,
            encoding,
        )
        return cls._make("tabular", path, validate, reader)

    @classmethod
    def from_parquet_files(
        cls,
        path: "Any",
        validate: bool = True,
        include_path: bool = False,
        set_column_types: "Types | None" = None,
        partition_format: "str | None" = None,
    ) -> "TabularDataset":
        """Tables in Parquet files; reading them needs pyarrow."""
        reader = dataset_readers.parquet(include_path, set_column_types, partition_format)
        return cls._make("tabular", path, validate, reader)

    @classmethod
    def from_json_lines_files(
        cls,
        path: "Any",
        validate: bool = True,
        include_path: bool = False,
        set_column_types: "Types | None" = None,
        partition_format: "str | None" = None,
        invalid_lines: str = "error",
        encoding: str = "utf8",
    ) -> "TabularDataset":
        """Tables in files with one JSON object per line."""
        reader = dataset_readers.json_lines(include_path, set_column_types, partition_format, invalid_lines, encoding)
        return cls._make("tabular", path, validate, reader)

    @classmethod
    def _make(cls, kind: str, path: "Any", validate: bool, reader: "dict[str, Any]") -> "Any":
        raise NotImplementedError

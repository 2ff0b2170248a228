"""Making datasets: v1's factories, as both sides have them. Where files may lie is what differs."""

from trainmaster.job.script import dataset_readers


class FileFactory:
    """Makes datasets of files."""

    @classmethod
    def from_files(cls, path, validate=True, partition_format=None, is_file=False):
        """The files at `path`: datastore paths, web addresses, paths of this machine, or a list of them."""
        if partition_format:
            raise NotImplementedError(
                "from_files(partition_format=...) is not supported: dataset.to_path() has the folders of each file."
            )
        return cls._made("file", path, validate, {})

    @classmethod
    def _made(cls, kind, path, validate, reader):
        raise NotImplementedError


class TabularFactory:
    """Makes datasets of tables."""

    @classmethod
    def from_delimited_files(
        cls,
        path,
        validate=True,
        include_path=False,
        infer_column_types=True,
        set_column_types=None,
        separator=",",
        header=True,
        partition_format=None,
        support_multi_line=False,
        empty_as_string=False,
        encoding="utf8",
    ):
        """Tables in CSV files and their like. Quoted line breaks are always understood."""
        reader = dataset_readers.delimited(
            include_path,
            infer_column_types,
            set_column_types,
            separator,
            header,
            partition_format,
            empty_as_string,
            encoding,
        )
        return cls._made("tabular", path, validate, reader)

    @classmethod
    def from_parquet_files(cls, path, validate=True, include_path=False, set_column_types=None, partition_format=None):
        """Tables in Parquet files; reading them needs pyarrow."""
        reader = dataset_readers.parquet(include_path, set_column_types, partition_format)
        return cls._made("tabular", path, validate, reader)

    @classmethod
    def from_json_lines_files(
        cls,
        path,
        validate=True,
        include_path=False,
        set_column_types=None,
        partition_format=None,
        invalid_lines="error",
        encoding="utf8",
    ):
        """Tables in files with one JSON object a line."""
        reader = dataset_readers.json_lines(include_path, set_column_types, partition_format, invalid_lines, encoding)
        return cls._made("tabular", path, validate, reader)

    @classmethod
    def _made(cls, kind, path, validate, reader):
        raise NotImplementedError

"""How the files of a dataset of tables are read: the parameters of v1's factories as plain data."""

from trainmaster.job.errors import UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    Reader = dict[str, Any]
    Types = Mapping[str, "DataType"]

_ENCODINGS = ("utf8", "iso88591", "latin1", "ascii", "utf16", "utf32", "utf8bom", "windows1252")


class DataType:
    """The type of a column, for `set_column_types`."""

    def __init__(self, kind: str, formats: "Sequence[str] | None" = None) -> None:
        self._kind = kind
        self._formats = formats

    @staticmethod
    def to_bool() -> "DataType":
        """True and False."""
        return DataType("bool")

    @staticmethod
    def to_datetime(formats: "str | Sequence[str] | None" = None) -> "DataType":
        """Times, in any of these formats of strptime."""
        return DataType("datetime", [formats] if isinstance(formats, str) else formats)

    @staticmethod
    def to_float(decimal_mark: str = ".") -> "DataType":
        """Numbers."""
        if decimal_mark != ".":
            raise NotImplementedError("DataType.to_float: only '.' can be the decimal mark here.")
        return DataType("float")

    @staticmethod
    def to_long() -> "DataType":
        """Whole numbers."""
        return DataType("long")

    @staticmethod
    def to_string() -> "DataType":
        """Text."""
        return DataType("string")

    def describe(self) -> "dict[str, Any]":
        """The type as plain data."""
        return {"type": self._kind, "formats": list(self._formats)} if self._formats else {"type": self._kind}

    def __repr__(self) -> str:
        return "DataType({})".format(self._kind)


class PromoteHeadersBehavior:
    """Which files begin with a line of column names."""

    NO_HEADERS = 0
    ONLY_FIRST_FILE_HAS_HEADERS = 1
    COMBINE_ALL_FILES_HEADERS = 2
    ALL_FILES_HAVE_SAME_HEADERS = 3


def text_table(
    include_path: bool,
    infer_column_types: bool,
    set_column_types: "Types | None",
    separator: str,
    header: "Any",
    partition_format: "str | None",
    empty_as_string: bool,
    encoding: str,
) -> "Reader":
    """The reader for CSV, TSV and similar files."""
    if not isinstance(separator, str) or not separator:
        raise UserErrorException("separator must be text of at least one character, not {!r}".format(separator))
    reader = _common("delimited", include_path, set_column_types, partition_format)
    reader.update(
        separator=separator,
        header=_has_header(header),
        infer=bool(infer_column_types),
        empty_as_string=bool(empty_as_string),
        encoding=_encoding(encoding),
    )
    return reader


def parquet(include_path: bool, set_column_types: "Types | None", partition_format: "str | None") -> "Reader":
    """The reader for Parquet."""
    return _common("parquet", include_path, set_column_types, partition_format)


def json_lines(
    include_path: bool,
    set_column_types: "Types | None",
    partition_format: "str | None",
    invalid_lines: str,
    encoding: str,
) -> "Reader":
    """The reader for one JSON object per line."""
    if invalid_lines not in ("error", "drop"):
        raise UserErrorException("invalid_lines must be 'error' or 'drop', not {!r}".format(invalid_lines))
    reader = _common("json_lines", include_path, set_column_types, partition_format)
    reader.update(invalid_lines=invalid_lines, encoding=_encoding(encoding))
    return reader


def _common(form: str, include_path: bool, types: "Types | None", partition_format: "str | None") -> "Reader":
    if partition_format is not None and not isinstance(partition_format, str):
        raise UserErrorException("partition_format must be text, not {!r}".format(partition_format))
    return {
        "format": form,
        "include_path": bool(include_path),
        "types": _types(types),
        "partition_format": partition_format or "",
    }


def _types(types: "Types | None") -> "dict[str, Any]":
    described = {}
    for column, kind in (types or {}).items():
        if not hasattr(kind, "describe"):
            raise UserErrorException(
                "set_column_types[{!r}] must be a DataType, not {!r}".format(column, kind),
                hint="Write DataType.to_float(), to_long(), to_bool(), to_string() or to_datetime(formats).",
            )
        described[column] = kind.describe()
    return described


def _has_header(header: "Any") -> bool:
    if isinstance(header, bool):
        return header
    value = getattr(header, "value", header)
    if value == PromoteHeadersBehavior.ONLY_FIRST_FILE_HAS_HEADERS:
        raise NotImplementedError(
            "PromoteHeadersBehavior.ONLY_FIRST_FILE_HAS_HEADERS is not supported: give all files the same header, "
            "or none (header=False)."
        )
    if value in (0, 2, 3):
        return bool(value != PromoteHeadersBehavior.NO_HEADERS)
    raise UserErrorException("header must be True, False or a PromoteHeadersBehavior, not {!r}".format(header))


def _encoding(encoding: str) -> str:
    if encoding not in _ENCODINGS:
        raise UserErrorException(
            "unknown encoding {!r}".format(encoding), hint="Use one of {}.".format(", ".join(_ENCODINGS))
        )
    return encoding

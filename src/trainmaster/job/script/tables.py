"""Reads the rows of a dataset of tables into a pandas DataFrame, with the pandas of the environment."""

import re

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import draw_sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    Reader = Mapping[str, Any]
    Step = Mapping[str, Any]

_ENCODINGS = {"iso88591": "iso-8859-1", "utf8bom": "utf-8-sig", "windows1252": "cp1252", "latin1": "iso-8859-1"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\Z")
# v1's codes for the parts of a time in a partition format.
_TIME_CODES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def read_frame(
    files: "Sequence[tuple[str, str]]",
    reader: "Reader",
    steps: "Sequence[Step]",
    on_error: str = "null",
    out_of_range_datetime: str = "null",
) -> "Any":
    """All rows of `files`, pairs of a name in the dataset and a local path, after `steps`."""
    pandas = _pandas()
    for name, value in (("on_error", on_error), ("out_of_range_datetime", out_of_range_datetime)):
        if value not in ("null", "fail"):
            raise UserErrorException("{} has to be 'null' or 'fail', not {!r}".format(name, value))
    limit = steps[0]["count"] if steps and steps[0]["do"] == "take" else None
    frames: "list[object]" = []
    rows = 0
    for name, path in files:
        if limit is not None and rows >= limit and frames:
            break
        frame = _read_file(pandas, path, name, reader, None if limit is None else limit - rows)
        if len(frame.columns):
            frames.append(_with_path_columns(pandas, frame, name, reader))
            rows += len(frame)
    frame = _concatenate(pandas, frames)
    if reader.get("infer", True) and reader["format"] == "delimited":
        frame = _with_dates(pandas, frame)
    frame = _set_types(pandas, frame, reader.get("types") or {}, on_error, out_of_range_datetime)
    for step in steps:
        frame = _apply_step(pandas, frame, step)
    return frame.reset_index(drop=True)


def _pandas() -> "Any":
    try:
        import pandas
    except ImportError as error:
        raise UserErrorException(
            "to_pandas_dataframe needs pandas, which is not installed here",
            inner_exception=error,
            hint="pip install pandas; for a job, add it to the packages of its environment.",
        ) from error
    return pandas


def _read_file(pandas: "Any", path: str, name: str, reader: "Reader", limit: "int | None") -> "Any":
    read = {"delimited": _read_delimited, "parquet": _read_parquet, "json_lines": _read_json_lines}[reader["format"]]
    try:
        return read(pandas, path, reader, limit)
    except UserErrorException:
        raise
    except ImportError as error:
        raise UserErrorException(
            "{} cannot be read: a package is missing".format(name),
            inner_exception=error,
            cause=str(error).strip().split("\n")[0],
            hint="pip install pyarrow; for a job, add it to the packages of its environment.",
        ) from error
    except (ValueError, OSError, LookupError) as error:
        raise UserErrorException(
            "{} cannot be read as {}".format(name, reader["format"].replace("_", " ")),
            inner_exception=error,
            cause="{}: {}".format(type(error).__name__, error),
            hint="Check the format, separator and encoding that the dataset was made with.",
        ) from error


def _read_delimited(pandas: "Any", path: str, reader: "Reader", limit: "int | None") -> "Any":
    separator = reader.get("separator", ",")
    if separator and not separator.strip("\r\n"):
        return _read_lines(pandas, path, reader, limit)
    options = {
        "sep": separator,
        "header": 0 if reader.get("header", True) else None,
        "encoding": _ENCODINGS.get(reader.get("encoding", "utf8"), reader.get("encoding", "utf8")),
        "nrows": limit,
        "skipinitialspace": False,
    }
    if len(separator) > 1:
        options["engine"] = "python"
        options["sep"] = re.escape(separator)
    if not reader.get("infer", True):
        options["dtype"] = str
    if reader.get("empty_as_string"):
        options.update(keep_default_na=False, na_values=[])
    try:
        frame = pandas.read_csv(path, **options)
    except pandas.errors.EmptyDataError:
        return pandas.DataFrame()
    if not reader.get("header", True):
        frame.columns = ["Column{}".format(number + 1) for number in range(len(frame.columns))]
    return frame


def _read_lines(pandas: "Any", path: str, reader: "Reader", limit: "int | None") -> "Any":
    """One column with a row for each line: the meaning of a line break as the separator in v1's documents."""
    import io

    encoding = _ENCODINGS.get(reader.get("encoding", "utf8"), reader.get("encoding", "utf8"))
    with io.open(path, encoding=encoding) as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    has_header = reader.get("header", True) and lines
    name = lines.pop(0) if has_header else "Column1"
    return pandas.DataFrame({name: lines[:limit]})


def _read_parquet(pandas: "Any", path: str, reader: "Reader", limit: "int | None") -> "Any":
    frame = pandas.read_parquet(path)
    return frame if limit is None else frame.head(limit)


def _read_json_lines(pandas: "Any", path: str, reader: "Reader", limit: "int | None") -> "Any":
    import io
    import json

    drop = reader.get("invalid_lines") == "drop"
    encoding = _ENCODINGS.get(reader.get("encoding", "utf8"), reader.get("encoding", "utf8"))
    rows: "list[dict[str, object]]" = []
    with io.open(path, encoding=encoding) as lines:
        for number, line in enumerate(lines, 1):
            if limit is not None and len(rows) >= limit:
                break
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("it is not an object")
                rows.append(row)
            except ValueError as error:
                if not drop:
                    raise ValueError("line {}: {}".format(number, error)) from None
    return pandas.DataFrame(rows)


def _with_path_columns(pandas: "Any", frame: "Any", name: str, reader: "Reader") -> "Any":
    columns = []
    if reader.get("include_path"):
        columns.append(("Path", "/" + name))
    if reader.get("partition_format"):
        columns.extend(partition_values(reader["partition_format"], name))
    for number, (column, value) in enumerate(columns):
        frame.insert(number, column, value)
    return frame


def partition_values(form: str, name: str) -> "list[tuple[str, Any]]":
    """The columns that a partition format finds in a path: pairs of name and value.

    >>> partition_values("{region}/{day:yyyy/MM/dd}/data.csv", "north/2020/01/02/data.csv")
    [('region', 'north'), ('day', datetime.datetime(2020, 1, 2, 0, 0))]
    """
    from datetime import datetime

    text, codes = "", {}
    for literal, column, letters in re.findall(r"([^{]*)(?:\{(\w+)(?::([^}]*))?\})?", form.lstrip("/")):
        text += re.escape(literal)
        if column and not letters:
            text += "(?P<{}>[^/]+)".format(column)
        elif column:
            pattern, code = re.escape(letters), letters
            for part, replacement in _TIME_CODES.items():
                pattern = pattern.replace(part, r"\d{%d}" % len(part))
                code = code.replace(part, replacement)
            text += "(?P<{}>{})".format(column, pattern)
            codes[column] = code
    found = re.search(r"(?:^|/)" + text + r"\Z", name)
    if found is None:
        raise UserErrorException(
            "{!r} does not match the partition_format {!r}".format(name, form),
            hint="The format describes the end of the path, from a folder to the file's name.",
        )
    return [
        (column, datetime.strptime(value, codes[column]) if column in codes else value)
        for column, value in found.groupdict().items()
    ]


def _concatenate(pandas: "Any", frames: "Sequence[Any]") -> "Any":
    if not frames:
        return pandas.DataFrame()
    return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True, sort=False)


def _with_dates(pandas: "Any", frame: "Any") -> "Any":
    """Turns columns of text into times, as v1 did, if all values look like 2020-01-31 (with or without a time)."""
    import warnings

    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind not in "OUT" or not len(values):
            continue
        given = values.dropna()
        if len(given) and all(isinstance(value, str) and _DATE.match(value) for value in given):
            try:
                with warnings.catch_warnings():
                    # pandas warns about a first value that is not a date; the error below covers that.
                    warnings.simplefilter("ignore")
                    frame[column] = pandas.to_datetime(values)
            except (ValueError, TypeError):
                # For example the 31st of February, or a mix of time zones: the column stays text.
                continue
    return frame


def _set_types(
    pandas: "Any", frame: "Any", types: "Mapping[str, Any]", on_error: str, out_of_range_datetime: str
) -> "Any":
    for column, wanted in types.items():
        if column not in frame.columns:
            raise _unknown_column(column, frame, "set_column_types")
        try:
            frame[column] = _convert(pandas, frame[column], wanted, on_error, out_of_range_datetime)
        except (ValueError, TypeError, OverflowError) as error:
            raise UserErrorException(
                "column {!r} cannot be read as {}".format(column, wanted["type"]),
                inner_exception=error,
                cause=str(error),
                hint="Use on_error='null' to get empty values instead.",
            ) from error
    return frame


def _convert(
    pandas: "Any", values: "Any", wanted: "Mapping[str, Any]", on_error: str, out_of_range_datetime: str
) -> "Any":
    kind = wanted["type"]
    errors = "coerce" if on_error == "null" else "raise"
    if kind == "string":
        return values.where(values.isna(), values.astype(str))
    if kind == "float":
        return pandas.to_numeric(values, errors=errors).astype("float64")
    if kind == "long":
        numbers = pandas.to_numeric(values, errors=errors)
        # Integers with missing values would need a nullable type, which v1 did not use either.
        return numbers if numbers.isna().any() else numbers.astype("int64")
    if kind == "bool":
        return _booleans(values, on_error)
    if kind == "datetime":
        errors = "coerce" if "null" in (on_error, out_of_range_datetime) else "raise"
        return _times(pandas, values, wanted.get("formats") or (), errors)
    raise UserErrorException("set_column_types has no type {!r}".format(kind))


def _booleans(values: "Any", on_error: str) -> "Any":
    known = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    found = [known.get(str(value).strip().lower()) for value in values]
    if on_error == "fail":
        wrong = [value for value, read in zip(values, found) if read is None and value == value]  # noqa: B905
        if wrong:
            raise ValueError("{!r} is neither true nor false".format(wrong[0]))
    return type(values)(found, index=values.index, name=values.name)


def _times(pandas: "Any", values: "Any", formats: "Sequence[str]", errors: str) -> "Any":
    if not formats:
        return pandas.to_datetime(values, errors=errors)
    result = None
    for number, form in enumerate(formats):
        last = number == len(formats) - 1
        times = pandas.to_datetime(values, format=form, errors=errors if last and result is None else "coerce")
        result = times if result is None else result.fillna(times)
    return result


def _apply_step(pandas: "Any", frame: "Any", step: "Step") -> "Any":
    what = step["do"]
    if what == "keep":
        return frame[_check_columns(step["columns"], frame, "keep_columns")]
    if what == "drop":
        return frame.drop(columns=_check_columns(step["columns"], frame, "drop_columns"))
    if what == "skip":
        return frame.iloc[step["count"] :]
    if what == "take":
        return frame.iloc[: step["count"]]
    if what == "sample":
        return frame[draw_sample(len(frame), step)]
    if what == "filter":
        return _filter(pandas, frame, step["condition"])
    if what == "timestamps":
        named = [step[key] for key in ("timestamp", "partition_timestamp") if step[key]]
        for column in _check_columns(named, frame, "with_timestamp_columns"):
            frame = frame.assign(**{column: pandas.to_datetime(frame[column])})
        return frame
    if what == "between":
        return _filter_by_time(pandas, frame, step, step["start"], step["end"])
    if what == "recent":
        from datetime import datetime, timedelta, timezone

        start = datetime.now(timezone.utc).replace(tzinfo=None) - timedelta(seconds=step["seconds"])
        return _filter_by_time(pandas, frame, step, start.isoformat(), None)
    raise UserErrorException("a dataset of tables has no step {!r}".format(what))


def _filter(pandas: "Any", frame: "Any", condition: "Mapping[str, Any]") -> "Any":
    from trainmaster.job.script.dataset_expressions import columns_of, evaluate

    _check_columns(columns_of(condition), frame, "filter")
    try:
        return frame[evaluate(pandas, frame, condition)]
    except (TypeError, ValueError) as error:
        raise UserErrorException(
            "filter compares values that cannot be compared",
            inner_exception=error,
            cause=str(error),
            hint="The types of the columns are those of to_pandas_dataframe().dtypes; set_column_types changes them.",
        ) from error


def _filter_by_time(pandas: "Any", frame: "Any", step: "Step", start: "str | None", end: "str | None") -> "Any":
    if step["column"] not in frame.columns:
        raise _unknown_column(step["column"], frame, "a filter by time")
    times = pandas.to_datetime(frame[step["column"]])
    is_kept = times.notna()
    if start is not None:
        limit = _parse_time(pandas, start, times)
        is_kept &= (times >= limit) if step["include"] else (times > limit)
    if end is not None:
        limit = _parse_time(pandas, end, times)
        is_kept &= (times <= limit) if step["include"] else (times < limit)
    return frame[is_kept]


def _parse_time(pandas: "Any", text: str, times: "Any") -> "Any":
    """The time in `text`, with a time zone if `times` have one; a time without a zone counts as UTC."""
    moment = pandas.Timestamp(text)
    zoned = getattr(times.dt, "tz", None)
    if zoned is not None:
        return moment.tz_localize("UTC") if moment.tzinfo is None else moment
    return moment if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)


def _check_columns(columns: "Sequence[str]", frame: "Any", method: str) -> "Sequence[str]":
    for column in columns:
        if column not in frame.columns:
            raise _unknown_column(column, frame, method)
    return columns


def _unknown_column(column: str, frame: "Any", method: str) -> "UserErrorException":
    return UserErrorException(
        "{} names a column that the dataset does not have: {!r}".format(method, column),
        cause="It has: {}.".format(", ".join(str(name) for name in frame.columns[:50]) or "none"),
    )

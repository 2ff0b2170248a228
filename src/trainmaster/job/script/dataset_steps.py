"""What can be chosen from a dataset before its data is read: each step makes a new dataset."""

from trainmaster.job.errors import UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Any, Mapping, Sequence, TypeVar

    from trainmaster.job.script.dataset_expressions import Expression

    Step = Mapping[str, Any]
    # The subclass whose method is called.
    AnyDataset = TypeVar("AnyDataset", bound="Steps")
    TabularDataset = TypeVar("TabularDataset", bound="TableSteps")


class Steps:
    """Choosing among the files or rows of a dataset. `_with_steps` makes the new one."""

    def skip(self: "AnyDataset", count: int) -> "AnyDataset":
        """Without the first `count`."""
        return self._with_steps({"do": "skip", "count": _count(count)})

    def take(self: "AnyDataset", count: int) -> "AnyDataset":
        """Only the first `count`."""
        return self._with_steps({"do": "take", "count": _count(count)})

    def take_sample(self: "AnyDataset", probability: float, seed: "int | None" = None) -> "AnyDataset":
        """Each with this probability; the same seed gives the same sample."""
        return self._with_steps(_sample("probability", probability, seed))

    def random_split(
        self: "AnyDataset", percentage: float, seed: "int | None" = None
    ) -> "tuple[AnyDataset, AnyDataset]":
        """Two datasets: each item is in the first with the probability `percentage`, otherwise in the second."""
        step = _sample("percentage", percentage, seed)
        return self._with_steps(step), self._with_steps(dict(step, rest=True))

    def _with_steps(self: "AnyDataset", *steps: "Step") -> "AnyDataset":
        raise NotImplementedError


class TableSteps(Steps):
    """Choosing rows and columns of a dataset of tables."""

    def keep_columns(
        self: "TabularDataset", columns: "str | Sequence[str]", validate: bool = False
    ) -> "TabularDataset":
        """Only these columns, in this order."""
        return self._validate(self._with_steps({"do": "keep", "columns": _columns(columns)}), validate)

    def drop_columns(self: "TabularDataset", columns: "str | Sequence[str]") -> "TabularDataset":
        """Without these columns."""
        return self._with_steps({"do": "drop", "columns": _columns(columns)})

    def filter(self: "TabularDataset", expression: "Expression") -> "TabularDataset":
        """Only the rows for which a condition holds, such as `dataset['age'] > 30`."""
        from trainmaster.job.script.dataset_expressions import condition

        return self._with_steps({"do": "filter", "condition": condition(expression)})

    def __getitem__(self, name: str) -> "Expression":
        """A column, to say with it which rows to keep: `dataset.filter(dataset['age'] > 30)`."""
        from trainmaster.job.script.dataset_expressions import column

        return column(name)

    # Without it, Python would iterate by asking for the columns 0, 1, 2, ...
    __iter__ = None

    def with_timestamp_columns(
        self: "TabularDataset",
        timestamp: "str | None" = None,
        partition_timestamp: "str | None" = None,
        validate: bool = False,
        **kwargs: "Any",
    ) -> "TabularDataset":
        """Names the columns that hold the time of a row, for `time_before` and the other filters by time."""
        step = {"do": "timestamps", "timestamp": timestamp, "partition_timestamp": partition_timestamp}
        for name in (timestamp, partition_timestamp):
            if name is not None and not isinstance(name, str):
                raise UserErrorException("the name of a timestamp column must be a str, not {!r}".format(name))
        return self._validate(self._with_steps(step), validate)

    @property
    def timestamp_columns(self) -> "tuple[str | None, str | None]":
        """The names of the timestamp and partition timestamp columns, each None if it is not set."""
        named = [step for step in self._steps() if step["do"] == "timestamps"]
        return (named[-1]["timestamp"], named[-1]["partition_timestamp"]) if named else (None, None)

    def time_before(
        self: "TabularDataset", end_time: "datetime", include_boundary: bool = True, validate: bool = True
    ) -> "TabularDataset":
        """The rows until `end_time`."""
        return self._filter_by_time(None, end_time, include_boundary)

    def time_after(
        self: "TabularDataset", start_time: "datetime", include_boundary: bool = True, validate: bool = True
    ) -> "TabularDataset":
        """The rows from `start_time` on."""
        return self._filter_by_time(start_time, None, include_boundary)

    def time_between(
        self: "TabularDataset",
        start_time: "datetime",
        end_time: "datetime",
        include_boundary: bool = True,
        validate: bool = True,
    ) -> "TabularDataset":
        """The rows from `start_time` to `end_time`."""
        return self._filter_by_time(start_time, end_time, include_boundary)

    def time_recent(
        self: "TabularDataset", time_delta: "timedelta", include_boundary: bool = True, validate: bool = True
    ) -> "TabularDataset":
        """The rows of the last `time_delta` (a timedelta), counted from when they are read."""
        column = self._time_column()
        try:
            seconds = time_delta.total_seconds()
        except AttributeError:
            raise UserErrorException("time_delta must be a timedelta, not {!r}".format(time_delta)) from None
        return self._with_steps({"do": "recent", "column": column, "seconds": seconds, "include": include_boundary})

    def _filter_by_time(
        self: "TabularDataset", start: "datetime | None", end: "datetime | None", include: bool
    ) -> "TabularDataset":
        step = {"do": "between", "column": self._time_column(), "start": _time(start), "end": _time(end)}
        return self._with_steps(dict(step, include=bool(include)))

    def _time_column(self) -> str:
        timestamp, partition = self.timestamp_columns
        column = timestamp or partition
        if not column:
            raise UserErrorException(
                "the dataset does not say which column holds the time",
                hint="Call with_timestamp_columns(timestamp='name of the column') first.",
            )
        return column

    def _validate(self, dataset: "TabularDataset", is_wanted: bool) -> "TabularDataset":
        if is_wanted:
            dataset.take(1).to_pandas_dataframe()
        return dataset

    def to_pandas_dataframe(self) -> "Any":
        """All rows as a pandas DataFrame."""
        raise NotImplementedError

    def _steps(self) -> "Sequence[Step]":
        raise NotImplementedError


def _count(count: "Any") -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise UserErrorException("count must be a whole number, 0 or more, not {!r}".format(count))
    return count


def _sample(name: str, share: "Any", seed: "int | None") -> "dict[str, Any]":
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise UserErrorException("{} must be a number from 0 to 1, not {!r}".format(name, share))
    if seed is None:
        # Chosen now, so that both halves of a split, and every later read, use the same sample.
        import random

        seed = random.SystemRandom().randrange(2**31)
    return {"do": "sample", "probability": float(share), "seed": seed}


def _columns(columns: "Any") -> "list[str]":
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise UserErrorException("columns must be a name or a list of names, not {!r}".format(columns))
    return list(names)


def _time(moment: "Any") -> "str | None":
    if moment is None:
        return None
    if not hasattr(moment, "isoformat"):
        raise UserErrorException("a time must be a datetime, not {!r}".format(moment))
    return str(moment.isoformat())

"""What can be asked of a dataset before any of its data is read: each step gives a new dataset."""

from trainmaster.job.errors import UserErrorException


class Steps:
    """Choosing among the files or rows of a dataset. `_with_steps` makes the new one."""

    def skip(self, count):
        """Without the first `count`."""
        return self._with_steps({"do": "skip", "count": _count(count)})

    def take(self, count):
        """Only the first `count`."""
        return self._with_steps({"do": "take", "count": _count(count)})

    def take_sample(self, probability, seed=None):
        """Each with this probability; the same seed gives the same."""
        return self._with_steps(_sample("probability", probability, seed))

    def random_split(self, percentage, seed=None):
        """Two datasets: each item is in the first with the probability `percentage`, else in the second."""
        step = _sample("percentage", percentage, seed)
        return self._with_steps(step), self._with_steps(dict(step, rest=True))

    def _with_steps(self, *steps):
        raise NotImplementedError


class TableSteps(Steps):
    """Choosing rows and columns of a dataset of tables."""

    def keep_columns(self, columns, validate=False):
        """Only these columns, in this order."""
        return self._validated(self._with_steps({"do": "keep", "columns": _columns(columns)}), validate)

    def drop_columns(self, columns):
        """Without these columns."""
        return self._with_steps({"do": "drop", "columns": _columns(columns)})

    def filter(self, expression):
        """Only the rows for which a condition holds, such as `dataset['age'] > 30`."""
        from trainmaster.job.script.dataset_expressions import condition

        return self._with_steps({"do": "filter", "condition": condition(expression)})

    def __getitem__(self, name):
        """A column, to say with it which rows to keep: `dataset.filter(dataset['age'] > 30)`."""
        from trainmaster.job.script.dataset_expressions import column

        return column(name)

    # Having columns by name is no reason to be iterated over by number.
    __iter__ = None

    def with_timestamp_columns(self, timestamp=None, partition_timestamp=None, validate=False, **kwargs):
        """Says which columns hold the time of a row, for `time_before` and its like."""
        step = {"do": "timestamps", "timestamp": timestamp, "partition_timestamp": partition_timestamp}
        for name in (timestamp, partition_timestamp):
            if name is not None and not isinstance(name, str):
                raise UserErrorException("a timestamp column is named by a str, not {!r}".format(name))
        return self._validated(self._with_steps(step), validate)

    @property
    def timestamp_columns(self):
        """The names of the timestamp and partition timestamp columns; None where there is none."""
        named = [step for step in self._steps() if step["do"] == "timestamps"]
        return (named[-1]["timestamp"], named[-1]["partition_timestamp"]) if named else (None, None)

    def time_before(self, end_time, include_boundary=True, validate=True):
        """The rows until `end_time`."""
        return self._in_time(None, end_time, include_boundary)

    def time_after(self, start_time, include_boundary=True, validate=True):
        """The rows from `start_time` on."""
        return self._in_time(start_time, None, include_boundary)

    def time_between(self, start_time, end_time, include_boundary=True, validate=True):
        """The rows from `start_time` to `end_time`."""
        return self._in_time(start_time, end_time, include_boundary)

    def time_recent(self, time_delta, include_boundary=True, validate=True):
        """The rows of the last `time_delta` (a timedelta), counted from when they are read."""
        column = self._time_column()
        try:
            seconds = time_delta.total_seconds()
        except AttributeError:
            raise UserErrorException("time_delta has to be a timedelta, not {!r}".format(time_delta)) from None
        return self._with_steps({"do": "recent", "column": column, "seconds": seconds, "include": include_boundary})

    def _in_time(self, start, end, include):
        step = {"do": "between", "column": self._time_column(), "start": _time(start), "end": _time(end)}
        return self._with_steps(dict(step, include=bool(include)))

    def _time_column(self):
        timestamp, partition = self.timestamp_columns
        if not (timestamp or partition):
            raise UserErrorException(
                "the dataset does not say which column holds the time",
                hint="Call with_timestamp_columns(timestamp='name of the column') first.",
            )
        return timestamp or partition

    def _validated(self, dataset, validate):
        if validate:
            dataset.take(1).to_pandas_dataframe()
        return dataset

    def _steps(self):
        raise NotImplementedError


def _count(count):
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise UserErrorException("count has to be a whole number from 0 on, not {!r}".format(count))
    return count


def _sample(name, share, seed):
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise UserErrorException("{} has to be a number from 0 to 1, not {!r}".format(name, share))
    if seed is None:
        # Chosen now, so that both halves of a split, and every later read, draw the same.
        import random

        seed = random.SystemRandom().randrange(2**31)
    return {"do": "sample", "probability": float(share), "seed": seed}


def _columns(columns):
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise UserErrorException("columns have to be a name or a list of names, not {!r}".format(columns))
    return list(names)


def _time(moment):
    if moment is None:
        return None
    if not hasattr(moment, "isoformat"):
        raise UserErrorException("a time has to be a datetime, not {!r}".format(moment))
    return moment.isoformat()

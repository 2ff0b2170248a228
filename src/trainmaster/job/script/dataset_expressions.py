"""Which rows to keep, said before any is read: `dataset['age'] > 30` and its like become plain data."""

from trainmaster.job.errors import UserErrorException

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Expression:
    """A column of a dataset, or a condition made of columns and values with ==, <, & and their like."""

    def __init__(self, plain):
        self._plain = plain

    def __eq__(self, other):
        return self._with("==", other)

    def __ne__(self, other):
        return self._with("!=", other)

    def __lt__(self, other):
        return self._with("<", other)

    def __le__(self, other):
        return self._with("<=", other)

    def __gt__(self, other):
        return self._with(">", other)

    def __ge__(self, other):
        return self._with(">=", other)

    def __and__(self, other):
        return self._with("&", other)

    def __or__(self, other):
        return self._with("|", other)

    def __invert__(self):
        return Expression({"op": "~", "of": [self._plain]})

    # What compares to another expression cannot be a key.
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self):
        raise UserErrorException(
            "a condition on the rows of a dataset has no value of its own",
            hint="Put & for 'and', | for 'or', ~ for 'not', and each comparison into brackets.",
        )

    def __repr__(self):
        return "Expression({!r})".format(self._plain)

    def _with(self, operator, other):
        return Expression({"op": operator, "of": [self._plain, plain_of(other)]})


def column(name):
    """The column of that name, to compare with."""
    if not isinstance(name, str):
        raise UserErrorException("a column is named by a str, not {!r}".format(name))
    return Expression({"column": name})


def condition(expression):
    """The plain form of a condition; refuses what is none."""
    if not isinstance(expression, Expression) or "op" not in expression._plain:
        raise UserErrorException(
            "filter takes a condition, not {!r:.80}".format(expression),
            hint="Write dataset.filter(dataset['age'] > 30), for instance.",
        )
    return expression._plain


def plain_of(value):
    """A value of a comparison, as it is kept: a scalar, or the text of a time."""
    if isinstance(value, Expression):
        return value._plain
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if hasattr(value, "isoformat"):
        return {"time": value.isoformat()}
    if hasattr(value, "item"):
        return plain_of(value.item())
    raise UserErrorException("rows cannot be compared with {!r:.80}".format(value))


def columns_of(plain):
    """The names of the columns in a condition.

    >>> columns_of({"op": ">", "of": [{"column": "age"}, {"value": 30}]})
    ['age']
    """
    if "column" in plain:
        return [plain["column"]]
    return [name for part in plain.get("of", ()) for name in columns_of(part)]


def kept(pandas, frame, plain):
    """Of each row of a pandas DataFrame, whether the condition holds."""
    import operator

    if "column" in plain:
        return frame[plain["column"]]
    if "time" in plain:
        return pandas.Timestamp(plain["time"])
    if "op" not in plain:
        return plain["value"]
    parts = [kept(pandas, frame, part) for part in plain["of"]]
    if plain["op"] == "~":
        return ~parts[0]
    if plain["op"] in ("==", "!=") and parts[1] is None:
        return parts[0].isna() if plain["op"] == "==" else parts[0].notna()
    functions = dict(zip(_COMPARISONS, (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)))  # noqa: B905
    functions.update({"&": operator.and_, "|": operator.or_})
    return functions[plain["op"]](*parts)

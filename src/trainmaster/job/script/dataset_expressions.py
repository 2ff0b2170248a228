"""Conditions on rows, written before any row is read: `dataset['age'] > 30` becomes plain data."""

from trainmaster.job.errors import UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    Plain = Mapping[str, Any]

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Expression:
    """A column of a dataset, or a condition made of columns and values with operators such as ==, < and &."""

    def __init__(self, plain: "Plain") -> None:
        self._plain = plain

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._combine("==", other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return self._combine("!=", other)

    def __lt__(self, other: object) -> "Expression":
        return self._combine("<", other)

    def __le__(self, other: object) -> "Expression":
        return self._combine("<=", other)

    def __gt__(self, other: object) -> "Expression":
        return self._combine(">", other)

    def __ge__(self, other: object) -> "Expression":
        return self._combine(">=", other)

    def __and__(self, other: object) -> "Expression":
        return self._combine("&", other)

    def __or__(self, other: object) -> "Expression":
        return self._combine("|", other)

    def __invert__(self) -> "Expression":
        return Expression({"op": "~", "of": [self._plain]})

    # == makes an expression, so it cannot be used to find a key.
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise UserErrorException(
            "a condition on the rows of a dataset is neither true nor false by itself",
            hint="Write & for 'and', | for 'or', ~ for 'not', and put each comparison in parentheses.",
        )

    def __repr__(self) -> str:
        return "Expression({!r})".format(self._plain)

    def _combine(self, operator: str, other: object) -> "Expression":
        return Expression({"op": operator, "of": [self._plain, plain_value(other)]})


def column(name: str) -> Expression:
    """The column of that name, to compare with."""
    if not isinstance(name, str):
        raise UserErrorException("the name of a column must be a str, not {!r}".format(name))
    return Expression({"column": name})


def condition(expression: "Any") -> "Plain":
    """The plain form of a condition; raises an error for anything else."""
    if not isinstance(expression, Expression) or "op" not in expression._plain:
        raise UserErrorException(
            "filter takes a condition, not {!r:.80}".format(expression),
            hint="For example: dataset.filter(dataset['age'] > 30).",
        )
    return expression._plain


def plain_value(value: "Any") -> "Plain":
    """A value of a comparison as plain data: a scalar, or the text of a time."""
    if isinstance(value, Expression):
        return value._plain
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if hasattr(value, "isoformat"):
        return {"time": value.isoformat()}
    if hasattr(value, "item"):
        return plain_value(value.item())
    raise UserErrorException("rows cannot be compared with {!r:.80}".format(value))


def columns_of(plain: "Plain") -> "list[str]":
    """The names of the columns in a condition.

    >>> columns_of({"op": ">", "of": [{"column": "age"}, {"value": 30}]})
    ['age']
    """
    if "column" in plain:
        return [plain["column"]]
    return [name for part in plain.get("of", ()) for name in columns_of(part)]


def evaluate(pandas: "Any", frame: "Any", plain: "Plain") -> "Any":
    """For each row of a pandas DataFrame, whether the condition holds."""
    import operator

    if "column" in plain:
        return frame[plain["column"]]
    if "time" in plain:
        return pandas.Timestamp(plain["time"])
    if "op" not in plain:
        return plain["value"]
    parts = [evaluate(pandas, frame, part) for part in plain["of"]]
    if plain["op"] == "~":
        return ~parts[0]
    if plain["op"] in ("==", "!=") and parts[1] is None:
        return parts[0].isna() if plain["op"] == "==" else parts[0].notna()
    functions = dict(zip(_COMPARISONS, (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)))  # noqa: B905
    functions.update({"&": operator.and_, "|": operator.or_})
    return functions[plain["op"]](*parts)

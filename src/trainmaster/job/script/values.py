"""What may be logged: v1's rules for names, scalars, lists, rows and tables."""

from trainmaster.job.errors import UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Union

    Scalar = Union[None, bool, int, float, str]

LONGEST_NAME = 255
# Python reads integers of at most 4,300 digits; a longer one could be written but not read.
_LARGEST_INT_BITS = 14000
_LONGEST_REPR = 10000


def metric_name(name: object) -> str:
    """`name`, if a metric may have it."""
    if not isinstance(name, str):
        raise UserErrorException("a metric's name has to be a str, not {}".format(type(name).__name__))
    name = str.__str__(name)
    if not name.strip():
        raise UserErrorException("a metric's name cannot be empty")
    if len(name) > LONGEST_NAME:
        raise UserErrorException(
            "the metric's name {!r}... has {} characters; {} are allowed".format(name[:40], len(name), LONGEST_NAME)
        )
    if not is_text(name):
        raise UserErrorException("the metric's name {!r} has characters that cannot be stored".format(name))
    return name


def is_text(text: str) -> bool:
    """Whether every store and file system can keep `text`: no control characters, no lone surrogates."""
    return not any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text)


def scalar(name: str, value: "Any") -> "Scalar":
    """`value` as None, bool, int, float or str, for `log`. As in v1 a list, range or generator is an error; any other
    type, such as an array, is kept as its text.
    """
    plain, is_plain = _plain(value)
    if is_plain:
        return plain
    if isinstance(value, (list, range)) or (hasattr(value, "__next__") and not isinstance(value, type)):
        raise UserErrorException(
            "log({!r}, ...) takes one value, not a {}".format(name, type(value).__name__),
            hint="Use run.log_list({!r}, values) for several values at once.".format(name),
        )
    return _as_repr(name, value)


def cell(name: str, value: "Any") -> "Scalar":
    """`value` as a scalar, for the items of lists, rows and tables, which cannot be lists themselves."""
    plain, is_plain = _plain(value)
    if is_plain:
        return plain
    if _holds_several(value):
        raise UserErrorException(
            "a value within {!r} has to be a scalar, not a {}".format(name, type(value).__name__),
            hint="Use run.log_table() for several rows at once, and a flat list for log_list().",
        )
    return _as_repr(name, value)


def scalars(name: str, values: "Any") -> "list[Scalar]":
    """`values` as a list of scalars, for `log_list`: any iterable except text and mappings."""
    if isinstance(values, (str, bytes, dict)) or not _is_iterable(values):
        raise UserErrorException(
            "log_list({!r}, ...) takes a list of values, not a {}".format(name, type(values).__name__),
            hint="Use run.log({!r}, value) for one value.".format(name),
        )
    return [cell(name, value) for value in values]


def row(name: str, columns: "Mapping[str, Any]") -> "dict[str, Scalar]":
    """The columns of one row, for `log_row`."""
    if not columns:
        raise UserErrorException(
            "log_row({!r}) has no columns".format(name),
            hint="Give them by name: log_row({!r}, x=1, y=2).".format(name),
        )
    return {_column_name(name, key): cell(name, value) for key, value in columns.items()}


def table(name: str, columns: "Any") -> "dict[str, list[Scalar]]":
    """Column name to list of scalars, all of the same length, for `log_table`. A scalar is a column with one row."""
    if not (hasattr(columns, "keys") and hasattr(columns, "__getitem__")):
        raise UserErrorException(
            "log_table({!r}, ...) takes a dict of columns, not a {}".format(name, type(columns).__name__)
        )
    plain = {_column_name(name, key): _column(name, columns[key]) for key in columns.keys()}
    if not plain:
        raise UserErrorException("log_table({!r}) has no columns".format(name))
    lengths = {key: len(values) for key, values in plain.items()}
    if len(set(lengths.values())) > 1:
        raise UserErrorException(
            "the columns of log_table({!r}) differ in length".format(name),
            cause=", ".join("{}: {}".format(key, lengths[key]) for key in lengths),
        )
    return plain


def step_number(name: str, step: "Any") -> "int | None":
    """`step` as an int (or None)."""
    if step is None or type(step) is int:
        return step
    plain, is_plain = _plain(step)
    if is_plain and isinstance(plain, (int, float)) and plain == plain and abs(plain) < 2**63 and plain == int(plain):
        return int(plain)
    raise UserErrorException("the step of {!r} has to be an integer, not {!r}".format(name, step))


def _column(name: str, values: "Any") -> "list[Scalar]":
    if isinstance(values, (str, bytes, dict)) or not _is_iterable(values):
        return [cell(name, values)]
    return scalars(name, values)


def _column_name(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise UserErrorException("the name of a column of {!r} has to be a str, not {!r}".format(name, key))
    return metric_name(key)


def _plain(value: "Any") -> "tuple[Scalar, bool]":
    """(value as a plain scalar, True), or (None, False) if it is not a scalar."""
    if value is None or isinstance(value, bool):
        return value, True
    # Subclasses become the plain type: the repr of a numpy.float64, for example, is not a number.
    if isinstance(value, int):
        return _check_size(int(value)), True
    if isinstance(value, float):
        return float(value), True
    if isinstance(value, str):
        return _storable(str.__str__(value)), True
    return _unwrap(value)


def _unwrap(value: "Any") -> "tuple[Scalar, bool]":
    """The scalar in a numpy or torch scalar, or in an array of one element: the result of its item()."""
    if isinstance(value, type):
        return None, False
    try:
        # TensorFlow's eager tensors have only numpy().
        inner = value.item() if hasattr(value, "item") else value.numpy().item()
    except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
        return None, False
    if inner is None or isinstance(inner, (bool, int, float, str)):
        return _plain(inner)
    # numpy.longdouble returns itself; as a float it is at least a number.
    if type(inner) is type(value) and hasattr(inner, "__float__") and not isinstance(inner, complex):
        try:
            return float(inner), True
        except (TypeError, ValueError):
            return None, False
    return None, False


def _holds_several(value: "Any") -> bool:
    if isinstance(value, (str, bytes, bytearray, dict)) or isinstance(value, type):
        return False
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not shape:
        # An array without dimensions is one value, although its type has __iter__.
        return False
    return _is_iterable(value)


def _is_iterable(value: "Any") -> bool:
    return hasattr(value, "__iter__") or hasattr(value, "__next__")


def _check_size(number: int) -> int:
    if number.bit_length() > _LARGEST_INT_BITS:
        raise UserErrorException(
            "the integer has {} bits; at most {} can be kept".format(number.bit_length(), _LARGEST_INT_BITS),
            hint="Log its logarithm, or its text in a file.",
        )
    return number


def _storable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Lone surrogates (from undecodable file names) cannot be stored anywhere.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def _as_repr(name: str, value: "Any") -> str:
    import sys
    import warnings

    try:
        text = repr(value)
    except Exception as error:
        raise UserErrorException(
            "the value of {!r} is a {} that cannot be shown as text".format(name, type(value).__name__), error
        ) from error
    # The warning points at the script's own line, however deep in this package the value was checked.
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("trainmaster."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(
        "{!r} is of type {}, which is not a type of metric: its text is kept".format(name, type(value).__name__),
        stacklevel=depth,
    )
    return _storable(text[:_LONGEST_REPR])

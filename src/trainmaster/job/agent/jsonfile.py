"""JSON files, read and written as a whole.

Uses only the C half of `json` where it exists: the module itself imports `re` and `enum`, which together take as long
as starting the interpreter.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    AnyPath = Union[str, bytes, os.PathLike[str]]

try:
    from _json import encode_basestring_ascii as _quote_text
    from _json import make_scanner as _make_scanner
except ImportError:  # not CPython
    _make_scanner = None  # type: ignore[misc, assignment]


class _Options(object):
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(text: str) -> "Any":
    """The data in `text`. Raises ValueError if it is not JSON."""
    if _make_scanner is None:
        import json

        return json.loads(text)
    text = text.strip(" \t\r\n")
    try:
        data, end = _make_scanner(_Options)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError):
        # Some versions of the C half cannot describe an error unless the other half is loaded.
        import json

        return json.loads(text)
    if end != len(text):
        raise ValueError("more than one JSON value: the second begins at character {}".format(end))
    return data


def dumps(data: object) -> str:
    """`data` (dicts, lists, texts, numbers, booleans, None) as JSON, in ASCII."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, (int, float)):
        return repr(data)
    if isinstance(data, str):
        return _quote(data)
    if isinstance(data, dict):
        return "{" + ", ".join(_quote(key) + ": " + dumps(value) for key, value in data.items()) + "}"
    return "[" + ", ".join(dumps(item) for item in data) + "]"  # type: ignore[attr-defined]


def _quote(text: str) -> str:
    if _make_scanner is None:
        import json

        return json.dumps(text)
    return _quote_text(text)


def read(path: "AnyPath") -> "Any":
    """The data in the file `path`. Raises OSError or ValueError (UnicodeDecodeError is a ValueError)."""
    with open(path, "rb") as file:
        return loads(file.read().decode("utf-8"))


def read_if_valid(path: "AnyPath") -> "Any":
    """The data in the file `path`, or None if it cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError):
        return None


def write(path: str, data: object) -> None:
    """Writes `data` to the file `path`: readers see the old file or the complete new one."""
    temporary = path + ".part"
    write_new(temporary, dumps(data))
    os.rename(temporary, path)


def write_new(path: str, text: str) -> None:
    """Writes `text` to a file, over what a killed process may have left there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        rest = text.encode("ascii")
        while rest:
            rest = rest[os.write(handle, rest) :]
    finally:
        os.close(handle)

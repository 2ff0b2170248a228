"""JSON files, read and written whole.

Only the C half of `json` is used where there is one: the module itself brings in `re` and `enum`, which
together cost as much time as starting the interpreter does.
"""

import os

try:
    from _json import encode_basestring_ascii as _quote
    from _json import make_scanner as _make_scanner
except ImportError:  # another Python than CPython
    _make_scanner = None  # type: ignore[misc, assignment]


class _Options(object):
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(text):
    """The data that `text` holds. Raises ValueError if it is not JSON."""
    if _make_scanner is None:
        import json

        return json.loads(text)
    text = text.strip(" \t\r\n")
    try:
        data, end = _make_scanner(_Options)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError):
        # Some versions of the C half cannot say what is wrong as long as the other half is not loaded.
        import json

        return json.loads(text)
    if end != len(text):
        raise ValueError("more than one JSON value: the second begins at character {}".format(end))
    return data


def dumps(data):
    """`data` (dicts, lists, texts, numbers, booleans, None) as JSON, in ASCII."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, (int, float)):
        return repr(data)
    if isinstance(data, str):
        return _quoted(data)
    if isinstance(data, dict):
        return "{" + ", ".join(_quoted(key) + ": " + dumps(value) for key, value in data.items()) + "}"
    return "[" + ", ".join(dumps(item) for item in data) + "]"


def _quoted(text):
    if _make_scanner is None:
        import json

        return json.dumps(text)
    return _quote(text)


def read(path):
    """The data in the file `path`. Raises OSError or ValueError (UnicodeDecodeError is one)."""
    with open(path, "rb") as file:
        return loads(file.read().decode("utf-8"))


def write(path, data):
    """Puts `data` into the file `path`: whoever looks sees the old file or the whole new one."""
    temporary = path + ".part"
    write_new(temporary, dumps(data))
    os.rename(temporary, path)


def write_new(path, text):
    """A file with this text, over whatever a dead predecessor left there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        rest = text.encode("ascii")
        while rest:
            rest = rest[os.write(handle, rest) :]
    finally:
        os.close(handle)

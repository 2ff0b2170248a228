"""Explains to the sender which part of a request does not match the schema of the service. Pure.

inference-schema decides what is valid, and accepts more than its schema says (`"1"` may pass for a number). So it runs
first, and only data that it rejects is checked here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

Schema = Dict[str, Any]

_MOST = 3
_WANTED = {
    "array": "an array",
    "object": "an object",
    "number": "a number",
    "integer": "a whole number",
    "string": "a text",
    "boolean": "true or false",
}
_TYPES: Dict[str, Tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "number": (int, float),
    "integer": (int,),
    "string": (str,),
    "boolean": (bool,),
}


def describe_errors(given: Schema, data: Dict[str, Any]) -> str:
    """One sentence for each of the first parameters that do not match; empty if all seem to match.

    >>> describe_errors({"properties": {"data": {"type": "array", "items": {"type": "number"}}}}, {"data": [1, "b"]})
    'data[1]: it must be a number, and is a text.'
    """
    properties: Schema = given.get("properties", {})
    example: Any = given.get("example")
    examples: Dict[str, Any] = example if isinstance(example, dict) else {}
    names = sorted(set(properties) & set(data))
    looks: Sequence[Callable[[str], Optional[str]]] = (
        lambda name: _find_wrong_type(name, properties[name], data[name]),
        lambda name: _misshapen(name, properties[name], data[name], examples.get(name)),
    )
    for look in looks:
        found = [sentence for sentence in map(look, names) if sentence]
        if found:
            return " ".join(found[:_MOST])
    return ""


def _find_wrong_type(place: str, schema: Schema, value: Any) -> Optional[str]:
    """Find the first value of a wrong type."""
    kind = schema.get("type")
    if kind not in _TYPES:
        return None
    if not _is_a(kind, value):
        return "{}: it must be {}, and is {}.".format(place, _WANTED[kind], _word(value))
    if kind == "array":
        items = ("{}[{}]".format(place, number) for number in range(len(value)))
        return _first(_find_wrong_type(where, schema.get("items", {}), item) for where, item in zip(items, value))
    if kind == "object":
        return _find_wrong_name(place, schema, value)
    if kind == "string":
        return _no_date(place, schema.get("format"), value)
    return None


def _is_a(kind: str, value: Any) -> bool:
    # In Python, True is also an integer.
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _find_wrong_name(place: str, schema: Schema, value: Dict[str, Any]) -> Optional[str]:
    properties: Schema = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return "{}: it lacks {}.".format(place, ", ".join(missing))
    if properties and set(value) - set(properties):
        return "{}: it may only have {}.".format(place, ", ".join(properties))
    known = [name for name in properties if name in value]
    return _first(_find_wrong_type("{}.{}".format(place, name), properties[name], value[name]) for name in known)


def _no_date(place: str, wanted: Optional[str], value: str) -> Optional[str]:
    if wanted not in ("date", "date-time"):
        return None
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return "{}: it must be a date, as 2024-12-31{}.".format(place, " 23:59:59" if wanted == "date-time" else "")
    return None


def _misshapen(place: str, schema: Schema, value: Any, example: Any) -> Optional[str]:
    """Check that an array has the dimensions of the example, and the same sizes except for the first."""
    if schema.get("format") != "numpy.ndarray" or not isinstance(example, list):
        return None
    sizes, wanted = _sizes(value), _sizes(example)
    if sizes is None:
        return "{}: its rows have different lengths.".format(place)
    if wanted is None or sizes[1:] == wanted[1:]:
        return None
    if 0 in sizes:
        return "{}: it is empty, or a row of it.".format(place)
    shown = " x ".join(["any", *map(str, wanted[1:])])
    return "{}: it must be an array of {}, and is one of {}.".format(place, shown, " x ".join(map(str, sizes)))


def _sizes(value: Any) -> Optional[List[int]]:
    """The sizes of nested lists; None if they are not uniform."""
    if not isinstance(value, list):
        return []
    inner = [_sizes(item) for item in value]
    if any(each is None or each != inner[0] for each in inner):
        return None
    return [len(value), *(inner[0] or [] if inner else [])]


def _first(found: Any) -> Optional[str]:
    return next((sentence for sentence in found if sentence), None)


def _word(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "a number with a point"
    if isinstance(value, int):
        return "a number"
    return next(word for kind, word in _WANTED.items() if _is_a(kind, value))

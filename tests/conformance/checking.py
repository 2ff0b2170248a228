"""Compares what can be imported with a row of the table `v1.json`: nothing is called, only looked at."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("v1.json").read_text(encoding="utf-8"))
_PUBLIC = {each["path"].rsplit(".", 1)[1]: each["path"] for each in TABLE["classes"]}
_RECEIVERS = ("self", "cls")
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
UNTOLD = object()
"""Stands for a default of v1 that is not known."""


@dataclass(frozen=True)
class Finding:
    """One difference: where, how much v1's users use it, and what differs."""

    where: str
    use: str
    what: str

    @property
    def must_be_so(self) -> bool:
        """Whether v1 scripts need it."""
        return self.use != "rare"


def found_at(path: str) -> Any:
    """The object at a dotted path, as `from module import name` gives it."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)


def class_findings(row: dict[str, Any]) -> Iterator[Finding]:
    """All differences of one class of the table."""
    path = row["path"]
    try:
        owner = found_at(path)
    except (ImportError, AttributeError) as error:
        yield Finding(path, row["use"], f"cannot be imported: {error}")
        return
    for base in row["bases"]:
        if base in _PUBLIC and not _is_below(owner, _PUBLIC[base]):
            yield Finding(path, row["use"], f"is not a {base}")
    if "constructor" in row:
        yield from _signature_findings(path, owner, row["constructor"], "core" if row["used parameters"] else "rare")
    for name, member in row["members"].items():
        yield from _member_findings(f"{path}.{name}", owner, name, member)


def function_findings(row: dict[str, Any]) -> Iterator[Finding]:
    """All differences of one function of the table."""
    try:
        function = found_at(row["path"])
    except (ImportError, AttributeError) as error:
        yield Finding(row["path"], row["use"], f"cannot be imported: {error}")
        return
    yield from _signature_findings(row["path"], function, row["signature"], row["use"])


def _is_below(owner: type, base: str) -> bool:
    try:
        return issubclass(owner, found_at(base))
    except (ImportError, AttributeError):
        return False


def _member_findings(where: str, owner: type, name: str, member: dict[str, Any]) -> Iterator[Finding]:
    use = member["use"]
    if member["kind"] == "property":
        if not _has_property(owner, name):
            yield Finding(where, use, "is missing")
        return
    try:
        raw = inspect.getattr_static(owner, name)
    except AttributeError:
        yield Finding(where, use, "is missing")
        return
    if not callable(getattr(owner, name)):
        yield Finding(where, use, "cannot be called")
        return
    is_bound = isinstance(raw, staticmethod | classmethod)
    if member["kind"] in ("static", "class") and not is_bound:
        yield Finding(where, use, "cannot be called on the class")
    yield from _signature_findings(where, getattr(owner, name), member["signature"], use)


def _has_property(owner: type, name: str) -> bool:
    """Whether objects have it: a property, an attribute of the class, or one that a constructor sets."""
    if hasattr(owner, name):
        return True
    makers = (vars(base).get("__init__") for base in owner.__mro__)
    return any(name in maker.__code__.co_names for maker in makers if hasattr(maker, "__code__"))


def _signature_findings(where: str, thing: Any, signature: str, use: str) -> Iterator[Finding]:
    wanted = _parameters(signature)
    ours = {name: each for name, each in inspect.signature(thing).parameters.items() if name not in _RECEIVERS}
    for name, parameter in wanted.items():
        if parameter.kind in _ANY:
            if not any(each.kind is parameter.kind for each in ours.values()):
                yield Finding(f"{where}({name})", use, f"there is no {parameter}")
        elif name not in ours:
            yield Finding(f"{where}({name})", use, "is missing")
        else:
            yield from _default_findings(f"{where}({name})", ours[name], parameter, use)
    in_order = [name for name, each in wanted.items() if each.kind is each.POSITIONAL_OR_KEYWORD and name in ours]
    ours_in_order = [name for name, each in ours.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    if ours_in_order[: len(in_order)] != in_order:
        yield Finding(where, use, f"the order is {ours_in_order}, not {in_order}")
    for name, each in ours.items():
        if name not in wanted and each.kind not in _ANY and each.default is each.empty:
            yield Finding(f"{where}({name})", use, "is asked for, and v1 has no such parameter")


def _default_findings(where: str, ours: inspect.Parameter, wanted: inspect.Parameter, use: str) -> Iterator[Finding]:
    # A parameter that v1 demanded and we do not is no trouble for any script.
    if wanted.default in (wanted.empty, UNTOLD):
        return
    if ours.default is ours.empty:
        yield Finding(where, use, f"has no default; v1's is {wanted.default!r}")
    elif not is_same(ours.default, wanted.default):
        yield Finding(where, use, f"the default is {ours.default!r}, not {wanted.default!r}")


def _parameters(signature: str) -> Mapping[str, inspect.Parameter]:
    """The parameters in a text such as `(a, b=1, **kwargs)`."""
    scope: dict[str, Any] = {"UNTOLD": UNTOLD}
    exec(f"def function{signature}: pass", scope)
    return inspect.signature(scope["function"]).parameters


def is_same(ours: Any, wanted: Any) -> bool:
    """Whether a value is v1's: True is not 1, and an enumeration of texts is a text."""
    return bool(ours == wanted) and (isinstance(ours, bool) == isinstance(wanted, bool))

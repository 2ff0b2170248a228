"""How a class contributes operations: a decorator gives each method its name on the socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Operation = Callable[..., Any]
F = TypeVar("F", bound=Operation)

_NAME = "operation_name"


def operation(name: str) -> Callable[[F], F]:
    """Make a method the operation called `name`.

    It gets the arguments of the request by their names, checked against its annotations (`arguments.py`), and returns
    what `to_plain` can turn into JSON, or an awaitable of it. It can be repeated without harm.
    """

    def mark(method: F) -> F:
        setattr(method, _NAME, name)
        return method

    return mark


def operations_of(*parts: object) -> dict[str, Operation]:
    """The operations of these objects, by name."""
    found: dict[str, Operation] = {}
    for part in parts:
        for attribute in dir(type(part)):
            name = getattr(getattr(type(part), attribute), _NAME, None)
            if name is not None:
                assert name not in found, f"two operations are called {name}"
                found[name] = getattr(part, attribute)
    return found

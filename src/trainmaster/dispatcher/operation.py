"""How a class contributes operations: a decorator gives each method its name on the socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, TypeVar

Operation = Callable[..., Any]
F = TypeVar("F", bound=Operation)


class JsonText(bytes):
    """A result that is JSON already, in one line. It is sent as it is."""


_NAME = "operation_name"
_DEPENDS = "depends_on_store_only"
_JOURNALS = "depends_on_journals"


def operation(
    name: str, from_store: bool | Callable[[Mapping[str, Any], Any], bool] = False, from_journals: bool = False
) -> Callable[[F], F]:
    """Make a method the operation called `name`.

    `from_store` says that its result depends on the arguments and the store only, so that an answer stays right until
    the store changes; or it is a function that says so of the arguments and the plain result. `from_journals` says
    that it depends on the journals of the run `run_id` too, which it reads into the store.

    It gets the arguments of the request by their names, checked against its annotations (`arguments.py`), and returns
    what `to_plain` can turn into JSON, a `JsonText`, or an awaitable of one. It can be repeated without harm.
    """

    def mark(method: F) -> F:
        setattr(method, _NAME, name)
        setattr(method, _DEPENDS, from_store)
        setattr(method, _JOURNALS, from_journals)
        return method

    return mark


def is_from_store(method: Operation, args: Mapping[str, Any], result: Any) -> bool:
    """Whether this result of an operation stays right until the store changes."""
    depends = getattr(method, _DEPENDS)
    return depends if isinstance(depends, bool) else bool(depends(args, result))


def is_from_journals(method: Operation) -> bool:
    """Whether a result stays right until the store or the journals of the run change."""
    return bool(getattr(method, _JOURNALS))


def may_last(method: Operation) -> bool:
    """Whether any result of an operation stays right until something changes."""
    return bool(getattr(method, _DEPENDS)) or is_from_journals(method)


def operations_of(*parts: object) -> dict[str, Operation]:
    """The operations of these objects, by name."""
    operations_in(*map(type, parts))  # refuses a name that is there twice
    return {name: MethodType(each, part) for part in parts for name, each in operations_in(type(part)).items()}


def operations_in(*kinds: type) -> dict[str, Operation]:
    """The operations of these classes, by name, as functions that still need their object."""
    found: dict[str, Operation] = {}
    for kind in kinds:
        for attribute in dir(kind):
            function = getattr(kind, attribute)
            name = getattr(function, _NAME, None)
            if name is not None:
                assert name not in found, f"two operations are called {name}"
                found[name] = function
    return found

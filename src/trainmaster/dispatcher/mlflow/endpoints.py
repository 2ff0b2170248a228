"""The endpoints: a decorator gives a method its place in MLflow's API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MethodType
from typing import Any, TypeVar

from trainmaster.dispatcher.mlflow.errors import NO_ENDPOINT, MlflowError
from trainmaster.dispatcher.mlflow.requests import Request

Handler = Callable[..., Any]
"""Takes a `Request`; returns a JSON object, a JSON text in one line, or an awaitable of one."""
F = TypeVar("F", bound=Handler)

_MARK = "mlflow_endpoints"
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Endpoint:
    """One method and path of MLflow's API."""

    method: str
    path: str
    """Below `/api/` and `/ajax-api/`: "2.0/mlflow/runs/create"."""
    changes: bool
    """Whether it changes something in the workspace."""
    is_frequent: bool = False
    """Whether training calls it again and again, as to log values."""
    only_for_pages: bool = False
    """Whether it is below `/ajax-api/` only."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the path."""
        return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", self.path))


def endpoint(
    method: str, path: str, *, changes: bool | None = None, is_frequent: bool = False, only_for_pages: bool = False
) -> Callable[[F], F]:
    """Make a method the endpoint below `/api/`. Without `changes`, every method but GET changes something.

    A path without a version is below `2.0/mlflow/`.
    """
    whole = path if path[0].isdigit() else f"2.0/mlflow/{path}"
    made = Endpoint(method, whole, method != "GET" if changes is None else changes, is_frequent, only_for_pages)

    def mark(function: F) -> F:
        setattr(function, _MARK, (*getattr(function, _MARK, ()), made))
        return function

    return mark


def endpoints_in(*kinds: type) -> dict[Endpoint, Handler]:
    """The endpoints of these classes, as functions that still need their object."""
    found: dict[Endpoint, Handler] = {}
    for kind in kinds:
        for attribute in dir(kind):
            function = getattr(kind, attribute)
            for each in getattr(function, _MARK, ()):
                assert each not in found, f"two endpoints are {each.method} {each.path}"
                found[each] = function
    return found


def is_logging(handler: Handler) -> bool:
    """Whether a handler only logs: it does not need what was logged before."""
    return all(each.is_frequent for each in getattr(handler, _MARK))


class Endpoints:
    """Finds the handler of a request."""

    def __init__(self, parts: Iterable[object]) -> None:
        self._exact: dict[tuple[str, str], Handler] = {}
        self._patterns: list[tuple[Endpoint, Handler]] = []
        for part in parts:
            for each, function in endpoints_in(type(part)).items():
                handler = MethodType(function, part)
                if "{" in each.path:
                    self._patterns.append((each, handler))
                else:
                    self._exact[each.method, each.path] = handler

    def find(self, method: str, path: str) -> tuple[Handler, Mapping[str, str]]:
        """The handler of a path, and the parameters in the path."""
        handler = self._exact.get((method, path))
        if handler is not None:
            return handler, {}
        for each, found in self._patterns:
            match = each.pattern.fullmatch(path) if each.method == method else None
            if match is not None:
                return found, match.groupdict()
        raise MlflowError(NO_ENDPOINT, f"There is no endpoint {method} {path[:200]}")


__all__ = ["Endpoint", "Endpoints", "Handler", "Request", "endpoint", "endpoints_in", "is_logging"]

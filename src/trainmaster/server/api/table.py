"""The table of routes: one row per method and path, with the permission it requires.

The table generates the routing, the OpenAPI description, the test of routes and roles, and the TypeScript types. Names
and types of arguments come from the signature of the handler or operation: those named in the path are in the path,
the others in the query for GET, HEAD and DELETE, and in the JSON body for the other methods.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trainmaster.server.permissions import PERMISSIONS_OF_WORKSPACES, Permission

Handler = Callable[..., Awaitable[Any]]
"""Takes a `Call` and the arguments by name. Returns plain data, which becomes JSON, or a Starlette response."""

API = "/api/v1"
WORKSPACE = f"{API}/workspaces/{{workspace}}"
"""The beginning of all paths of one workspace."""
MLFLOW = "/mlflow/{workspace}"
"""The beginning of the paths that MLflow's clients use."""

MEGABYTE = 1024 * 1024
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")


@dataclass(frozen=True)
class Operation:
    """What a route calls in the workspace's dispatcher, instead of a handler of the server."""

    name: str
    answer_key: str = ""
    """The answer is an object that has the result under this key; without it, the result itself."""
    by_name: str = ""
    """The one argument that gets all arguments of the route as an object, for operations that take a query."""
    is_exact: bool = False
    """Whether numbers that JSON does not have (NaN) are answered as Python writes them, for the SDK; else as texts."""


@dataclass(frozen=True)
class Route:
    """One row of the table. It cannot be constructed without a permission."""

    method: str
    path: str
    target: Handler | Operation
    permission: Permission
    summary: str
    tag: str = ""
    """The noun that it belongs to in the OpenAPI description."""
    open_to_jobs: bool = False
    """Whether the token of a job may call it."""
    only_for_jobs: bool = False
    """Whether nothing else than the token of a job may call it."""
    largest_body: int = MEGABYTE
    """In bytes. Larger bodies are refused before they are read."""
    streams_body: bool = False
    """The handler reads the body itself; the arguments that are not in the path are in the query."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """Argument to a type that is more exact than that of the signature."""
    answer: Any = None
    """The type of the answer, if the signature does not say it."""
    media_type: str = "application/json"
    """Of the answer, if it is not JSON; several with commas between them."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that callers cannot set."""
    is_change: bool | None = None
    """Whether it changes something; if not given, decided by the method."""
    is_counted: bool = False
    """Whether it is a change that comes many times a second. The audit log has one entry an hour for each caller and
    parent of the path, with the number of requests; there are no idempotency keys."""
    name_target: Callable[[Any], Awaitable[str]] | None = None
    """Takes a `Call` that is counted; returns what its entry is about, instead of the parent of the path."""
    secret_arguments: bool = False
    """Whether the arguments contain secrets, which must not be written to a log."""
    secret_answer: bool = False
    """Whether the answer has a secret that is shown once. It is not kept for the next request with the same key."""
    ignores_query: bool = False
    """Whether the query is for the browser: the address of a page has the state of the page in it."""
    is_mlflow: bool = False
    """Whether it belongs to MLflow's API, which has its own description and form of errors."""
    statuses: tuple[int, ...] = ()
    """Further statuses that a caller may expect."""

    def __post_init__(self) -> None:
        if not isinstance(self.permission, Permission):
            raise TypeError(f"{self.method} {self.path} has no permission")
        if self.method not in _METHODS:
            raise ValueError(f"{self.path}: {self.method} is not a method")
        if self.permission in PERMISSIONS_OF_WORKSPACES and "workspace" not in self.parameters:
            raise ValueError(f"{self.path}: the permission '{self.permission}' needs a workspace in the path")
        if "workspace" in self.parameters and not self.path.startswith((WORKSPACE, MLFLOW)):
            raise ValueError(f"{self.path}: paths with a workspace begin with {WORKSPACE} or {MLFLOW}")

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(match[1] for match in _PARAMETER.finditer(self.path))

    @cached_property
    def changes(self) -> bool:
        """Whether it changes something: then it is audited and may have an idempotency key."""
        if self.is_counted:
            return False
        return self.method not in ("GET", "HEAD") if self.is_change is None else self.is_change

    @cached_property
    def operation(self) -> str:
        """The name of the dispatcher's operation, or nothing."""
        return self.target.name if isinstance(self.target, Operation) else ""


class Table:
    """All routes. Two rows cannot have the same method and path."""

    def __init__(self, rows: Iterable[Route]) -> None:
        self._rows: dict[tuple[str, str], Route] = {}
        for row in rows:
            key = row.method, _PARAMETER.sub("{}", row.path)
            if key in self._rows:
                raise ValueError(f"two routes are {row.method} {row.path}")
            self._rows[key] = row

    def __iter__(self) -> Iterator[Route]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

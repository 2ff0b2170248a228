"""Finding the route of a request. Each segment of a path is decoded once, after the path was split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from trainmaster.server.api.table import Route

# Clients ask for the same paths again and again. Longer paths are rare, and would take memory.
_KEPT, _SHORT = 4096, 300


class NoRouteError(Exception):
    """No route has this path; or, if `allowed` is not empty, none with this method."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        super().__init__()
        self.allowed = tuple(sorted(allowed))


class _Node:
    """One place in the tree of paths."""

    __slots__ = ("children", "other", "rest", "routes")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.other: _Node | None = None
        """For a segment that is a parameter."""
        self.rest: dict[tuple[str, ...], dict[str, Route]] = {}
        """Routes with a parameter that takes several segments: what follows it, then the method."""
        self.routes: dict[str, Route] = {}


class Routing:
    """Finds routes by their paths."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)
        self._find_again = lru_cache(maxsize=_KEPT)(self._find)

    def _add(self, route: Route) -> None:
        node = self._root
        segments = route.path.split("/")[1:]
        for number, segment in enumerate(segments):
            if segment.endswith(":path}"):
                node.rest.setdefault(tuple(segments[number + 1 :]), {})[route.method] = route
                return
            if segment.startswith("{"):
                node.other = node.other or _Node()
                node = node.other
            else:
                node = node.children.setdefault(segment, _Node())
        node.routes[route.method] = route

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route, and its path parameters. Raises NoRouteError, and ValueError for a path that is not UTF-8."""
        return (self._find_again if len(raw_path) <= _SHORT else self._find)(method, raw_path)

    def _find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        segments = [_decode(segment) for segment in raw_path.split(b"/")[1:]]
        found = _walk(self._root, segments, 0, [])
        if found is None:
            raise NoRouteError
        routes, values = found
        route = routes.get(method)
        if route is None and method == "HEAD":
            route = routes.get("GET")
        if route is None:
            raise NoRouteError({*routes, *(("HEAD",) if "GET" in routes else ())})
        return route, dict(zip(route.parameters, values, strict=True))


def _walk(node: _Node, segments: list[str], at: int, values: list[str]) -> tuple[dict[str, Route], list[str]] | None:
    if at == len(segments):
        return (node.routes, values) if node.routes else None
    segment = segments[at]
    child = node.children.get(segment)
    if child is not None and (found := _walk(child, segments, at + 1, values)) is not None:
        return found
    if node.other is not None and segment:
        found = _walk(node.other, segments, at + 1, [*values, segment])
        if found is not None:
            return found
    return _find_rest(node, segments[at:], values)


def _find_rest(node: _Node, rest: list[str], values: list[str]) -> tuple[dict[str, Route], list[str]] | None:
    """The routes whose parameter takes all of `rest` but its end; the one with the longest end wins."""
    for end in sorted(node.rest, key=len, reverse=True):
        count = len(rest) - len(end)
        if count > 0 and tuple(rest[count:]) == end and any(rest[:count]):
            return node.rest[end], [*values, "/".join(rest[:count])]
    return None


def _decode(segment: bytes) -> str:
    return (unquote_to_bytes(segment) if b"%" in segment else segment).decode("utf-8")

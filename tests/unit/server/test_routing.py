"""Finding routes by their paths."""

from __future__ import annotations

import pytest

from trainmaster.server.api.routing import NoRouteError, Routing
from trainmaster.server.api.table import Route
from trainmaster.server.permissions import Permission


async def handler(call: object) -> None:
    """Does nothing."""


def routing(*rows: str) -> Routing:
    return Routing([Route(*row.split(" "), handler, Permission.PUBLIC, row) for row in rows])


ALL = routing(
    "GET /runs",
    "POST /runs",
    "GET /runs/{run_id}",
    "GET /runs/old",
    "GET /runs/{run_id}/files/{name:path}",
    "PUT /runs/{run_id}/files/{name:path}",
    "GET /runs/{run_id}/logs/{name:path}",
    "GET /runs/{run_id}/logs/{name:path}/stream",
)


@pytest.mark.parametrize(
    ("path", "summary", "names"),
    [
        (b"/runs", "GET /runs", {}),
        (b"/runs/a", "GET /runs/{run_id}", {"run_id": "a"}),
        (b"/runs/old", "GET /runs/old", {}),
        (b"/runs/a%2Fb", "GET /runs/{run_id}", {"run_id": "a/b"}),
        (b"/runs/%252e", "GET /runs/{run_id}", {"run_id": "%2e"}),
        (
            b"/runs/a/files/outputs/m.pt",
            "GET /runs/{run_id}/files/{name:path}",
            {"run_id": "a", "name": "outputs/m.pt"},
        ),
        (b"/runs/a/files//etc", "GET /runs/{run_id}/files/{name:path}", {"run_id": "a", "name": "/etc"}),
        (b"/runs/a/logs/x/y", "GET /runs/{run_id}/logs/{name:path}", {"run_id": "a", "name": "x/y"}),
        (b"/runs/a/logs/x/stream", "GET /runs/{run_id}/logs/{name:path}/stream", {"run_id": "a", "name": "x"}),
        (b"/runs/a/logs/stream", "GET /runs/{run_id}/logs/{name:path}", {"run_id": "a", "name": "stream"}),
    ],
)
def test_each_segment_is_decoded_once(path: bytes, summary: str, names: dict[str, str]) -> None:
    route, found = ALL.find("GET", path)
    assert (route.summary, found) == (summary, names)


@pytest.mark.parametrize(
    "path", [b"/", b"/run", b"/runs/", b"/runs//files/x", b"/runs/a/files/", b"/runs/a/b", b"//runs"]
)
def test_other_paths_have_no_route(path: bytes) -> None:
    with pytest.raises(NoRouteError) as missing:
        ALL.find("GET", path)
    assert missing.value.allowed == ()


def test_another_method_names_the_possible_ones() -> None:
    with pytest.raises(NoRouteError) as missing:
        ALL.find("DELETE", b"/runs")
    assert missing.value.allowed == ("GET", "HEAD", "POST")


def test_head_is_answered_like_get() -> None:
    assert ALL.find("HEAD", b"/runs")[0].summary == "GET /runs"


def test_a_path_that_is_not_utf8_is_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        ALL.find("GET", b"/runs/%ff")

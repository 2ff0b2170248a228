"""Saved views over REST: private and shared ones, and who may delete them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server_people import People, add_people
from tests.server_process import Answer, ServerProcess

VIEWS = "/api/v1/workspaces/vision/views"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


def save(people: People, who: str, name: str, **fields: Any) -> Answer:
    return people.ask(who, "POST", VIEWS, {"page": "runs", "name": name, "query": "filter=lr<1", **fields})


def names(people: People, who: str, page: str = "runs") -> list[str]:
    answer = people.ask(who, "GET", f"{VIEWS}?page={page}")
    assert answer.status == 200, answer
    return [view["name"] for view in answer.json()["views"]]


def delete(people: People, who: str, view_id: str) -> int:
    return people.ask(who, "DELETE", f"{VIEWS}/{view_id}").status


def test_a_private_view_is_seen_by_its_owner_only(people: People) -> None:
    view = save(people, "reader", "mine").json()
    assert (view["owner"], view["is_shared"], view["query"]) == ("reader", False, "filter=lr<1")
    assert "mine" in names(people, "reader") and "mine" not in names(people, "owner")
    assert "mine" not in names(people, "reader", page="compare")
    # Whoever does not see it cannot find out that it exists.
    assert delete(people, "owner", view["id"]) == delete(people, "owner", "nothing") == 404
    assert delete(people, "reader", view["id"]) == 200 and "mine" not in names(people, "reader")


def test_a_reader_shares_nothing_and_an_owner_deletes_what_is_shared(people: People) -> None:
    assert save(people, "reader", "ours", is_shared=True).status == 403
    view = save(people, "contributor", "ours", is_shared=True).json()
    assert "ours" in names(people, "reader")
    assert delete(people, "reader", view["id"]) == 403
    assert delete(people, "owner", view["id"]) == 200 and "ours" not in names(people, "contributor")


def test_saving_again_replaces_the_own_view_of_that_name(people: People) -> None:
    first = save(people, "contributor", "again").json()
    second = save(people, "contributor", "again", query="order=metric.loss", is_shared=True).json()
    assert second["id"] == first["id"] and second["query"] == "order=metric.loss" and second["is_shared"]
    # The same name of another person is another view.
    assert save(people, "owner", "again").json()["id"] != first["id"]
    assert names(people, "owner").count("again") == 2


@pytest.mark.parametrize(
    "fields",
    [{"page": "../x"}, {"page": ""}, {"name": " "}, {"name": "n" * 201}, {"name": "a\x00"}, {"query": "q" * 9000}],
)
def test_what_cannot_be_saved_is_refused(people: People, fields: dict[str, str]) -> None:
    assert people.ask("owner", "POST", VIEWS, {"page": "runs", "name": "x", "query": "", **fields}).status == 400


def test_nobody_fills_the_database_with_views(people: People) -> None:
    for number in range(200):
        assert save(people, "reader", f"view {number}").status == 200
    assert save(people, "reader", "one more").status == 400
    assert save(people, "reader", "view 7").status == 200
    assert len(names(people, "reader")) >= 200

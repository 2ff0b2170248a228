"""The table of routes: nothing without a permission, every operation with a row or a reason."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.api.operations import list_operations
from trainmaster.server.api.signatures import read_signature
from trainmaster.server.api.table import Route, Table
from trainmaster.server.assembly import make_table
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.operations import INTERNAL, PERMISSIONS


async def handler(call: object) -> None:
    """Does nothing."""


def test_a_route_without_a_permission_cannot_be_constructed() -> None:
    with pytest.raises(TypeError):
        Route("GET", "/open", handler, summary="Open")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no permission"):
        Route("GET", "/open", handler, None, "Open")  # type: ignore[arg-type]


def test_a_permission_in_a_workspace_needs_one_in_the_path() -> None:
    with pytest.raises(ValueError, match="needs a workspace"):
        Route("GET", "/runs", handler, Permission.READ, "Runs")


def test_two_rows_cannot_have_the_same_method_and_path() -> None:
    rows = [Route("GET", path, handler, Permission.PUBLIC, "") for path in ("/a/{one}", "/a/{other}")]
    with pytest.raises(ValueError, match="two routes"):
        Table(rows)


def test_every_operation_has_a_row_or_is_internal_with_a_reason() -> None:
    known = set(list_operations())
    assert known - set(PERMISSIONS) - set(INTERNAL) == set(), "add them to server/routes/operations.py"
    assert set(PERMISSIONS) & set(INTERNAL) == set()
    assert (set(PERMISSIONS) | set(INTERNAL)) - known == set(), "these operations do not exist"
    assert all(INTERNAL.values())


def test_the_arguments_of_every_route_are_known() -> None:
    for route in make_table():
        read_signature(route)

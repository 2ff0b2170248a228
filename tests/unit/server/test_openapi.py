"""The OpenAPI document and the TypeScript types, generated from the table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainmaster.server.api.openapi import describe_table
from trainmaster.server.api.typescript import write_types
from trainmaster.server.assembly import make_table


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(json.dumps(describe_table(make_table())))
    return described


def test_every_route_is_described_with_its_permission(document: dict[str, Any]) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {
        (route.method, route.path.replace(":path", "")) for route in make_table() if not route.is_mlflow
    }
    assert all(each["x-permission"] for methods in document["paths"].values() for each in methods.values())


def test_names_of_routes_are_unique(document: dict[str, Any]) -> None:
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names))


def test_a_run_in_an_answer_is_complete_and_one_in_a_request_may_use_defaults(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert set(schemas["RunRecord"]["required"]) == set(schemas["RunRecord"]["properties"])
    assert schemas["RunRecordInput"]["required"] == ["id", "experiment", "status", "created_at"]
    submit = document["paths"]["/api/v1/workspaces/{workspace}/runs"]["post"]
    body = submit["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["run"] == {"$ref": "#/components/schemas/RunRecordInput"}


def test_only_public_routes_need_no_token(document: dict[str, Any]) -> None:
    public = {path for path, methods in document["paths"].items() for each in methods.values() if "security" in each}
    assert {"/health", "/ready", "/openapi.json"} <= public
    assert not any(path.startswith("/api/") for path in public)


def test_typescript_names_every_route(document: dict[str, Any]) -> None:
    text = write_types(document)
    assert "export interface RunRecord {" in text
    for path, methods in document["paths"].items():
        for method in methods:
            assert json.dumps(f"{method.upper()} {path}") in text

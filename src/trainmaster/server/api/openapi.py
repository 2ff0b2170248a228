"""The OpenAPI 3.1 description of the server, generated from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from starlette.responses import Response

from trainmaster import __version__
from trainmaster.server.api.schemas import Direction, Schema, Schemas
from trainmaster.server.api.signatures import Parameter, Place, is_list, is_mapping, read_signature, was_given
from trainmaster.server.api.table import Operation, Route
from trainmaster.server.permissions import Permission
from trainmaster.shared.serialization import to_plain

_ERROR: Schema = {
    "type": "object",
    "description": "What failed, why, and what to do now.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "type", "headline", "cause", "hint", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "The kind of error, for programs."},
                "type": {"type": "string", "description": "The class of the exception that the SDK raises."},
                "headline": {"type": "string"},
                "cause": {"type": "string"},
                "hint": {"type": "string"},
                "request_id": {"type": "string"},
            },
        }
    },
}

_NEEDS = {
    Permission.PUBLIC: "Needs no token.",
    Permission.SIGNED_IN: "Needs a token.",
    Permission.READ: "Needs the role reader in the workspace.",
    Permission.CONTRIBUTE: "Needs the role contributor in the workspace.",
    Permission.OWN: "Needs the role owner in the workspace.",
    Permission.ADMINISTER: "Needs an administrator of the server.",
}


def describe_table(routes: Iterable[Route]) -> dict[str, Any]:
    """The OpenAPI document."""
    schemas = Schemas()
    schemas.named["Error"] = _ERROR
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.is_mlflow:
            continue
        path = re.sub(r"\{(\w+):path\}", r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _describe_route(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trainmaster", "version": __version__},
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.named.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe_route(route: Route, schemas: Schemas) -> dict[str, Any]:
    signature = read_signature(route)
    described: dict[str, Any] = {
        "operationId": name_route(route),
        "summary": route.summary,
        "description": _describe_need(route),
        "x-permission": route.permission.value,
        "tags": [route.tag] if route.tag else [],
        "parameters": _describe_parameters(route, signature.select(Place.QUERY), signature.select(Place.PATH), schemas),
        "responses": _describe_responses(route, signature.answer, schemas),
    }
    if route.permission is Permission.PUBLIC:
        described["security"] = []
    body = signature.select(Place.BODY)
    if route.streams_body and route.method in ("PUT", "POST", "PATCH"):
        described["requestBody"] = {"content": {"application/octet-stream": {"schema": {}}}}
    elif body:
        described["requestBody"] = {
            "required": any(each.is_required for each in body),
            "content": {"application/json": {"schema": _describe_body(body, schemas)}},
        }
    return described


def name_route(route: Route) -> str:
    """A unique name for a route.

    >>> from trainmaster.server.permissions import Permission
    >>> name_route(Route("GET", "/api/v1/users/{user}", print, Permission.SIGNED_IN, ""))
    'get_users_user'
    """
    path = route.path.removeprefix("/api/v1").replace("/workspaces/{workspace}/", "/workspace/")
    words = re.findall(r"\w+", path.replace(":path", ""))
    return "_".join([route.method.lower(), *words])


def _describe_need(route: Route) -> str:
    if route.only_for_jobs:
        return "Only for jobs, with the token of their run."
    also = " Jobs may call it with the token of their run." if route.open_to_jobs else ""
    return _NEEDS[route.permission] + also


def _describe_parameters(
    route: Route, query: tuple[Parameter, ...], path: tuple[Parameter, ...], schemas: Schemas
) -> list[dict[str, Any]]:
    text: Schema = {"type": "string", "minLength": 1}
    types = {each.name: schemas.describe(each.type, Direction.REQUEST) for each in path}
    found: list[dict[str, Any]] = []
    for name in route.parameters:
        schema = types.get(name, text)
        found.append({"name": name, "in": "path", "required": True, "schema": text if "type" not in schema else schema})
    for each in query:
        found.append(
            {"name": each.name, "in": "query", "required": each.is_required, "schema": _describe_query(each, schemas)}
        )
    if route.changes and not route.streams_body:
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key with the same request gives the first answer again.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            }
        )
    return found


def _describe_query(parameter: Parameter, schemas: Schemas) -> Schema:
    if is_mapping(parameter.type):
        return {"type": "array", "items": {"type": "string", "pattern": "^[^=]+(=.*)?$"}}
    schema = schemas.describe(parameter.type, Direction.REQUEST)
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return _with_default(choices[0] if len(choices) == 1 else {"anyOf": choices}, parameter)


def _with_default(schema: Schema, parameter: Parameter) -> Schema:
    plain = to_plain(parameter.default) if was_given(parameter.default) else None
    if plain is None or is_list(parameter.type) or is_mapping(parameter.type):
        return schema
    return {**schema, "default": plain}


def _describe_body(parameters: tuple[Parameter, ...], schemas: Schemas) -> Schema:
    return {
        "type": "object",
        "properties": {
            each.name: _with_default(schemas.describe(each.type, Direction.REQUEST), each) for each in parameters
        },
        "required": [each.name for each in parameters if each.is_required],
        "additionalProperties": False,
    }


def _describe_responses(route: Route, answer: Any, schemas: Schemas) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "The answer"}
    if route.media_type == "application/json":
        # A handler that writes the response itself says nothing about it.
        is_response = isinstance(answer, type) and issubclass(answer, Response)
        schema = {} if is_response else schemas.describe(answer, Direction.ANSWER)
        if isinstance(route.target, Operation) and route.target.answer_key:
            key = route.target.answer_key
            schema = {"type": "object", "properties": {key: schema}, "required": [key]}
        good["content"] = {"application/json": {"schema": schema}}
    else:
        good["content"] = {kind.strip(): {} for kind in route.media_type.split(",")}
    failed = {"$ref": "#/components/schemas/Error"}
    error = {"description": "An error", "content": {"application/json": {"schema": failed}}}
    statuses = {str(status): {"description": "An answer of another kind"} for status in route.statuses}
    return {"200": good, **statuses, "default": error}

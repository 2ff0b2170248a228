"""The contents of /swagger.json: OpenAPI 3, or on request the older form of v1's services."""

from __future__ import annotations

import copy
from typing import Any, Dict, List

from .script import Script
from .settings import Settings

Document = Dict[str, Any]

_REFUSAL = {
    "type": "object",
    "properties": {"message": {"type": "string"}, "request_id": {"type": "string"}},
    "required": ["message", "request_id"],
}
_REFUSALS = {
    "400": "The request is wrong.",
    "401": "The key is missing or wrong.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "500": "The scoring script failed.",
    "503": "Too many requests at once.",
    "504": "The scoring script took too long.",
}
_PLAIN = (
    ("/", "Healthy, as v1's services answered", "text/plain"),
    ("/healthz", "Whether the process is alive", "text/plain"),
    ("/readyz", "Whether requests are answered", "text/plain"),
    ("/metrics", "Counters for Prometheus", "text/plain"),
    ("/swagger.json", "This description", "application/json"),
)
OPEN = ("/", "/healthz", "/readyz")


def describe(settings: Settings, script: Script) -> Document:
    """Describe the service in OpenAPI 3."""
    paths: Dict[str, Document] = {path: {"get": _plain(*rest)} for path, *rest in _PLAIN}
    paths["/readyz"]["get"]["responses"]["503"] = _describe_refusal("The service is shutting down.")
    paths["/score"] = _score(script)
    document: Document = {
        "openapi": "3.0.3",
        "info": {"title": settings.name, "description": _about(settings), "version": settings.version},
        "paths": paths,
        "components": {"schemas": {"Refusal": _REFUSAL, **_schemas(script)}},
    }
    if settings.keys_file:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
        for path in OPEN:
            paths[path]["get"]["security"] = []
        for path in ("/metrics", "/swagger.json"):
            paths[path]["get"]["responses"]["401"] = _describe_refusal(_REFUSALS["401"])
    return document


def describe_v2(settings: Settings, script: Script) -> Document:
    """Describe the service in Swagger 2.0, with v1's names."""
    schemas = _schemas(script)
    error = {"description": "An error.", "schema": {"$ref": "#/definitions/ErrorResponse"}}
    security: List[Document] = [{"Bearer": []}] if settings.keys_file else []
    document: Document = {
        "swagger": "2.0",
        "info": {"title": settings.name, "description": _about(settings), "version": settings.version},
        "schemes": ["http"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "paths": {
            "/": {"get": {"operationId": "ServiceHealthCheck", "responses": {"200": {"description": "Healthy"}}}},
            "/score": {
                "post": {
                    "operationId": "RunMLService",
                    "parameters": [
                        {
                            "name": "serviceInputPayload",
                            "in": "body",
                            "required": True,
                            "schema": {"$ref": "#/definitions/ServiceInput"},
                        }
                    ],
                    "responses": {
                        "200": {"description": "The answer.", "schema": {"$ref": "#/definitions/ServiceOutput"}},
                        "default": error,
                    },
                    "security": security,
                }
            },
        },
        "definitions": {**schemas, "ErrorResponse": _REFUSAL},
    }
    if settings.keys_file:
        document["securityDefinitions"] = {"Bearer": {"type": "apiKey", "name": "Authorization", "in": "header"}}
    return document


def _about(settings: Settings) -> str:
    return settings.description or "Scoring service {}".format(settings.name)


def _schemas(script: Script) -> Dict[str, Document]:
    if script.schema is None:
        return {"ServiceInput": script.schemas.get("input", {}), "ServiceOutput": script.schemas.get("output", {})}
    given = copy.deepcopy(script.schema.given)
    given["required"] = sorted(script.schema.names)
    given["additionalProperties"] = False
    return {"ServiceInput": given, "ServiceOutput": script.schema.returned}


def _score(script: Script) -> Document:
    refusals: Dict[str, Any] = {status: _describe_refusal(text) for status, text in _REFUSALS.items()}
    if script.raw:
        anything = {"description": "What the script returned.", "content": {"*/*": {"schema": {}}}}
        body: Document = {"content": {"*/*": {"schema": {}}}}
        return {
            method: {
                "operationId": "score" if method == "post" else "score_" + method,
                **({} if method == "get" else {"requestBody": body}),
                "responses": {**refusals, "default": anything},
            }
            for method in ("get", "post", "put", "patch", "delete")
        }
    answer = {
        "description": "What run returned.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceOutput"}}},
    }
    return {
        "post": {
            "operationId": "score",
            "summary": "Calls run with the body",
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServiceInput"}}},
            },
            "responses": {"200": answer, **refusals},
        },
        "get": {
            "operationId": "score_query",
            "summary": "Calls run with the parameters of the query",
            "parameters": _parameters(script),
            "responses": {"200": answer, **refusals},
        },
    }


def _parameters(script: Script) -> List[Document]:
    if script.schema is None:
        return []
    names = sorted(script.schema.names)
    return [{"name": name, "in": "query", "required": True, "schema": {"type": "string"}} for name in names]


def _plain(meaning: str, kind: str) -> Document:
    schema = {"type": "object"} if kind == "application/json" else {"type": "string"}
    return {"summary": meaning, "responses": {"200": {"description": meaning, "content": {kind: {"schema": schema}}}}}


def _describe_refusal(text: str) -> Document:
    return {
        "description": text,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
    }

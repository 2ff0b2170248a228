"""MLflow's paths that this server does not have: each is answered with 501 and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trainmaster.dispatcher.mlflow.errors import NO_ENDPOINT, NOT_IMPLEMENTED, MlflowError
from trainmaster.server.api.table import MLFLOW, Handler, Route
from trainmaster.server.call import Call
from trainmaster.server.permissions import Permission

_TRACES = "Traces"
_EVALUATION = "Evaluation of language models"
_GATEWAY = "MLflow's AI gateway"
_PROMPTS = "Prompt optimization"
_ADMINISTRATION = "The administration of users and workspaces by MLflow's API"

_BEGINNINGS: Mapping[str, str] = MappingProxyType(
    {
        "2.0/mlflow/traces": _TRACES,
        "3.0/mlflow/traces": _TRACES,
        "2.0/mlflow/unified-traces": _TRACES,
        "2.0/mlflow/get-online-trace-details": _TRACES,
        "2.0/mlflow/get-trace-artifact": _TRACES,
        "3.0/mlflow/get-trace-artifact": _TRACES,
        "3.0/mlflow/issues": _TRACES,
        "3.0/mlflow/datasets": _EVALUATION,
        "3.0/mlflow/genai": _EVALUATION,
        "3.0/mlflow/label-schemas": _EVALUATION,
        "3.0/mlflow/review-queues": _EVALUATION,
        "3.0/mlflow/scorer": _EVALUATION,
        "3.0/mlflow/scorers": _EVALUATION,
        "2.0/mlflow/gateway-proxy": _GATEWAY,
        "3.0/mlflow/gateway": _GATEWAY,
        "3.0/mlflow/mcp-servers": "MLflow's registry of MCP servers",
        "3.0/mlflow/prompt-optimization": _PROMPTS,
        "2.0/mlflow/webhooks": "Webhooks",
        "3.0/mlflow/assistant": "MLflow's assistant",
        "3.0/mlflow/demo": "MLflow's demonstration data",
        "3.0/mlflow/jobs": "Jobs of MLflow's server",
        "3.0/jobs": "Jobs of MLflow's server",
        "3.0/mlflow/workspaces": _ADMINISTRATION,
        "2.0/mlflow/users": _ADMINISTRATION,
        "3.0/mlflow/users": _ADMINISTRATION,
        "2.0/mlflow/experiments/permissions": _ADMINISTRATION,
        "2.0/mlflow/registered-models/permissions": _ADMINISTRATION,
        "2.0/mlflow/scorers/permissions": _ADMINISTRATION,
    }
)
"""Beginnings of paths below `/api/` and `/ajax-api/`, and what they are for."""


def find_subject(path: str) -> str | None:
    """What a path of MLflow that this server does not have is for; None for any other path.

    >>> find_subject("2.0/mlflow/traces/tr-1/info"), find_subject("2.0/mlflow/tracesuit")
    ('Traces', None)
    """
    parts = path.split("/")
    beginnings = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((_BEGINNINGS[each] for each in beginnings if each in _BEGINNINGS), None)


async def refuse_path(call: Call, rest: str) -> None:
    """Paths of MLflow that this server does not have."""
    subject = find_subject(rest)
    if subject is None:
        raise MlflowError(NO_ENDPOINT, f"There is no endpoint {call.route.method} {rest[:200]}")
    raise refuse_subject(subject)


async def refuse_spans(call: Call) -> None:
    """Traces that OpenTelemetry sends."""
    raise refuse_subject(_TRACES)


async def refuse_gateway(call: Call, rest: str) -> None:
    """Requests to a model behind MLflow's gateway."""
    raise refuse_subject(_GATEWAY)


def refuse_subject(subject: str) -> MlflowError:
    """The error for a part of MLflow that this server does not have."""
    is_plural = subject.endswith("s") and not subject.startswith("MLflow")
    verb = "are" if is_plural else "is"
    return MlflowError(
        NOT_IMPLEMENTED,
        f"{subject} {verb} not implemented by this server. It has experiments, runs, metrics, artifacts, logged models "
        "and the model registry.",
    )


def refusal_rows() -> Iterator[Route]:
    """Whatever no other route of MLflow has."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for prefix in ("api", "ajax-api"):
            yield _make_row(method, f"/{prefix}/{{rest:path}}", refuse_path)
        yield _make_row(method, "/gateway/{rest:path}", refuse_gateway)
    yield _make_row("POST", "/v1/traces", refuse_spans)


def _make_row(method: str, path: str, handler: Handler) -> Route:
    return Route(
        method,
        f"{MLFLOW}{path}",
        handler,
        Permission.READ,
        f"MLflow: {handler.__doc__}",
        "mlflow",
        streams_body=True,
        ignores_query=True,
        is_mlflow=True,
        is_change=False,
    )

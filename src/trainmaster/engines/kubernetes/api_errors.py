"""Answers of an API server that are errors, in words. Pure."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from typing import Any

from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException

_VERBS = {"GET": "read", "POST": "create", "PATCH": "change", "PUT": "replace", "DELETE": "delete"}
_ROLE_HINT = (
    "The user or service account needs a Role that allows it: deploy/kubernetes/role.yaml has all that Trainmaster "
    "uses. 'kubectl auth can-i --list' shows what it may do."
)
_SIGN_IN_HINT = "Check the credentials: 'kubectl get pods' with the same context must work."
_LONGEST = 2000
# A refusal of the authorizer, as opposed to those of quotas and policies, which are "forbidden" too.
_LACKS_RIGHT = re.compile(r"\bcannot \w+ (?:resource|path)\b")
_NOT_READY = "not yet ready to handle request"


class ApiError(ComputeTargetException):
    """The API server refused a request. `status` is its HTTP status, `reason` its own word, such as AlreadyExists."""

    def __init__(
        self,
        headline: str,
        cause: str = "",
        hint: str = "",
        status: int = 0,
        reason: str = "",
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(headline, cause=cause, hint=hint)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        """Seconds that the server asks for before the next attempt."""


def explain_answer(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error in an answer."""
    answer = read_status(body)
    what = f"{_VERBS.get(method, method)} {describe_path(path)}"
    if path.endswith("/exec"):
        what = f"run a program in {describe_path(path.removesuffix('/exec'))}"
    message = str(answer.get("message") or body.decode(errors="replace").strip() or f"HTTP status {status}")
    hint = {401: _SIGN_IN_HINT, 403: _ROLE_HINT}.get(status, "")
    headline = f"Kubernetes did not {what}: {_title(status)}"
    return ApiError(
        headline, message[:_LONGEST], hint, status, str(answer.get("reason") or ""), _read_seconds(headers, answer)
    )


def lacks_right(error: ApiError) -> bool:
    """Whether the server says that the user may not do this."""
    return error.status == 403 and _LACKS_RIGHT.search(error.cause) is not None


def is_not_ready(error: ApiError) -> bool:
    """Whether a part of the server has still to start. It says "forbidden" nevertheless."""
    return error.status == 403 and _NOT_READY in error.cause


def explain_loss(server: str, error: BaseException) -> ComputeTargetException:
    """Why a connection to the server could not be made, or was lost."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ComputeTargetException(
            f"the certificate of the Kubernetes API server {server} cannot be verified",
            cause=getattr(error, "verify_message", "") or str(error),
            hint="Check certificate-authority, server and tls-server-name of the cluster in the kubeconfig file.",
        )
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return ComputeTargetException(
            f"the Kubernetes API server {server} refused the TLS connection",
            cause=str(error),
            hint="The client certificate may have expired, or be of another cluster.",
        )
    cause = str(error) or ("It did not answer in time." if isinstance(error, TimeoutError) else type(error).__name__)
    return Unreachable(f"the Kubernetes API server {server} cannot be reached", cause=cause)


def missing_package(error: ImportError) -> ComputeTargetException:
    """A package of the extra is not installed."""
    return ComputeTargetException(
        f"the package '{(error.name or '').partition('.')[0]}' is missing, which runs on Kubernetes need",
        hint="pip install 'trainmaster[kubernetes]' in the environment of the dispatcher, then 'trainmaster down'.",
    )


def read_status(body: bytes) -> dict[str, Any]:
    """The Status object in an answer; empty if there is none, as from a proxy."""
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) and answer.get("kind") == "Status" else {}


def describe_path(path: str) -> str:
    """A path in words.

    >>> describe_path("/api/v1/namespaces/train/pods/tm-1/exec")
    'pods/tm-1/exec in namespace train'
    >>> describe_path("/apis/apps/v1/namespaces/train/deployments")
    'deployments in namespace train'
    >>> describe_path("/version")
    '/version'
    """
    words = path.strip("/").split("/")
    rest = words[2:] if words[0] == "api" else words[3:] if words[0] == "apis" else []
    if len(rest) > 2 and rest[0] == "namespaces":
        return f"{'/'.join(rest[2:])} in namespace {rest[1]}"
    return "/".join(rest) or path


def _title(status: int) -> str:
    titles = {
        400: "the request is wrong",
        401: "it does not accept the credentials",
        403: "forbidden",
        404: "there is none",
        409: "conflict",
        410: "too old",
        422: "invalid",
        429: "too many requests",
        500: "internal error",
        503: "not available",
        504: "it took too long",
    }
    return titles.get(status, f"status {status}")


def _read_seconds(headers: Mapping[str, str], answer: Mapping[str, Any]) -> float:
    details = answer.get("details")
    asked = headers.get("retry-after") or (details.get("retryAfterSeconds") if isinstance(details, dict) else None) or 0
    try:
        return min(max(float(asked), 0.0), 60.0)
    except (TypeError, ValueError):
        # A date, which API servers do not send.
        return 0.0

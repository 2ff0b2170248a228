"""How far a generation of a service is, from its Deployment and its pods. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainmaster.engines.kubernetes.reasons import waiting_words
from trainmaster.engines.kubernetes.services.manifests import GENERATION
from trainmaster.job.errors import WebserviceException

Object = Mapping[str, Any]

BROKEN = 3
"""The exit code of a server whose script cannot be used (`scoring/server/replica.py`)."""
_RESTARTS = 3
"""After so many ends of a replica that was never ready, its generation has failed."""


@dataclass(frozen=True)
class Rollout:
    """The state of a generation."""

    state: Literal["waiting", "ready", "failed", "missing"]
    words: str = ""
    """What it waits for."""
    error: WebserviceException | None = None


def look(deployment: Object | None, pods: Iterable[Object], generation: int, events: Iterable[Object] = ()) -> Rollout:
    """How far a generation is: it is ready when all its replicas are, and no older one gets requests."""
    if deployment is None:
        return Rollout("missing", "the Deployment does not exist")
    if deployment["metadata"]["labels"].get(GENERATION) != str(generation):
        return Rollout("waiting", "the Deployment has not changed yet")
    own = [pod for pod in pods if pod["metadata"]["labels"].get(GENERATION) == str(generation)]
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    updated, available = int(status.get("updatedReplicas") or 0), int(status.get("availableReplicas") or 0)
    seen = int(status.get("observedGeneration") or 0) >= int(deployment["metadata"].get("generation") or 0)
    if seen and updated >= wanted and available >= wanted and int(status.get("replicas") or 0) == updated:
        return Rollout("ready")
    error = find_error(own) or _overdue(deployment)
    if error is not None:
        return Rollout("failed", error=error)
    words = waiting_words(own, events) or f"{min(updated, available)} of {wanted} replicas are ready"
    return Rollout("waiting", words)


def find_error(pods: Sequence[Object]) -> WebserviceException | None:
    """Why the replicas of a generation cannot start: the error of its script, or how its container ended."""
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = _find_end(container)
            if not ended:
                continue
            if ended.get("exitCode") == BROKEN:
                return _script_error(str(ended.get("message") or ""))
            if not container.get("ready") and int(container.get("restartCount") or 0) >= _RESTARTS:
                return _container_error(ended)
    return None


def _find_end(container: Object) -> Mapping[str, Any]:
    for name in ("state", "lastState"):
        found = (container.get(name) or {}).get("terminated")
        if found:
            return dict(found)
    return {}


def _script_error(message: str) -> WebserviceException:
    """The server's own words, which it left in the state of its container."""
    try:
        told = json.loads(message)
        headline, cause, hint = (str(told.get(name) or "") for name in ("headline", "cause", "hint"))
    except (ValueError, AttributeError):
        headline, cause, hint = "", message, ""
    return WebserviceException(headline or "the scoring script cannot be used", cause=cause, hint=hint or _LOGS)


def _container_error(ended: Object) -> WebserviceException:
    if ended.get("reason") == "OOMKilled":
        return WebserviceException(
            "a replica was ended because it used more memory than its limit", hint="Give the service more memory_gb."
        )
    said = str(ended.get("message") or "").strip()[-2000:]
    code = ended.get("exitCode")
    return WebserviceException(f"replicas end with exit code {code} before they are ready", cause=said, hint=_LOGS)


def _overdue(deployment: Object) -> WebserviceException | None:
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            return WebserviceException(
                "the replicas did not become ready in time", cause=str(condition.get("message") or ""), hint=_LOGS
            )
    return None


def health(deployment: Object | None, pods: Iterable[Object], events: Iterable[Object] = ()) -> str:
    """Why a service that was ready does not answer; empty if at least one replica does."""
    if deployment is None:
        return "its Deployment was deleted"
    if int((deployment.get("status") or {}).get("availableReplicas") or 0) > 0:
        return ""
    found = list(pods)
    error = find_error(found)
    return (error.headline if error else "") or waiting_words(found, events) or "no replica is ready"


_LOGS = "See service.get_logs()."

"""What runs and services need to be allowed in a namespace, and nothing else (deploy/kubernetes/role*.yaml)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from trainmaster.engines.kubernetes.api import Api
from trainmaster.shared.records import TargetCheck

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NEEDED = {
    "pods": ("list", "watch", "create", "delete"),
    "pods/exec": ("get", "create"),
    "services": ("get", "list", "create", "delete"),
    "events": ("list",),
}
"""What runs need: resources with their verbs. Those of other groups than the core group have its name after a dot."""
NEEDED_BY_SERVICES = {
    "deployments.apps": ("get", "list", "watch", "create", "patch", "delete"),
    "services": ("get", "create", "patch", "delete"),
    "secrets": ("create", "patch", "delete"),
    "pods": ("patch",),
    "pods/log": ("get",),
    "services/proxy": ("get", "create"),
    "horizontalpodautoscalers.autoscaling": ("create", "patch", "delete"),
    "ingresses.networking.k8s.io": ("create", "patch", "delete"),
}
"""What services need in addition."""


async def check_permissions(api: Api) -> list[TargetCheck]:
    """Whether the user of the target may do what runs need, for each resource."""
    return await _check_all(api, NEEDED, "runs", "role.yaml")


async def check_service_permissions(api: Api) -> list[TargetCheck]:
    """The same for what services need in addition."""
    return await _check_all(api, NEEDED_BY_SERVICES, "services", "role-services.yaml")


async def _check_all(api: Api, needed: Mapping[str, tuple[str, ...]], needed_by: str, role: str) -> list[TargetCheck]:
    checks = (_check(api, resource, verbs, needed_by, role) for resource, verbs in needed.items())
    return list(await asyncio.gather(*checks))


async def _check(api: Api, resource: str, verbs: tuple[str, ...], needed_by: str, role: str) -> TargetCheck:
    allowed = await asyncio.gather(*(_may(api, resource, verb) for verb in verbs))
    missing = [verb for verb, may in zip(verbs, allowed, strict=True) if not may]
    name = f"permission for {resource}"
    if not missing:
        return TargetCheck(name, True, ", ".join(verbs), needed_by)
    lacking = f"its user may not {', '.join(missing)} {resource} in namespace {api.namespace}"
    return TargetCheck(name, False, f"{lacking}: it needs the Role in deploy/kubernetes/{role}", needed_by)


async def _may(api: Api, resource: str, verb: str) -> bool:
    whole, _, part = resource.partition("/")
    kind, _, group = whole.partition(".")
    attributes = {"namespace": api.namespace, "verb": verb, "group": group, "resource": kind, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.create(REVIEWS, review)
    return bool((answer.get("status") or {}).get("allowed"))

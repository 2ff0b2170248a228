"""What runs need to be allowed in a namespace, and nothing else (deploy/kubernetes/role.yaml)."""

from __future__ import annotations

import asyncio

from trainmaster.engines.kubernetes.api import Api
from trainmaster.shared.records import TargetCheck

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NEEDED = {
    "pods": ("list", "watch", "create", "delete"),
    "pods/exec": ("get", "create"),
    "services": ("get", "list", "create", "delete"),
    "events": ("list",),
}
"""Resources of the core group, with the verbs."""


async def check_permissions(api: Api) -> list[TargetCheck]:
    """Whether the user of the target may do what runs need, for each resource."""
    return list(await asyncio.gather(*(_check(api, resource, verbs) for resource, verbs in NEEDED.items())))


async def _check(api: Api, resource: str, verbs: tuple[str, ...]) -> TargetCheck:
    allowed = await asyncio.gather(*(_may(api, resource, verb) for verb in verbs))
    missing = [verb for verb, may in zip(verbs, allowed, strict=True) if not may]
    name = f"permission for {resource}"
    if not missing:
        return TargetCheck(name, True, ", ".join(verbs))
    lacking = f"its user may not {', '.join(missing)} {resource} in namespace {api.namespace}"
    return TargetCheck(name, False, f"{lacking}: it needs the Role in deploy/kubernetes/role.yaml")


async def _may(api: Api, resource: str, verb: str) -> bool:
    kind, _, part = resource.partition("/")
    attributes = {"namespace": api.namespace, "verb": verb, "group": "", "resource": kind, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.create(REVIEWS, review)
    return bool((answer.get("status") or {}).get("allowed"))

"""Which refusals of an API server pass: those of one that has just started."""

from __future__ import annotations

import pytest

from trainmaster.engines.kubernetes.api_errors import ApiError, is_not_ready, lacks_right
from trainmaster.engines.kubernetes.rights import PASSING_SECONDS, Rights, name_right

ACCOUNT = 'User "system:serviceaccount:train:me"'
NO_RIGHT = f'pods is forbidden: {ACCOUNT} cannot list resource "pods" in API group "" in the namespace "train"'
NO_ROLE = f'{NO_RIGHT}: RBAC: role.rbac.authorization.k8s.io "trainmaster-runs" not found'
NOT_READY = 'pods "tm-a" is forbidden: not yet ready to handle request'
QUOTA = 'pods "tm-a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
POLICY = 'pods "tm-a" is forbidden: violates PodSecurity "restricted:latest": privileged'


def refusal(cause: str, status: int = 403) -> ApiError:
    return ApiError("Kubernetes did not read pods: forbidden", cause, status=status)


@pytest.mark.parametrize(
    ("cause", "status", "expected"),
    [
        (NO_RIGHT, 403, (True, False)),
        (NO_ROLE, 403, (True, False)),
        (f'forbidden: {ACCOUNT} cannot get path "/version"', 403, (True, False)),
        (NOT_READY, 403, (False, True)),
        (QUOTA, 403, (False, False)),
        (POLICY, 403, (False, False)),
        (NO_RIGHT, 500, (False, False)),
    ],
)
def test_kinds_of_refusals(cause, status, expected):
    error = refusal(cause, status)
    assert (lacks_right(error), is_not_ready(error)) == expected


def test_a_right_that_was_there_before_may_be_missing_for_a_while():
    rights = Rights()
    rights.note_grant("GET pods")
    assert rights.is_passing("GET pods", refusal(NO_RIGHT), 1000.0)
    assert rights.is_passing("GET pods", refusal(NO_ROLE), 1000.0 + PASSING_SECONDS - 1)
    assert not rights.is_passing("GET pods", refusal(NO_RIGHT), 1000.0 + PASSING_SECONDS)
    # Somebody has withdrawn it, which does not pass.
    assert not rights.is_passing("GET pods", refusal(NO_RIGHT), 1000.0 + 10 * PASSING_SECONDS)


def test_a_right_that_came_back_may_be_missing_again():
    rights = Rights()
    for start in (1000.0, 1050.0, 5000.0):
        rights.note_grant("GET pods")
        assert rights.is_passing("GET pods", refusal(NO_RIGHT), start)
        assert rights.is_passing("GET pods", refusal(NO_RIGHT), start + 40)


def test_a_right_that_was_never_there_is_missing():
    rights = Rights()
    rights.note_grant("GET pods")
    assert not rights.is_passing("POST pods", refusal(NO_RIGHT), 1000.0)


def test_a_server_that_was_away_may_not_know_any_right():
    """Also one that this dispatcher has not used yet."""
    rights = Rights()
    rights.note_loss(1000.0)
    assert rights.is_passing("POST pods", refusal(NO_RIGHT), 1010.0)
    assert not rights.is_passing("POST pods", refusal(NO_RIGHT), 1010.0 + PASSING_SECONDS)
    assert not rights.is_passing("POST services", refusal(NO_RIGHT), 1000.0 + PASSING_SECONDS)


def test_a_server_that_starts_says_so():
    assert Rights().is_passing("POST pods", refusal(NOT_READY), 1000.0)


@pytest.mark.parametrize("cause", [QUOTA, POLICY])
def test_quotas_and_policies_do_not_pass(cause):
    rights = Rights()
    rights.note_grant("POST pods")
    rights.note_loss(1000.0)
    assert not rights.is_passing("POST pods", refusal(cause), 1000.0)


def test_a_refusal_long_ago_does_not_count():
    """The request was given up then, so nobody knows how long the right was missing."""
    rights = Rights()
    rights.note_grant("GET pods")
    assert rights.is_passing("GET pods", refusal(NO_RIGHT), 1000.0)
    assert rights.is_passing("GET pods", refusal(NO_RIGHT), 9000.0)


@pytest.mark.parametrize(
    ("request_", "right"),
    [
        (("POST", "/api/v1/namespaces/train/pods", {}), "POST pods"),
        (("GET", "/api/v1/namespaces/train/pods", {"watch": "1"}), "WATCH pods"),
        (("GET", "/api/v1/namespaces/train/events", {"watch": ""}), "GET events"),
        (("PATCH", "/apis/apps/v1/namespaces/train/deployments/s", {}), "PATCH deployments"),
        (("GET", "/api/v1/namespaces/train", {}), "GET api/namespaces/train"),
        (
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}),
            "POST apis/v1/selfsubjectaccessreviews",
        ),
        (("GET", "/version", {}), "GET version"),
    ],
)
def test_names_of_rights(request_, right):
    assert name_right(*request_) == right

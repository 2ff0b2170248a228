"""The conformance suite of engines on a real Kubernetes, with files in a folder that both sides see.

The folder changes where files are and who starts the agent, so CI runs only the tests that look at those. With
`make test-kubernetes`, all of them run.
"""

from __future__ import annotations

import os

import pytest
from tests.cluster.kubernetes_place import kubernetes_place

from trainmaster.testing import EngineConformance


@pytest.fixture(scope="module")
def place(kubernetes_namespace):
    folder = kubernetes_namespace.folder
    with kubernetes_place(kubernetes_namespace, folder, storage=folder) as made:
        yield made


class TestStorage(EngineConformance):
    if "KUBERNETES_IN_FULL" not in os.environ:
        test_start = test_metrics = test_logs_while_it_runs = test_questions = test_two_runs_at_once = None  # type: ignore[assignment]
        test_time_limit = test_failing_rank = test_exit_code = test_cancelled_after_adoption = None  # type: ignore[assignment]

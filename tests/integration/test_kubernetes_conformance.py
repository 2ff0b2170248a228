"""The conformance suite of engines on a real Kubernetes, with files over the API server."""

from __future__ import annotations

import pytest
from tests.cluster.kubernetes_place import kubernetes_place

from trainmaster.testing import EngineConformance


@pytest.fixture(scope="module")
def place(kubernetes_namespace, tmp_path_factory):
    with kubernetes_place(kubernetes_namespace, tmp_path_factory.mktemp("stream")) as made:
        yield made


class TestStream(EngineConformance):
    pass

"""The distributed examples on a real Kubernetes, with nothing but `compute_target` changed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.cluster.kubernetes import Cluster
from tests.cluster.kubernetes_namespace import CLAIM, create_target
from tests.elsewhere import run_example

from trainmaster import Workspace

# Frameworks are installed, on a new machine Horovod is compiled, and all of it travels.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cluster(frameworks: Workspace) -> Iterator[str]:
    """The name of a target whose pods keep environments in a claim: what two examples use is sent once."""
    with Cluster() as made, made.create_namespace("frameworks") as namespace:
        create_target(frameworks, "kubernetes", namespace, cache={"kind": "claim", "name": CLAIM})
        yield "kubernetes"
        namespace.wait_until_empty()


# Horovod has all that the others have: an environment that travels, ranks in two pods, and mpirun. Each takes minutes.
EXAMPLES = [("pytorch-horovod", "digits-horovod")]
if "KUBERNETES_IN_FULL" in os.environ:
    EXAMPLES += [("pytorch-ddp", "digits-ddp"), ("tensorflow-parameter-server", "digits-parameter-server")]


@pytest.mark.parametrize(("name", "experiment"), EXAMPLES)
def test_example(cluster, frameworks, framework_home, tmp_path, name, experiment):
    run_example(name, experiment, cluster, frameworks, framework_home, tmp_path)

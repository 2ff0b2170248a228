"""A place for the conformance suite of engines: a target on the Kubernetes cluster for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.kubernetes_namespace import Namespace, create_target
from tests.conftest import end_workspace
from trainmaster import Run, Workspace
from trainmaster.testing import EnginePlace


@contextlib.contextmanager
def kubernetes_place(namespace: Namespace, folder: Path, storage: Path | None = None) -> Iterator[EnginePlace]:
    """A workspace in `folder` with a target; at the end, nothing of its runs is left in the cluster."""
    workspace = Workspace.create("on-kubernetes", path=folder / "workspace", show_output=False)
    create_target(workspace, "cluster", namespace, storage)

    def lose(run: Run, number: int) -> None:
        pod = namespace.pods_of(run)[number]["metadata"]["name"]
        assert namespace.cluster.kill_container(namespace.name, pod)

    yield EnginePlace(workspace, "cluster", lose=lose, left=lambda run: namespace.cluster.processes(run.id))
    end_workspace(workspace.path)
    namespace.wait_until_empty()

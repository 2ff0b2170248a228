"""Four ranks on two local nodes, by each way of starting them: what the tests of failing and of hanging ranks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import end_workspace, run_folder

from trainmaster import (
    ComputeTarget,
    Estimator,
    Experiment,
    Gloo,
    LocalCompute,
    Mpi,
    ParameterServer,
    PyTorch,
    TensorFlow,
    Workspace,
)
from trainmaster.sdk.run.run import Run

Submit = Callable[..., Run]


@contextmanager
def experiment_on_two_nodes(folder: Path) -> Iterator[Experiment]:
    """In a workspace of its own, whose target `box` has two nodes."""
    ws = Workspace.create("ranks", path=folder / "ws", show_output=False)
    ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=2))
    yield Experiment(ws, "ranks")
    end_workspace(ws.path)


def submitter(experiment: Experiment, folder: Path) -> Submit:
    """Submits a script given as text, as four processes on two nodes."""

    def send(text: str, kind: str, **settings: Any) -> Run:
        source = folder / "source"
        source.mkdir(exist_ok=True)
        (source / "train.py").write_text(text)
        settings |= {"entry_script": "train.py", "compute_target": "box"}
        return experiment.submit(_estimator(str(source), kind, settings))

    return send


def logs(run: Run) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(run_folder(run).logs.glob("70_driver_log*"))}


def _estimator(folder: str, kind: str, settings: dict[str, Any]) -> Estimator:
    if kind == "mpi":
        # One environment for all, with the real thing in it.
        return Estimator(folder, node_count=2, distributed_training=Mpi(2), pip_packages=["mpi4py"], **settings)
    if kind == "gloo":
        return PyTorch(
            folder, node_count=2, process_count_per_node=2, distributed_training=Gloo(), user_managed=True, **settings
        )
    if kind == "ps":
        backend = ParameterServer(worker_count=2, parameter_server_count=1)
        return TensorFlow(folder, node_count=2, distributed_training=backend, user_managed=True, **settings)
    return Estimator(folder, user_managed=True, **settings)

"""The conformance suite of engines, on a real Slurm."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import end_workspace

from trainmaster import Run, Workspace
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.testing import EngineConformance, EnginePlace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePlace]:
    folder = tmp_path_factory.mktemp("slurm")
    with MiniSlurm(folder / "cluster", nodes=2) as slurm, variables(slurm):
        workspace = Workspace.create("slurm", path=folder / "workspace", show_output=False)
        ComputeTarget.create(workspace, "cluster", SlurmCompute.configuration(max_nodes=2, shared_folder=str(folder)))

        yield EnginePlace(
            workspace,
            "cluster",
            lose=lambda run, number: machine_is_off(slurm, run, number),
            restore=lambda run: machines_are_on(slurm, run),
            left=lambda run: list(map(str, processes_of(run.id))),
        )
        end_workspace(workspace.path)


def machine_is_off(slurm: MiniSlurm, run: Run, number: int) -> None:
    """A node of a run without power: slurmd is gone, and all that it had started."""
    name = _names(run)[number]
    slurm.kill_node(name)
    claim = json.loads((_nodes(run) / str(number) / "agent.json").read_text())
    for pid in [*_above(claim["pid"]), claim["pid"]]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    slurm.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=dead")


def machines_are_on(slurm: MiniSlurm, run: Run) -> None:
    """All nodes of a run are switched on again."""
    for name in _names(run):
        if name not in slurm.living():
            slurm.start_node(name)
            slurm.run("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)


def _nodes(run: Run) -> Path:
    return WorkspaceFolder(run.experiment.workspace.path).run(run.id).path / "nodes"


def _names(run: Run) -> list[str]:
    return list(json.loads((_nodes(run) / "gang.json").read_text())["names"])


def _above(pid: int) -> list[int]:
    """The slurmstepd that keeps a process."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    command = Path(f"/proc/{parent}/comm").read_text()
    return [parent] if command.startswith("slurmstepd") else []


class TestSlurm(EngineConformance):
    pass

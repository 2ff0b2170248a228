"""What a Slurm with accounting tells of runs, and runs that use more memory than it gave them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.accounting import AccountedSlurm, WatchedSlurm
from tests.cluster.slurm import variables
from tests.conftest import end_workspace, ended

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget

MEGABYTE = 1024 * 1024
# Takes memory, then time: slurmd looks at what a job uses once a second.
USES = """
import time
held = bytearray({megabytes} << 20)
for place in range(0, len(held), 4096):
    held[place] = 1
end = time.process_time() + {seconds}
while time.process_time() < end:
    pass
time.sleep({sleeps})
"""


def submit(ws: Workspace, source: Path, script: str) -> dict[str, Any]:
    (source / "train.py").write_text(script)
    estimator = Estimator(str(source), entry_script="train.py", compute_target="cluster", user_managed=True)
    return ended(Experiment(ws, "memory").submit(estimator))


def workspace_of(place: Path) -> Workspace:
    ws = Workspace.create("memory", path=place / "ws", show_output=False)
    settings = {"cpus_per_node": 1, "shared_folder": str(place), "extra_sbatch": ["--mem=100M"]}
    ComputeTarget.create(ws, "cluster", SlurmCompute.configuration("main", max_nodes=1, **settings))
    return ws


@pytest.fixture(scope="module")
def accounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    place = tmp_path_factory.mktemp("accounted")
    with AccountedSlurm(place / "cluster", nodes=1) as slurm, variables(slurm):
        ws = workspace_of(place)
        yield ws
        end_workspace(ws.path)


def test_what_accounting_knows_is_with_the_run(accounted: Workspace, tmp_path: Path) -> None:
    details = submit(accounted, tmp_path, USES.format(megabytes=60, seconds=1, sleeps=4))
    assert details["status"] == "Completed", details
    known = details["properties"]
    assert 60 * MEGABYTE < int(known["slurm.memory_peak_bytes"]) <= 100 * MEGABYTE
    assert 1 <= int(known["slurm.cpu_efficiency"].removesuffix("%")) <= 100


def test_the_kernel_ends_what_uses_more_memory_than_slurm_gave(accounted: Workspace, tmp_path: Path) -> None:
    details = submit(accounted, tmp_path, USES.format(megabytes=400, seconds=0, sleeps=600))
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "OutOfMemory", details["error"]
    assert "memory" in details["error"]["message"]


def test_slurm_itself_ends_what_uses_more_memory_than_it_gave(tmp_path: Path) -> None:
    """It kills the agent, too, which can say nothing."""
    with WatchedSlurm(tmp_path / "cluster", nodes=1) as slurm, variables(slurm):
        ws = workspace_of(tmp_path)
        try:
            source = tmp_path / "source"
            source.mkdir()
            details = submit(ws, source, USES.format(megabytes=400, seconds=0, sleeps=600))
        finally:
            end_workspace(ws.path)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "OutOfMemory", details["error"]
    assert "used more memory than Slurm gave it" in details["error"]["message"]

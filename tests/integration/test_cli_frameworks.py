"""Frameworks from the command line, run to the end. The environments are those of the other tests of frameworks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster import Workspace

pytestmark = pytest.mark.timeout(1800)

SUM = """
import os, torch
torch.distributed.init_process_group("gloo")
total = torch.tensor([float(os.environ["RANK"]) + 1])
torch.distributed.all_reduce(total)
print("torch", torch.__version__.split("+")[0], "sum", total.item(), flush=True)
torch.distributed.destroy_process_group()
os._exit(0)
"""
# The first rank also starts processes by itself, as a user's own launcher would.
PLACE = """
import os, subprocess
print("rank", os.environ["OMPI_COMM_WORLD_RANK"], "of", os.environ["OMPI_COMM_WORLD_SIZE"], flush=True)
if os.environ["RANK"] == "0":
    outer = ("OMPI_", "PMIX_", "PRTE_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    own.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    line = ["mpirun", "--bind-to", "none", "--hostfile", os.environ["TRAINMASTER_HOSTFILE"], "-np", "4"]
    inner = "echo inner rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"
    subprocess.run([*line, "sh", "-c", inner], env=own, check=True)
"""


def submit(home: Path, folder: Path, script: str, *options: str) -> str:
    (folder / "train.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster.cli", "submit", str(folder), "train.py", *options, "--wait"],
        cwd=folder,
        env={**os.environ, "TRAINMASTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_pytorch_on_two_nodes(framework_home: Path, frameworks: Workspace, tmp_path: Path) -> None:
    printed = submit(framework_home, tmp_path, SUM, "--framework", "pytorch=2.13", "--gloo", "--nodes", "2")
    assert "torch 2.13.0 sum 3.0" in printed


def test_mpi(framework_home: Path, frameworks: Workspace, tmp_path: Path) -> None:
    printed = submit(framework_home, tmp_path, PLACE, "--mpi", "--nodes", "2", "--processes-per-node", "2")
    assert "rank 0 of 4" in printed
    assert all(f"inner rank {rank} of 4" in printed for rank in range(4))

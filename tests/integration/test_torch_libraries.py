"""The examples with FSDP2, Accelerate and DeepSpeed, as a newcomer runs them, while a node is lost in the middle."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ended, run_folder, until

from trainmaster import Experiment, Gloo, PyTorch, Workspace
from trainmaster.job.agent.tree import processes_of
from trainmaster.shared.json_files import read_json

EXAMPLES = Path(__file__).parents[2] / "examples"

# DeepSpeed compiles a part of itself when it is first used.
pytestmark = pytest.mark.timeout(1800)

# In its first attempt the script waits after its second checkpoint, so that the test can end a node then.
WAIT = """    save(epoch + 1)
    if epoch == 1 and os.environ["TRAINMASTER_ATTEMPT"] == "1":
        open("outputs/waits-" + os.environ["RANK"], "w").close()
        __import__("time").sleep(600)
"""


@pytest.mark.parametrize(
    ("name", "experiment"),
    [("pytorch-fsdp", "digits-fsdp"), ("accelerate", "digits-accelerate"), ("deepspeed", "digits-deepspeed")],
)
def test_the_others_go_on_from_the_checkpoint(
    name: str, experiment: str, framework_home: Path, frameworks: Workspace, tmp_path: Path
) -> None:
    example = tmp_path / name
    shutil.copytree(EXAMPLES / name, example)
    script = example / "project" / "train.py"
    assert script.read_text().count("    save(epoch + 1)\n") == 1
    script.write_text(script.read_text().replace("    save(epoch + 1)\n", WAIT))
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        program = subprocess.Popen(
            [sys.executable, str(example / "submit.py")],
            cwd=tmp_path,
            env={**os.environ, "TRAINMASTER_HOME": str(framework_home)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        run = until(lambda: next(Experiment(frameworks, experiment).get_runs(), None), what="the run")
        outputs = run_folder(run).path / "code" / "outputs"
        until(
            lambda: program.poll() is not None or all((outputs / f"waits-{rank}").exists() for rank in (0, 1)),
            seconds=1200,
            what="the second checkpoint",
        )
        assert program.poll() is None, printed.read_text()
        claim = read_json(run_folder(run).node(1) / "agent.json")
        assert claim is not None
        os.kill(claim["pid"], signal.SIGKILL)
        assert program.wait(600) == 0, printed.read_text()
    finally:
        program.kill()
        program.wait()
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert [each["status"] for each in details["attempts"]] == ["Failed", "Completed"]
    logs = run_folder(run).logs
    assert "rank 0 of 2, on node 0: starts after epoch 0" in (logs / "attempt_1" / "70_driver_log_0.txt").read_text()
    assert "rank 0 of 1, on node 0: starts after epoch 2" in printed.read_text()
    metrics = run.get_metrics()
    assert len(metrics["loss"]) == 5 and metrics["loss"][-1] < metrics["loss"][0] / 2, metrics["loss"]
    assert metrics["accuracy"] > 0.7
    assert "outputs/network.pt" in run.get_file_names()
    assert processes_of(run.id) == []
    assert re.search(r"attempt 1 failed: .*; starting attempt 2 on 1 of 2 nodes", printed.read_text())


LAUNCHED = """
import os
import deepspeed
import torch
from azureml.core import Run

deepspeed.init_distributed("gloo", verbose=False)
total = torch.tensor([float(os.environ["RANK"])])
torch.distributed.all_reduce(total)
Run.get_context().log("sum of " + os.environ["CROSS_SIZE"] + " hosts by rank " + os.environ["RANK"], total.item())
torch.distributed.barrier()
os._exit(0)
"""

LAUNCH = """
# The first process on a machine starts all of them. The others have nothing to do.
test "$RANK" != 0 || exec deepspeed --no_ssh --hostfile "$TRAINMASTER_HOSTFILE" --node_rank 0 \\
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" train.py
"""


def test_deepspeed_launches_by_the_hostfile(frameworks: Workspace, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LAUNCHED)
    (tmp_path / "launch.sh").write_text(LAUNCH)
    estimator = PyTorch(
        str(tmp_path),
        entry_script="launch.sh",
        compute_target="local",
        node_count=2,
        distributed_training=Gloo(),
        pip_packages=["deepspeed"],
    )
    run = Experiment(frameworks, "launched").submit(estimator)
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    # Both local nodes are one machine with two processes.
    assert run.get_metrics() == {"sum of 1 hosts by rank 0": 1.0, "sum of 1 hosts by rank 1": 1.0}
    assert processes_of(run.id) == []

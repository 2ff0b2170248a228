"""What runs use of their machines: measured for each rank and node, kept with the run, and shown apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from node_run import NodeRun, interpreters, make_kit
from tests.conftest import ended, run_folder, until
from tests.left_out import leave_out

from trainmaster import ComputeTarget, Experiment, Gloo, LocalCompute, PyTorch, Workspace
from trainmaster.job.agent.process import look
from trainmaster.sdk.report.contents import read_report
from trainmaster.sdk.report.page import write_page
from trainmaster.sdk.run.run import Run

BACKENDS = ("local", "server")
OFTEN = {"TRAINMASTER_SYSTEM_METRICS": "0.2"}
MEMORY, NODE_MEMORY = "system/memory_gb", "system/node/memory_gb"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("notebook_folder"),
    pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated"),
]


def is_measured(run: Run, times: int = 2, ranks: int = 1) -> bool:
    found = run.get_system_metrics().get(MEMORY, {})
    return len(found) == ranks and all(len(each.values) >= times for each in found.values())


def say(command: str, run: Run, *options: str) -> str:
    """What a command prints about a run."""
    workspace = run.experiment.workspace
    place = workspace.backend.as_config().get("path", workspace.name)
    arguments = [sys.executable, "-m", "trainmaster.cli", command, run.id, "--workspace", place, *options]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def test_a_run_is_measured_and_its_own_metrics_stay_apart(launch: Callable[..., Run], gate: Callable[..., Any]) -> None:
    here = gate("here")
    script = f"""
import os
from azureml.core import Run
run = Run.get_context()
run.log('loss', 0.5)
run.log('system/own', 1)
data = os.urandom(1 << 28)
{here.wait}
"""
    run = launch(script, environment_variables=OFTEN)
    here.await_arrival()
    until(lambda: is_measured(run) and run.get_system_metrics()[MEMORY][0].peak > 0.25, what="the memory")
    here.open()
    ended(run)
    assert run.get_metrics() == {"loss": 0.5, "system/own": 1}
    assert set(run.get_metrics_by_rank()[0]) == {"loss", "system/own"}
    found = run.get_system_metrics()
    assert found[MEMORY][0].peak < 1.0
    assert found[NODE_MEMORY][0].peak > found[MEMORY][0].last
    assert {"system/cpu_percent", "system/processes", "system/node/cpu_percent"} <= set(found)
    assert list(run.get_system_metrics(MEMORY)) == [MEMORY]
    assert run.get_system_metrics("loss") == {}
    shown = say("metrics", run, "--system")
    assert MEMORY in shown
    assert "node 0" in shown
    assert "loss" not in shown
    assert MEMORY not in say("metrics", run)


@pytest.mark.local_only("looks at the journals")
def test_off_means_that_nothing_is_measured(launch: Callable[..., Run], gate: Callable[..., Any]) -> None:
    here = gate("here")
    off = {"TRAINMASTER_SYSTEM_METRICS": "off"}
    quiet = launch(here.wait, environment_variables=off)
    here.await_arrival()
    other = launch(WAIT_FOR_MEASUREMENTS, environment_variables=OFTEN)
    ended(other)
    here.open()
    ended(quiet)
    assert is_measured(other, times=1)
    assert quiet.get_system_metrics() == {}
    assert list(run_folder(quiet).journals.glob("system-*")) == []


WAIT_FOR_MEASUREMENTS = """
import glob, os, time
def count():
    name = "system-%s-*" % os.environ["TRAINMASTER_NODE"]
    journals = glob.glob(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "journals", name))
    return sum(len(open(path).readlines()) for path in journals)
enough = count() + 2
while count() < enough:
    time.sleep(0.02)
"""
"""Lines of a script: wait until the node was measured twice from now on."""


@pytest.mark.local_only("the same agents")
def test_each_rank_and_node_is_measured(shared: Workspace, project: Callable[..., Path]) -> None:
    ComputeTarget.create(shared, "pair", LocalCompute.configuration(nodes=2))
    script = (
        """
import os
data = os.urandom(1 << 28) if os.environ["RANK"] == "2" else b""
"""
        + WAIT_FOR_MEASUREMENTS
    )
    estimator = PyTorch(
        str(project(train=script)),
        entry_script="train.py",
        compute_target="pair",
        node_count=2,
        process_count_per_node=2,
        distributed_training=Gloo(),
        environment_variables=OFTEN,
        user_managed=True,
    )
    run = Experiment(shared, "ranks").submit(estimator)
    ended(run)
    found = run.get_system_metrics()
    assert sorted(found[MEMORY]) == [0, 1, 2, 3]
    assert [rank for rank, each in found[MEMORY].items() if each.peak > 0.25] == [2]
    assert sorted(found[NODE_MEMORY]) == [0, 1]
    page = write_page(read_report(shared, run.id, time.time()))
    assert "System use" in page and "<figcaption>node/memory_gb" in page and "rank 3" in page and "node 1" in page


# The end of a run without memory


@pytest.fixture
def memory_limit() -> Iterator[str]:
    """The cgroup.procs of a cgroup with 64 MB of memory."""
    name = f"trainmaster_test_{uuid.uuid4().hex[:8]}"
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    folder, limit = (v1 / name, "memory.limit_in_bytes") if v1.is_dir() else (v2 / name, "memory.max")
    try:
        folder.mkdir()
        (folder / limit).write_text(str(64 << 20))
        if (folder / "memory.swap.max").exists():
            (folder / "memory.swap.max").write_text("0")
    except OSError as error:
        leave_out(f"needs a memory cgroup: {error.strerror}")
    yield str(folder / "cgroup.procs")
    until(lambda: _remove(folder), what="the end of the cgroup")


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


@pytest.mark.local_only("needs a cgroup of this machine")
def test_an_end_without_memory_says_the_peak_and_the_limit(launch: Callable[..., Run], memory_limit: str) -> None:
    run = launch(f"""
import os
for pid in (os.getppid(), os.getpid()):
    os.write(os.open({memory_limit!r}, os.O_WRONLY), b"%d" % pid)
data = [bytearray(os.urandom(1 << 20)) for _ in range(256)]
""")
    run.wait_for_completion(raise_on_error=False)
    error = run.get_details()["error"]["error"]
    assert error["code"] == "OutOfMemory"
    assert "rank 0 on node 0 was killed by the kernel because the memory was used up" in error["message"]
    assert "its cgroup allows 64.0 MB" in error["message"]
    peak = float(error["message"].partition("it used ")[2].partition(" MB")[0])
    assert 32 < peak < 96


@pytest.mark.local_only("the same agents")
def test_a_memory_error_keeps_its_traceback_and_says_the_peak(launch: Callable[..., Run]) -> None:
    run = launch("""
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
data = bytearray(1 << 34)
""")
    run.wait_for_completion(raise_on_error=False)
    message = run.get_details()["error"]["error"]["message"]
    assert message.startswith("MemoryError")
    assert "data = bytearray(1 << 34)" in message
    assert "rank 0 on node 0 lacked memory: it used " in message
    assert "its address space is limited to 1.0 GB (ulimit -v)" in message


# The measuring process


@pytest.fixture(params=interpreters())
def node_run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NodeRun]:
    kit = make_kit(tmp_path / "kit")
    run = NodeRun(tmp_path, kit, request.param, f"test_{uuid.uuid4().hex[:8]}")
    yield run
    run.close()


@pytest.mark.local_only("no workspace")
def test_the_measuring_process_ends_with_its_agent(node_run: NodeRun) -> None:
    node_run.plan["sample_seconds"] = 0.2
    node_run.script("import time; time.sleep(600)")
    node_run.start()
    until(lambda: list(node_run.folder.glob("journals/system-*")), what="a measurement")
    (agent,) = node_run.agents
    children = [int(word) for word in Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()]
    assert len(children) == 2, "the script and the measuring process"
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait()
    until(lambda: all((one := look(pid)) is None or one.gone for pid in children), what="the end of all")


@pytest.mark.local_only("no workspace")
def test_measurements_are_no_sign_of_life(node_run: NodeRun) -> None:
    node_run.plan.update(sample_seconds=0.2, hang_seconds=2)
    node_run.script("import time; time.sleep(600)")
    assert node_run.carry_out()["reason"] == "hang"
    assert list(node_run.folder.glob("journals/system-*"))

"""Agents that are forked by one Python instead of each being a new one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended, until

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.agent import process
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.json_files import read_json

pytestmark = pytest.mark.timeout(300)

Submit = Callable[..., Run]


def pool_of(workspace: Workspace) -> int | None:
    """The process id of the dispatcher's agent pool, if it has one."""
    dispatcher = int(WorkspaceFolder(workspace.path).lock.read_text())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            found = process.look(entry.name)
            line = process.read(f"/proc/{entry.name}/cmdline") or b""
            if found is not None and found.parent == dispatcher and b"--pool" in line.split(b"\0"):
                return int(entry.name)
    return None


def claim_of(workspace: Workspace, run: Run) -> dict[str, Any]:
    place = WorkspaceFolder(workspace.path).run(run.id).node(0) / "agent.json"
    found: dict[str, Any] = until(lambda: read_json(place), what="the claim")
    return found


@pytest.fixture
def pool(workspace: Workspace, submit: Submit) -> int:
    """Runs that come quickly one after the other make the dispatcher have one."""

    def found() -> int | None:
        # At once, and not one after the other's end, which may be long after on a busy machine.
        for run in [submit("pass") for _ in range(3)]:
            ended(run)
        return pool_of(workspace)

    number: int = until(found, what="an agent pool")
    return number


def test_a_forked_agent_is_as_good_as_any(workspace: Workspace, submit: Submit, pool: int) -> None:
    run = submit("import sys; print('hello'); sys.exit(3)")
    details = ended(run)
    assert details["status"] == "Failed" and details["error"]["exit_code"] == 3
    log = WorkspaceFolder(workspace.path).run(run.id).node(0) / "agent.log"
    assert "rank 0 ended with exit code 3" in log.read_text()


def test_agents_live_on_without_it_and_the_next_are_started_directly(
    workspace: Workspace, submit: Submit, pool: int, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    waiting = submit(script)
    claim = claim_of(workspace, waiting)
    assert process.look(claim["pid"]).parent == pool
    os.kill(pool, signal.SIGKILL)
    until(lambda: process.start_time(pool) is None or process.look(pool).gone, what="its end")
    assert ended(submit("pass"))["status"] == "Completed"
    assert process.is_alive(claim["pid"], claim["start_time"], claim["boot_id"])
    gate.touch()
    assert ended(waiting)["status"] == "Completed"


def test_one_that_hangs_holds_nobody_up(workspace: Workspace, submit: Submit, pool: int) -> None:
    os.kill(pool, signal.SIGSTOP)
    try:
        assert ended(submit("pass"))["status"] == "Completed"
    finally:
        os.kill(pool, signal.SIGKILL)


def test_it_ends_with_the_dispatcher_and_agents_do_not(
    workspace: Workspace, submit: Submit, pool: int, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    waiting = submit(script)
    claim = claim_of(workspace, waiting)
    folder = WorkspaceFolder(workspace.path)
    os.kill(int(folder.lock.read_text()), signal.SIGKILL)
    until(lambda: process.start_time(pool) is None or process.look(pool).gone, what="its end")
    assert process.is_alive(claim["pid"], claim["start_time"], claim["boot_id"])
    gate.touch()
    assert ended(waiting)["status"] == "Completed"


def agent_of(workspace: Workspace, run: Run) -> int:
    return int(claim_of(workspace, run)["pid"])


def test_an_agent_takes_one_plan_after_the_other(workspace: Workspace, submit: Submit, pool: int) -> None:
    runs = []
    for number in range(4):
        runs.append(submit(f"print('this is number {number}')"))
        assert ended(runs[-1])["status"] == "Completed"
    assert len({agent_of(workspace, run) for run in runs}) == 1
    for number, run in enumerate(runs):
        folder = WorkspaceFolder(workspace.path).run(run.id)
        assert (folder.logs / "70_driver_log.txt").read_text() == f"this is number {number}\n"
        assert (folder.node(0) / "agent.log").read_text().count("ended with exit code 0") == 1
        assert processes_of(run.id) == []


@pytest.mark.parametrize(
    "script",
    ["import sys; sys.exit(3)", "import subprocess; subprocess.Popen(['sleep', '600'])"],
    ids=["fails", "leaves"],
)
def test_an_agent_of_a_run_that_did_not_go_well_takes_no_other(
    workspace: Workspace, submit: Submit, pool: int, script: str
) -> None:
    first, second = submit(script), None
    ended(first)
    second = submit("pass")
    assert ended(second)["status"] == "Completed"
    assert agent_of(workspace, first) != agent_of(workspace, second)
    assert processes_of(first.id) == []


def test_a_cancelled_run_does_not_hurt_the_next_one(workspace: Workspace, submit: Submit, pool: int) -> None:
    for _ in range(3):
        doomed = submit("import time; time.sleep(600)")
        agent = agent_of(workspace, doomed)
        doomed.cancel()
        assert ended(doomed)["status"] == "Canceled"
        following = submit("pass")
        assert ended(following)["status"] == "Completed" and agent_of(workspace, following) != agent


def test_one_that_waits_for_a_plan_may_be_killed(workspace: Workspace, submit: Submit, pool: int) -> None:
    first = submit("pass")
    ended(first)
    os.kill(agent_of(workspace, first), signal.SIGKILL)
    until(lambda: process.look(agent_of(workspace, first)) is None, what="its end")
    assert ended(submit("pass"))["status"] == "Completed"


def test_an_agent_on_its_second_plan_needs_no_dispatcher(
    workspace: Workspace, submit: Submit, pool: int, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    first = submit("pass")
    ended(first)
    second = submit(f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)")
    agent = agent_of(workspace, second)
    assert agent == agent_of(workspace, first)
    os.kill(int(WorkspaceFolder(workspace.path).lock.read_text()), signal.SIGKILL)
    gate.touch()
    assert ended(second)["status"] == "Completed"
    # No dispatcher would give it another plan.
    until(lambda: process.look(agent) is None, what="its end")


HEAVY = "import os\nPID = os.getpid()\nprint('said by heavy')\n"
USER = """
import os, subprocess, sys, time
import heavy
from azureml.core import Run
run = Run.get_context()
run.log("warm", int(heavy.PID != os.getpid()))
print("arguments", sys.argv, __name__, __file__ == os.path.abspath("train.py"), sys.modules["__main__"].run is run)
what = sys.argv[1]
if what == "fail":
    raise ValueError("this went wrong")
if what == "exit":
    sys.exit(7)
if what == "wait":
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)
"""


@pytest.fixture
def warm(workspace: Workspace, project: Callable[..., Path], tmp_path: Path) -> Callable[[str], Run]:
    """Submits a script that asks for a preloaded Python, once one is ready."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "heavy.py").write_text(HEAVY)
    source = project(train=USER)
    variables = {"TRAINMASTER_WARM_IMPORTS": "heavy", "PYTHONPATH": str(tmp_path / "modules")}

    def send(what: str) -> Run:
        estimator = Estimator(
            str(source),
            entry_script="train.py",
            script_params={what: "1"},
            compute_target="local",
            user_managed=True,
            environment_variables=variables,
        )
        return Experiment(workspace, "warm").submit(estimator)

    def is_warm() -> bool:
        run = send("end")
        assert ended(run)["status"] == "Completed"
        return run.get_metrics()["warm"] == 1

    until(is_warm, what="a warm Python")
    return send


def test_a_warm_script_is_a_script(workspace: Workspace, warm: Callable[[str], Run]) -> None:
    folder = WorkspaceFolder(workspace.path)
    well, failed, left = warm("end"), warm("fail"), warm("exit")
    assert ended(well)["status"] == "Completed"
    text = (folder.run(well.id).logs / "70_driver_log.txt").read_text()
    assert text == "arguments ['train.py', 'end', '1'] __main__ True True\n"
    error = ended(failed)["error"]
    assert error["exit_code"] == 1 and "ValueError: this went wrong" in error["tail"]
    # The traceback shows only the script.
    assert error["tail"].count('File "') == 1
    assert ended(left)["error"]["exit_code"] == 7
    assert [run.get_metrics()["warm"] for run in (well, failed, left)] == [1, 1, 1]


def test_a_warm_script_and_its_children_end_with_a_cancel(warm: Callable[[str], Run]) -> None:
    run = warm("wait")
    until(lambda: run.get_metrics().get("warm") == 1 and len(processes_of(run.id)) == 1, what="its child")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert processes_of(run.id) == []


def test_a_warm_python_that_cannot_be_had_is_told_and_not_tried_for_every_run(
    workspace: Workspace, project: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "modules").mkdir()
    tried = tmp_path / "tried"
    text = f"open({str(tried)!r}, 'a').write('x')\nraise OSError('no such library')\n"
    (tmp_path / "modules" / "broken.py").write_text(text)
    variables = {"TRAINMASTER_WARM_IMPORTS": "broken", "PYTHONPATH": str(tmp_path / "modules")}
    estimator = Estimator(
        str(project(train="print('hello')")),
        entry_script="train.py",
        compute_target="local",
        user_managed=True,
        environment_variables=variables,
    )
    log = WorkspaceFolder(workspace.path).log
    told = "TRAINMASTER_WARM_IMPORTS=broken: the modules cannot be preloaded: OSError: no such library"
    assert ended(Experiment(workspace, "warm").submit(estimator))["status"] == "Completed"
    until(lambda: told in log.read_text(), what="the reason in the log")
    for _ in range(2):
        assert ended(Experiment(workspace, "warm").submit(estimator))["status"] == "Completed"
    assert tried.read_text() == "x" and log.read_text().count(told) == 1

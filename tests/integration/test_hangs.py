"""Runs that hang, under MPI and without: they are ended, and say where each rank stood."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from four_ranks import Submit, experiment_on_two_nodes, logs, submitter
from node_run import NodeRun, interpreters, make_kit
from tests.conftest import ended, run_folder, until, wait_awake

from trainmaster import Experiment
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated"),
]

PYTHONS = interpreters()


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    """One workspace for all: its environment is built once."""
    with experiment_on_two_nodes(tmp_path_factory.mktemp("ranks")) as made:
        yield made


@pytest.fixture
def submit(experiment: Experiment, tmp_path: Path) -> Submit:
    return submitter(experiment, tmp_path)


WAITS = """
import os, sys, threading, time
def wait_for_peer():
    time.sleep(600)
def leave():
    if os.environ.get("RANK") == "1" and len(sys.argv) > 1:
        sys.exit(0)
print("waiting", flush=True)
leave()
wait_for_peer()
"""


def all_wait(run: Run, ranks: int, word: str = "waiting") -> None:
    """Until each rank has printed its line: from then on the run is silent."""
    wait_awake(run, lambda: [text.startswith(word) for text in logs(run).values()] == [True] * ranks, "all ranks")


@pytest.mark.parametrize(("kind", "ranks"), [("single", 1), ("gloo", 4), ("mpi", 4), ("ps", 3)])
def test_a_hang_is_ended_with_the_stack_of_every_rank(submit: Submit, kind: str, ranks: int) -> None:
    run = submit(WAITS, kind, hang_seconds=4)
    all_wait(run, ranks)
    details = ended(run)
    error = details["error"]
    assert (details["status"], error["code"]) == ("Failed", "HangDetected"), error
    whom = f" from any of {ranks} ranks" if ranks > 1 else ""
    assert error["message"].startswith(f"no output and no metric{whom} for 4 s: taken for a hang\n")
    assert error["message"].count('File "train.py", line 4 in wait_for_peer') == ranks
    assert sorted(error["stacks"]) == [str(rank) for rank in range(ranks)]
    assert len(logs(run)) == ranks
    for text in logs(run).values():
        assert text.startswith("waiting\n\ntrainmaster: the run was silent for 4 s")
        assert "line 4 in wait_for_peer" in text
    assert processes_of(run.id) == []


@pytest.mark.parametrize("kind", ["gloo", "mpi"])
def test_a_rank_that_leaves_early_is_told_from_a_hang(submit: Submit, kind: str) -> None:
    run = submit(WAITS, kind, hang_seconds=4, script_params={"leave": ""})
    all_wait(run, 4)
    error = ended(run)["error"]
    headline = error["message"].splitlines()[0]
    assert headline.startswith("rank 1 ended with 0 at ")
    assert headline.endswith(" while ranks 0, 2, 3 still wait: no output and no metric for 4 s")
    assert (error["ended_early"], sorted(error["stacks"])) == ([1], ["0", "2", "3"])


def test_metrics_are_a_sign_of_life(submit: Submit) -> None:
    text = """
import time
from azureml.core import Run
run = Run.get_context()
for step in range(16):
    run.log("step", step)
    time.sleep(0.5)
"""
    run = submit(text, "single", hang_seconds=5)
    wait_awake(run, lambda: run.get_metrics(), "the first metric")
    assert ended(run)["status"] == "Completed"
    assert len(run.get_metrics()["step"]) == 16


def test_a_run_that_hung_is_tried_again(submit: Submit) -> None:
    text = """
import os, time
print("here", flush=True)
time.sleep(600 if os.environ["TRAINMASTER_ATTEMPT"] == "1" else 0)
"""
    run = submit(text, "gloo", hang_seconds=4, max_retries=1)
    all_wait(run, 4, "here")
    until(run_folder(run).attempt_logs.exists, what="the next attempt")
    wait_awake(run, lambda: run.get_status() == "Completed", "its end")
    assert [len(list(run_folder(run).logs.glob(f"{place}70_driver_log*"))) for place in ("", "attempt_1/")] == [4, 4]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeRun]:
    """An agent under the oldest Python of this machine."""
    kit = make_kit(tmp_path / "kit")
    run = NodeRun(tmp_path, kit, PYTHONS[0], f"test_{uuid.uuid4().hex[:8]}")
    run.plan["hang_seconds"] = 2.0
    yield run
    run.close()


def stack(node: NodeRun, **options: Any) -> str:
    """What is known of a process once it is silent: it has to say that it is there first."""
    awake = node.folder / "journals" / "awake"
    awake.parent.mkdir()
    awake.touch()
    node.start(**options)
    node.heard(meanwhile=awake.touch)
    result = node.end()
    assert (result["reason"], result["silent_seconds"]) == ("hang", 2.0), node.said()
    (record,) = result["processes"]
    assert record["stack"].strip() in node.log.read_text()
    return record["stack"]


HERE = "import os, time\ndef here():\n    time.sleep(600)\n"
SAY = "os.write(os.open(os.environ['FIFO'], os.O_WRONLY), b'here\\n')\n"


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])
def test_any_python_says_where_it_stands(node: NodeRun, python: str) -> None:
    node.rank(python, "-c", HERE + SAY + "here()", TRAINMASTER_RANK="0", PYTHONFAULTHANDLER="1")
    assert 'File "<string>", line 3 in here' in stack(node)


def test_a_shell_s_python_says_where_it_stands(node: NodeRun) -> None:
    command = f"""{sys.executable} -c "{HERE + SAY}here()"; echo ended"""
    node.shell(command, TRAINMASTER_RANK="0", PYTHONFAULTHANDLER="1")
    assert 'File "<string>", line 3 in here' in stack(node)


def test_py_spy_where_python_itself_does_not_answer(node: NodeRun) -> None:
    folder = str(Path(sys.executable).parent)
    assert shutil.which("py-spy", path=folder)
    text = HERE + "import faulthandler\nfaulthandler.disable()\n" + SAY + "here()"
    variables = {"TRAINMASTER_RANK": "0", "PYTHONFAULTHANDLER": "1", "PATH": f"{folder}:{os.environ['PATH']}"}
    node.rank(sys.executable, "-c", text, **variables)
    assert "here (<string>:3)" in stack(node)


def test_a_python_that_closes_down_has_no_stack(node: NodeRun) -> None:
    """As a rank does in MPI_Finalize, when its peers have not come there."""
    text = "import faulthandler, os, time; faulthandler.disable()\n" + SAY + "time.sleep(600)"
    without_spy = {"PATH": "/usr/bin:/bin"}
    node.rank(sys.executable, "-c", text, TRAINMASTER_RANK="0", PYTHONFAULTHANDLER="1", **without_spy)
    assert "its Python does not answer: it is shutting down after the script" in stack(node, env=without_spy)


def test_the_kernel_s_words_for_everything_else(node: NodeRun) -> None:
    node.shell("echo here > $FIFO; exec sleep 600", TRAINMASTER_RANK="0")
    assert " (sleep): sleeping" in stack(node)


def test_stopped_processes_answer_too(node: NodeRun) -> None:
    text = HERE + "import signal\n" + SAY + "os.kill(os.getpid(), signal.SIGSTOP)\nhere()"
    node.rank(sys.executable, "-c", text, TRAINMASTER_RANK="0", PYTHONFAULTHANDLER="1")
    assert "line 6 in <module>" in stack(node)


def test_no_core_file_is_left(node: NodeRun) -> None:
    node.shell(
        f"""ulimit -c unlimited; exec {sys.executable} -c "{HERE + SAY}here()" """,
        TRAINMASTER_RANK="0",
        PYTHONFAULTHANDLER="1",
    )
    stack(node)
    assert sorted(path.name for path in (node.folder / "code").iterdir()) == ["logs", "outputs"]


def test_without_hang_detection_nothing_is_there_for_it(submit: Submit) -> None:
    run = submit(
        "import faulthandler, os\nprint(faulthandler.is_enabled(), 'PYTHONFAULTHANDLER' in os.environ)\n", "single"
    )
    assert ended(run)["status"] == "Completed"
    assert logs(run) == {"70_driver_log.txt": "False False\n"}

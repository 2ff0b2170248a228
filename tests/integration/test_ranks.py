"""What ranks print and log, seen apart: `logs --rank`, `metrics --by-rank`, the same from a program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import end_workspace, ended

from trainmaster import ComputeTarget, Experiment, Gloo, LocalCompute, ParameterServer, PyTorch, TensorFlow, Workspace
from trainmaster.sdk.run.run import Run

COMMAND = [sys.executable, "-m", "trainmaster.cli"]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    ws = Workspace.create("ranks", path=tmp_path_factory.mktemp("ranks") / "workspace", show_output=False)
    ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=4))
    yield ws
    end_workspace(ws.path)


@pytest.fixture
def launch(box: Workspace, project: Callable[..., Path]) -> Callable[..., Run]:
    def send(script: str, kind: Any = PyTorch, backend: Any = None) -> Run:
        return Experiment(box, "ranks").submit(
            kind(
                str(project(train=script)),
                entry_script="train.py",
                compute_target="box",
                node_count=2,
                distributed_training=backend or Gloo(),
                user_managed=True,
            )
        )

    return send


def command(run: Run, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, words[0], run.id, *words[1:], "--workspace", str(run.experiment.workspace.path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done
    return done


def following(run: Run, *words: str) -> subprocess.Popen[str]:
    argv = [*COMMAND, "logs", "-f", run.id, *words, "--workspace", str(run.experiment.workspace.path)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_all_ranks_live_and_afterwards(launch: Any, gate: Any) -> None:
    """Rank 1 comes to print only after the lines of rank 0 were seen; rank 0 ends only after those of rank 1 were."""
    one, zero = gate("one"), gate("zero")
    run = launch(
        "import os, sys\n"
        "if os.environ['RANK'] == '0':\n"
        "    print('begun'); sys.stdout.write('half a '); sys.stdout.flush()\n"
        f"    {zero.wait}\n"
        "    print('line'); sys.stdout.write('no end')\n"
        "else:\n"
        f"    {one.wait}\n"
        "    print('late')\n"
    )
    with following(run, "--rank", "all") as shown:
        assert shown.stdout is not None
        assert shown.stdout.readline() == "[rank 0] begun\n"
        one.await_arrival()
        one.open()
        assert shown.stdout.readline() == "[rank 1] late\n"
        zero.await_arrival()
        zero.open()
        rest, notes = shown.communicate(timeout=120)
    assert (rest, shown.returncode) == ("[rank 0] half a line\n[rank 0] no end\n", 0)
    assert "Completed" in notes

    lines = command(run, "logs", "--rank", "all").stdout
    assert lines == "[rank 0] begun\n[rank 0] half a line\n[rank 0] no end\n[rank 1] late\n"
    assert sorted(command(run, "logs", "-f", "--rank", "all").stdout.splitlines()) == sorted(lines.splitlines())
    assert command(run, "logs", "--rank", "1").stdout == "late\n"
    # What nobody asked otherwise: rank 0 alone, as in v1.
    assert command(run, "logs", "-f").stdout == command(run, "logs").stdout == "begun\nhalf a line\nno end"
    told = json.loads(command(run, "logs", "--rank", "all", "--json").stdout)
    assert (told["run"], told["status"], told["rank"]) == (run.id, "Completed", "all")
    assert told["ranks"] == [
        {"rank": 0, "name": "rank 0", "text": "begun\nhalf a line\nno end"},
        {"rank": 1, "name": "rank 1", "text": "late\n"},
    ]


def test_waiting_shows_rank_0_as_v1_did(launch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run = launch("import os\nprint('I am', os.environ['RANK'])")
    assert run.wait_for_completion(show_output=True)["status"] == "Completed"
    shown = capsys.readouterr().out
    assert "Streaming azureml-logs/70_driver_log_0.txt" in shown and "I am 0\n" in shown
    assert "70_driver_log_1.txt" not in shown and "I am 1" not in shown


def test_a_rank_that_cannot_be(launch: Any) -> None:
    run = launch("print('here')")
    ended(run)
    for wrong in ("2", "-1", "both", "0.5", "²"):
        done = command(run, "logs", "--rank", wrong, code=2)
        assert done.stdout == "" and done.stderr.startswith("error:"), done
    assert "It has: 0, 1." in command(run, "logs", "--rank", "2", code=2).stderr


def test_tasks_of_a_cluster_are_called_by_their_names(launch: Any) -> None:
    run = launch(
        "import json, os, time\n"
        "task = json.loads(os.environ['TF_CONFIG'])['task']\n"
        "print('I am', task['type'], task['index'], flush=True)\n"
        # The server has to be there before the workers may end: then it is seen to have printed.
        "if task['type'] == 'ps':\n"
        "    open('served', 'w').close()\n"
        "    time.sleep(600)\n"
        "while not os.path.exists('served'):\n"
        "    time.sleep(0.01)\n",
        TensorFlow,
        ParameterServer(worker_count=2, parameter_server_count=1),
    )
    assert ended(run)["status"] == "Completed"
    assert command(run, "logs", "--rank", "all").stdout == (
        "[worker 0] I am worker 0\n[worker 1] I am worker 1\n[ps     0] I am ps 0\n"
    )


def test_metrics_know_their_rank(launch: Any) -> None:
    run = launch(
        "import os\nfrom azureml.core import Run\nrun, rank = Run.get_context(), int(os.environ['RANK'])\n"
        "for step in range(3):\n    run.log('loss', rank * 10 + step)\n"
        "run.log_row('table', rank=rank)\n"
        "with run.child_run() as child:\n    child.log('below', rank)\n"
        # A forked process is the same rank.
        "if os.fork() == 0:\n    run.log('forked', rank)\n    os._exit(0)\nos.wait()\n"
    )
    assert ended(run)["status"] == "Completed"
    run.log("from outside", 1)
    assert sorted(run.get_metrics()["loss"]) == [0, 1, 2, 10, 11, 12]
    assert run.get_metrics_by_rank() == {
        None: {"from outside": 1},
        0: {"loss": [0, 1, 2], "table": {"rank": 0}, "forked": 0},
        1: {"loss": [10, 11, 12], "table": {"rank": 1}, "forked": 1},
    }
    assert run.get_metrics_by_rank("loss") == {0: {"loss": [0, 1, 2]}, 1: {"loss": [10, 11, 12]}}
    assert {rank for child in run.get_children() for rank in child.get_metrics_by_rank()} == {0, 1}

    told = json.loads(command(run, "metrics", "loss", "--json").stdout)
    of_rank = dict(zip(told[0]["values"], told[0]["ranks"], strict=True))
    assert of_rank == {0: 0, 1: 0, 2: 0, 10: 1, 11: 1, 12: 1}
    apart = json.loads(command(run, "metrics", "--by-rank", "--json").stdout)
    assert [(each["rank"], each["count"], each["last"], each["min"]) for each in apart if each["name"] == "loss"] == [
        (0, 3, 2, 0.0),
        (1, 3, 12, 10.0),
    ]
    table = [line.split()[:6] for line in command(run, "metrics", "--by-rank").stdout.splitlines()]
    assert table[0] == ["METRIC", "RANK", "LAST", "MIN", "MAX", "COUNT"]
    assert ["loss", "1", "12", "10", "12", "3"] in table
    values = command(run, "metrics", "loss", "--by-rank").stdout.splitlines()
    assert [line.split()[-2:] for line in values[-3:]] == [["1", "10"], ["1", "11"], ["1", "12"]]
    assert "no metric 'nothing'" in command(run, "metrics", "nothing", "--by-rank", code=2).stderr


def test_nothing_logged(launch: Any) -> None:
    run = launch("pass")
    ended(run)
    assert "has not logged any metrics" in command(run, "metrics", "--by-rank").stderr
    assert json.loads(command(run, "metrics", "--by-rank", "--json").stdout) == []
    assert run.get_metrics_by_rank() == {}

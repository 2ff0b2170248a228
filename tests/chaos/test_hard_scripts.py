"""Scripts that behave badly: each gives the right state and a clear cause, and the dispatcher lives on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ended
from tests.left_out import require_root
from trainmaster import Workspace
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

Submit = Callable[..., Run]


def test_daemons_with_their_own_sessions_are_ended_with_the_run(submit: Submit) -> None:
    run = submit(
        "import os, subprocess, time\n"
        "for _ in range(3):\n"
        "    subprocess.Popen(['setsid', '-f', 'sleep', '600'])\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.environ.clear()\n"
        "        os.execv('/bin/sleep', ['sleep', '600'])\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    details = ended(run)
    assert details["status"] == "Completed"
    assert "left behind" in details["warnings"][0]["message"]
    assert processes_of(run.id) == []


def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(submit: Submit, tmp_path: Path) -> None:
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    run = submit(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(sys.argv[1], 'w').close()\n"
        "while True: time.sleep(1)\n",
        script_params={str(fifo): ""},
    )
    fifo.read_text()
    run.cancel()
    assert run.status == "CancelRequested"
    assert ended(run)["status"] == "Canceled"
    assert processes_of(run.id) == []


@pytest.mark.timeout(600)
def test_a_gigabyte_of_log(submit: Submit, workspace: Workspace) -> None:
    run = submit(
        "import os\n"
        "line = b'x' * 1023 + b'\\n'\n"
        "for _ in range(1024):\n"
        "    os.write(1, line * 1024)\n"
        "print('the last words')\n"
        "raise SystemExit(3)\n"
    )
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["exit_code"] == 3
    assert details["error"]["tail"].endswith("the last words")
    log = workspace.path / "runs" / run.id / "files" / "azureml-logs" / "70_driver_log.txt"
    assert log.stat().st_size == 1024**3 + len("the last words\n")
    log.unlink()


def test_output_that_is_not_utf8(submit: Submit, capsys: pytest.CaptureFixture[str]) -> None:
    run = submit("import os\nos.write(1, b'caf\\xe9 \\xff\\xfe\\n')\nraise SystemExit(1)\n")
    details = run.wait_for_completion(show_output=True, raise_on_error=False)
    assert details["status"] == "Failed"
    assert "caf�" in details["error"]["message"]
    assert "caf�" in capsys.readouterr().out


def test_killed_by_the_kernel_for_memory(submit: Submit) -> None:
    """A real out-of-memory kill, in a memory cgroup that the script puts itself into."""
    require_root("to create a memory cgroup")
    run = submit(
        "import os\n"
        "v1 = '/sys/fs/cgroup/memory'\n"
        "base = v1 if os.path.isdir(v1) else '/sys/fs/cgroup'\n"
        "place = os.path.join(base, 'trainmaster-test-' + os.environ['TRAINMASTER_RUN_ID'])\n"
        "os.mkdir(place)\n"
        "limit = 'memory.limit_in_bytes' if base == v1 else 'memory.max'\n"
        "with open(os.path.join(place, limit), 'w') as file: file.write('67108864')\n"
        "if base == v1:\n"
        "    try:\n"
        "        with open(os.path.join(place, 'memory.memsw.limit_in_bytes'), 'w') as file: file.write('67108864')\n"
        "    except OSError: pass\n"
        "with open(os.path.join(place, 'cgroup.procs'), 'w') as file: file.write(str(os.getpid()))\n"
        "print('taking memory', flush=True)\n"
        "data = bytearray(512 * 1024 * 1024)\n"
        "for place in range(0, len(data), 4096): data[place] = 1\n"
    )
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "OutOfMemory", details["error"]
    assert "out of memory" in details["error"]["message"]
    for place in Path("/sys/fs/cgroup").glob(f"**/trainmaster-test-{run.id}"):
        place.rmdir()


def test_a_script_killed_from_outside_says_the_signal(submit: Submit) -> None:
    details = ended(submit("import os, signal\nprint('soon', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n"))
    assert details["status"] == "Failed"
    assert details["error"]["signal"] == "SIGSEGV"
    assert details["error"]["tail"] == "soon"


def test_a_script_that_removes_its_own_folders(submit: Submit) -> None:
    run = submit(
        "import os, shutil\n"
        "shutil.rmtree('outputs')\n"
        "os.makedirs('outputs/deep')\n"
        "open('outputs/deep/model', 'w').write('m')\n"
        "shutil.rmtree('logs')\n"
    )
    assert ended(run)["status"] == "Completed"
    assert "outputs/deep/model" in run.get_file_names()


def test_links_in_outputs_do_not_lead_out(submit: Submit, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    run = submit(
        "import os, sys\nos.symlink(sys.argv[1], 'outputs/leak')\nopen('outputs/ok', 'w').close()\n",
        script_params={str(tmp_path / "secret"): ""},
    )
    assert ended(run)["status"] == "Completed"
    assert "outputs/ok" in run.get_file_names()
    assert "outputs/leak" not in run.get_file_names()


@pytest.fixture(autouse=True)
def dispatcher_lives_on(workspace: Workspace, submit: Submit) -> object:
    before = workspace.connection.call("status")["pid"]
    yield
    assert workspace.connection.call("status")["pid"] == before
    assert ended(submit("print('fine')"))["status"] == "Completed"

"""Waiting with the logs on the screen."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from tests.backends import opening_code
from tests.conftest import until

from trainmaster.job.errors import ActivityFailedException

BACKENDS = ("local", "server")

WAITER = (
    "import sys\nfrom trainmaster import Workspace\nrun = OPENED.get_run(sys.argv[1])\n"
    "print('details', run.wait_for_completion(show_output=True)['status'])\n"
)


def waiter(run):
    return subprocess.Popen(
        [sys.executable, "-u", "-c", WAITER.replace("OPENED", opening_code(run.experiment.workspace)), run.id],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def read_until(program, line):
    """Reads lines up to one; the script cannot go on meanwhile, so nothing but the stream can bring it."""
    seen = []
    while not seen or seen[-1] != line:
        text = program.stdout.readline()
        assert text, f"it ended before {line!r}: {seen}"
        seen.append(text)
    return seen


def test_lines_appear_while_the_script_runs(launch, gate):
    gates = [gate(str(n)) for n in range(3)]
    run = launch("\n".join(f"print('line {n}')\n{each.wait}" for n, each in enumerate(gates)))
    with waiter(run) as program:
        for n, each in enumerate(gates):
            each.await_arrival()
            read_until(program, f"line {n}\n")
            assert run.get_status() in ("Starting", "Running")
            each.open()
        rest = program.communicate(timeout=120)[0]
    assert "Execution Summary" in rest
    assert rest.endswith("details Completed\n")


def test_part_of_a_line_appears(launch, gate):
    here = gate("here")
    run = launch(f"print('progress 10%', end='\\r')\n{here.wait}")
    with waiter(run) as program:
        here.await_arrival()
        seen = ""
        while not seen.endswith("progress 10%\r"):
            letter = os.read(program.stdout.fileno(), 1).decode()
            assert letter
            seen += letter
        here.open()
        program.communicate(timeout=120)


def test_headings(launch, capsys):
    run = launch("print('hello')")
    details = run.wait_for_completion(show_output=True)
    assert details["status"] == "Completed"
    link = re.escape(run.get_portal_url())
    heading = "Streaming azureml-logs/70_driver_log.txt"
    assert re.fullmatch(
        f"RunId: {run.id}\nWeb View: {link}\n\n{re.escape(heading)}\n={{{len(heading)}}}\n\nhello\n"
        f"\nExecution Summary\n=================\nRunId: {run.id}\nWeb View: {link}\n\n",
        capsys.readouterr().out,
    )


def test_ended_run_is_shown_whole(launch, capsys):
    run = launch("for n in range(1000): print('line', n)")
    run.wait_for_completion()
    assert capsys.readouterr().out == ""
    run.wait_for_completion(show_output=True)
    assert capsys.readouterr().out.count("line ") == 1000


def test_failed_run_raises_with_the_scripts_traceback(launch):
    run = launch("def inner():\n    raise KeyError('the cause')\ninner()\n")
    with pytest.raises(ActivityFailedException) as caught:
        run.wait_for_completion()
    text = str(caught.value)
    assert run.id in text
    assert "in inner" in text
    assert "KeyError: 'the cause'" in text
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert "KeyError: 'the cause'" in details["error"]["message"]


def test_cancelled_run_does_not_raise(launch, gate):
    here = gate("here")
    run = launch(here.wait)
    here.await_arrival()
    run.cancel()
    assert run.wait_for_completion()["status"] == "Canceled"


def test_ctrl_c_ends_only_the_waiting(launch, gate):
    here = gate("here")
    run = launch(f"print('begun')\n{here.wait}")
    with waiter(run) as program:
        here.await_arrival()
        read_until(program, "begun\n")
        program.send_signal(signal.SIGINT)
        rest = program.communicate(timeout=120)[0]
        assert program.returncode == 0
    assert f"run {run.id} continues" in rest
    assert "details Running" in rest or "details Starting" in rest
    assert run.get_status() in ("Running", "Starting")
    here.open()
    assert run.wait_for_completion()["status"] == "Completed"


def test_several_wait(launch, gate):
    here = gate("here")
    run = launch(f"{here.wait}\nprint('done')")
    here.await_arrival()
    found = []
    threads = [threading.Thread(target=lambda: found.append(run.wait_for_completion()["status"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: all(thread.is_alive() for thread in threads))
    here.open()
    for thread in threads:
        thread.join(120)
    assert found == ["Completed"] * 4


def test_bytes_that_are_not_text(launch, capsys):
    run = launch("import sys\nsys.stdout.buffer.write(b'before \\xff\\xfe after \\xc3')\nsys.stdout.flush()")
    run.wait_for_completion(show_output=True)
    assert "before \ufffd\ufffd after" in capsys.readouterr().out


def test_screen_that_cannot_show_a_letter(launch, monkeypatch):
    run = launch("print('fünf €')")
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    run.wait_for_completion(show_output=True)
    monkeypatch.undo()
    assert rb"f\xfcnf \u20ac" in screen.buffer.getvalue()


def test_large_log(launch, capfd):
    run = launch("import sys\nfor n in range(3000): sys.stdout.write('x' * 1023 + '\\n')")
    run.wait_for_completion(show_output=True)
    assert capfd.readouterr().out.count("x" * 1023) == 3000


def test_queued_run_is_waited_for(launch, gate, shared):
    from trainmaster import ComputeTarget, LocalCompute

    box = ComputeTarget.create(shared, "box", LocalCompute.configuration(nodes=1))
    here = gate("here")
    first = launch(here.wait, compute_target=box)
    here.await_arrival()
    second = launch("print('at last')", compute_target=box)
    with waiter(second) as program:
        read_until(program, f"RunId: {second.id}\n")
        here.open()
        assert "at last" in program.communicate(timeout=120)[0]
    first.wait_for_completion()

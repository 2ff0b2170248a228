"""The words for a run that fell silent."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.hangs import stack_lines
from trainmaster.dispatcher.runs.outcome import outcome

CODE = "/home/me/ws/runs/e_1_ab/code"
DUMP = f"""Fatal Python error: Aborted

Thread 0x00007f3f2551c6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f3f2606ab80 (most recent call first):
  File "{CODE}/lib/data.py", line 6 in wait
  File "{CODE}/train.py", line 8 in <module>

Extension modules: numpy.core (total: 1)
"""
SPY = """Process 12: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 12 (idle): "MainThread"
    wait (/home/me/ws/runs/e_1_ab/code/train.py:6)
    <module> (/home/me/ws/runs/e_1_ab/code/train.py:8)
"""
DEEP = "Current thread 0x7f (most recent call first):\n" + "".join(
    [f'  File "/e/lib/python3.11/site-packages/torch/{name}.py", line 1 in f\n' for name in "abcdef"]
    + [f'  File "{CODE}/lib/data.py", line 6 in wait\n  File "/usr/lib/python3.11/runpy.py", line 9 in run\n']
    + [f'  File "{CODE}/train.py", line 8 in <module>\n']
)
CLOSING = "Fatal Python error: Aborted\n\nCurrent thread 0x7f (most recent call first):\n  <no Python frame>\n"
KERNEL = "process 12 (sleep): sleeping, in hrtimer_nanosleep\n"


@pytest.mark.parametrize(
    ("stack", "lines"),
    [
        (DUMP, ['File "lib/data.py", line 6 in wait', 'File "train.py", line 8 in <module>']),
        (SPY, ['Thread 12 (idle): "MainThread"', "wait (train.py:6)", "<module> (train.py:8)"]),
        (
            DEEP,
            [f'File "torch/{name}.py", line 1 in f' for name in "abcd"]
            + ['File "lib/data.py", line 6 in wait', 'File "train.py", line 8 in <module>'],
        ),
        (CLOSING, ["nowhere in its script any more: Python is closing down"]),
        (KERNEL, ["process 12 (sleep): sleeping, in hrtimer_nanosleep"]),
        ("", []),
    ],
)
def test_the_lines_that_say_most(stack, lines):
    assert stack_lines(stack) == lines


def waiting(rank, **more):
    record = {"rank": rank, "exit_code": None, "signal": 6, "told": True, "raised": False, "ended_at": 70.0}
    return {**record, "wrote_at": 70.0, "stack": DUMP, **more}


def early(rank):
    return {"rank": rank, "exit_code": 0, "signal": None, "told": False, "ended_at": 3.0}


def hung(*nodes):
    results = [{"reason": "hang", "silent_seconds": 60.0, "first_failure": None, "processes": n} for n in nodes]
    return outcome(results, cancel_requested=False, time_limit=None)


def test_all_wait():
    end = hung([waiting(0), waiting(1)], [waiting(2), waiting(3)])
    assert (end.status, end.error.code) == ("Failed", "HangDetected")
    lines = end.error.message.splitlines()
    assert lines[:3] == [
        "no output and no metric from any of 4 ranks for 60 s: taken for a hang",
        "rank 0 on node 0 stood here:",
        '  File "lib/data.py", line 6 in wait',
    ]
    assert "rank 3 on node 1 stood here:" in lines
    assert "Thread" not in end.error.message
    assert (end.error.details["waiting"], end.error.details["ended_early"]) == ([0, 1, 2, 3], [])
    assert end.error.details["stacks"]["2"] == DUMP


def test_one_process():
    assert hung([waiting(0)]).error.message.startswith("no output and no metric for 60 s: taken for a hang\nrank 0")


def test_one_that_ended_well_while_others_wait():
    end = hung([waiting(0), early(1)], [waiting(2), waiting(3)])
    assert end.error.message.startswith(
        "rank 1 ended with 0 at 00:00:03 UTC while ranks 0, 2, 3 still wait: no output and no metric for 60 s\n"
    )
    assert (end.error.details["waiting"], end.error.details["ended_early"]) == ([0, 2, 3], [1])


def test_a_server_that_was_ended_is_not_one_that_left_early():
    end = hung([waiting(0), {**early(1), "service": True}])
    assert end.error.message.startswith("no output and no metric from any of 2 ranks")


def test_a_node_that_was_only_stopped_because_of_it_does_not_count():
    results = [
        {"reason": "cancelled", "first_failure": None, "processes": [waiting(0, stack=None)], "ended_at": 71.0},
        {"reason": "hang", "silent_seconds": 5.0, "first_failure": None, "processes": [waiting(1)], "ended_at": 72.0},
    ]
    end = outcome(results, cancel_requested=False, time_limit=None)
    assert (end.error.code, end.error.details["waiting"]) == ("HangDetected", [0, 1])


def test_many_ranks_do_not_flood_the_error():
    end = hung([waiting(rank) for rank in range(64)])
    assert len(end.error.message) < 2000
    assert len(end.error.details["stacks"]) == 64


# --- a rank's failure among others ---


def failed(rank, at, **more):
    record = {"rank": rank, "exit_code": 1, "signal": None, "out_of_memory": False, "told": False, "raised": False}
    return {**record, "wrote_at": at, "ended_at": at, **more}


def ended(*records, failure=None, **more):
    shown = {key: records[0][key] for key in ("rank", "exit_code", "signal")} if records else {"rank": 0}
    first = {**shown, "tail": "", **(failure or {})}
    result = {"reason": "exited", "first_failure": first, "processes": list(records), "ended_at": 99.0, **more}
    return outcome([result], cancel_requested=False, time_limit=None, processes=3).error


def test_the_others_are_named_after_the_cause():
    error = ended(
        failed(0, 10.4, raised=True, wrote_at=10.2, tail="ConnectionError"),
        failed(1, 10.5, raised=True, wrote_at=10.0, tail="ValueError: the mistake"),
        {**early(2), "ended_at": 4.0},
    )
    assert error.message.splitlines() == [
        "rank 1 on node 0: ValueError: the mistake",
        "rank 1 on node 0 ended with exit code 1",
        "The last lines it wrote:",
        "ValueError: the mistake",
        "Before that, rank 2 ended with 0 at 00:00:04 UTC.",
        "After that, rank 0 ended with exit code 1.",
    ]


def test_one_that_was_stopped_while_it_closed_down_after_its_exception():
    error = ended(
        failed(0, 10.4, raised=True, wrote_at=10.2, tail="ConnectionError"),
        failed(
            1, 11.0, exit_code=None, signal=15, told=True, raised=True, wrote_at=10.0, tail="ValueError: the mistake"
        ),
    )
    assert error.message.startswith(
        "rank 1 on node 0: ValueError: the mistake\nrank 1 on node 0 failed with an exception\nThe last lines"
    )
    assert error.code == "ScriptFailed"


def test_memory_that_ran_out_for_another_process():
    error = ended(failed(0, 1.0, memory_ran_out=True, tail="DataLoader worker is killed"))
    assert (error.code, error.message.splitlines()[-1]) == (
        "ScriptFailed",
        "Meanwhile the kernel killed another process because the memory was used up (out of memory).",
    )


LAUNCHER = {"rank": 0, "exit_code": 213, "signal": None, "launcher": "mpirun", "tail": "There are not enough slots"}


def test_a_launcher_that_starts_nothing():
    error = ended(failure=LAUNCHER)
    assert error.code == "LauncherFailed"
    assert error.message == "mpirun ended with exit code 213\nWhat it said:\nThere are not enough slots"


def test_a_rank_that_leaves_mpi_without_a_word():
    told = {"exit_code": None, "signal": 15, "told": True}
    error = ended(early(1), failed(0, 4.0, **told), failed(2, 4.0, **told), failure={**LAUNCHER, "tail": ""})
    assert error.message.splitlines() == [
        "rank 1 ended with 0 at 00:00:03 UTC "
        "while ranks 0, 2 went on; mpirun ended with exit code 213, and they with it",
        "A rank that has called MPI_Init must not end before MPI_Finalize.",
    ]

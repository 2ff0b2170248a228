"""From what the agents left to the state of a run, as a table."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.failure_hints import Surroundings
from trainmaster.dispatcher.runs.outcome import name_process, outcome, script_error
from trainmaster.shared.job_spec import JobSpec


def result(reason="exited", failure=None, **more):
    return {"reason": reason, "first_failure": failure, "killed": 0, "survivors": [], "error": None, **more}


FAILED = {"rank": 0, "exit_code": 1, "signal": None, "out_of_memory": False, "tail": "Traceback\nValueError: x\n"}
KILLED = {"rank": 3, "exit_code": None, "signal": 9, "out_of_memory": False, "tail": ""}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["worker 0", "worker 1", "ps 0", "ps 1"], "ps 1 (rank 3) on node 0 was killed by SIGKILL"),
        (["rank 0", "rank 1", "rank 2", "rank 3"], "rank 3 on node 0 was killed by SIGKILL"),
        ([], "rank 3 on node 0 was killed by SIGKILL"),
    ],
)
def test_the_process_that_failed_has_the_name_that_people_know(names, words):
    end = name_process(outcome([result(failure=KILLED)], cancel_requested=False, time_limit=None), names)
    assert end.error.message.startswith(words)
    well = outcome([result()], cancel_requested=False, time_limit=None)
    assert name_process(well, names) == well


@pytest.mark.parametrize(
    ("results", "cancelled", "status", "code"),
    [
        ([result()], False, "Completed", None),
        # It was asked to end but was done already.
        ([result()], True, "Completed", None),
        ([result(failure=FAILED)], False, "Failed", "ScriptFailed"),
        ([result(failure=KILLED)], False, "Failed", "ScriptKilled"),
        ([result(failure={**KILLED, "out_of_memory": True})], False, "Failed", "OutOfMemory"),
        ([result("cancelled")], True, "Canceled", None),
        ([result("cancelled", failure=FAILED)], True, "Canceled", None),
        ([result("cancelled")], False, "Failed", "NodeStopped"),
        ([result("timeout")], False, "Canceled", "MaxRunDurationExceeded"),
        ([result("error", error={"headline": "no", "cause": "why", "hint": "do"})], False, "Failed", "StartError"),
        ([None], False, "Failed", "NodeAgentLost"),
        ([None], True, "Canceled", None),
        ([result(), None], False, "Failed", "NodeAgentLost"),
        ([result(), result(failure=FAILED)], False, "Failed", "ScriptFailed"),
    ],
)
def test_states(results, cancelled, status, code):
    end = outcome(results, cancel_requested=cancelled, time_limit=5)
    assert end.status == status
    assert (end.error.code if end.error else None) == code


def test_messages():
    def message(found, **settings):
        return outcome([found], cancel_requested=False, time_limit=5).error.message

    assert message(result(failure=FAILED)) == (
        "ValueError: x\nrank 0 on node 0 ended with exit code 1\nThe last lines it wrote:\nTraceback\nValueError: x"
    )
    assert message(result(failure=KILLED)) == "rank 3 on node 0 was killed by SIGKILL, which Trainmaster did not send"
    assert message(result("timeout")).endswith("max_run_duration_seconds=5")
    assert message(result("error", error={"headline": "no", "cause": "", "hint": "do"})) == "no\ndo"
    assert message(result("error")) == ""


def test_details():
    assert script_error(2, KILLED).details == {
        "rank": 3,
        "node": 2,
        "exit_code": None,
        "signal": "SIGKILL",
        "tail": "",
    }


def test_warnings():
    end = outcome([result(killed=2), result(survivors=[7])], cancel_requested=False, time_limit=None)
    assert end.status == "Completed"
    assert end.warnings == (
        "node 0: 2 processes that the script left behind were ended",
        "node 1: these processes could not be ended: [7]",
    )
    one = outcome([result(killed=1)], cancel_requested=False, time_limit=None)
    assert one.warnings == ("node 0: 1 process that the script left behind was ended",)
    # Those of a cancelled run were ended because they should be.
    assert outcome([result("cancelled", killed=2)], cancel_requested=True, time_limit=None).warnings == ()


@pytest.mark.parametrize(
    ("code", "tail", "first"),
    [
        (1, "before\nno data in /data\n", "rank 0 on node 0 ended with exit code 1: no data in /data"),
        (2, "usage: a.py\na.py: error: unrecognized arguments: -x\n", "a.py: error: unrecognized arguments: -x"),
        (127, "sh: 1: nvidia-smi: not found\n", "rank 0 on node 0 ended with exit code 127: sh: 1: nvidia-smi: not"),
        # Nobody says that the last line has to do with it.
        (7, "epoch 3\n", "rank 0 on node 0 ended with exit code 7\n"),
        (1, "", "rank 0 on node 0 ended with exit code 1"),
    ],
)
def test_a_script_without_an_exception_is_quoted(code, tail, first):
    failure = {**FAILED, "exit_code": code, "tail": tail}
    end = outcome([result(failure=failure)], cancel_requested=False, time_limit=None)
    assert end.error.message.startswith(first)


def test_of_several_ranks_the_exception_is_told_with_its_rank():
    failure = {**FAILED, "rank": 2}
    end = outcome([result(failure=failure)], cancel_requested=False, time_limit=None, processes=4)
    assert end.error.message.splitlines()[:2] == [
        "rank 2 on node 0: ValueError: x",
        "rank 2 on node 0 ended with exit code 1",
    ]
    named = name_process(end, ["worker 0", "worker 1", "ps 0", "ps 1"])
    assert named.error.message.startswith("ps 0 (rank 2) on node 0: ValueError: x\n")


def test_a_killed_script_is_not_told_by_an_earlier_exception():
    end = outcome([result(failure={**KILLED, "tail": FAILED["tail"]})], cancel_requested=False, time_limit=None)
    assert end.error.message.startswith("rank 3 on node 0 was killed by SIGKILL")


def test_a_hint_stands_behind_the_last_lines_and_by_itself(tmp_path):
    failure = {**FAILED, "tail": "Traceback\nModuleNotFoundError: No module named 'tqdm'\n"}
    known = Surroundings(JobSpec(".", "local", script="train.py"), tmp_path)
    told = outcome([result(failure=failure)], cancel_requested=False, time_limit=None, surroundings=known)
    assert told.error.message.startswith("ModuleNotFoundError: No module named 'tqdm'\n")
    assert told.error.message.endswith("\n" + told.error.details["hint"])
    assert "--pip tqdm" in told.error.details["hint"]
    silent = outcome([result(failure=FAILED)], cancel_requested=False, time_limit=None, surroundings=known)
    assert "hint" not in silent.error.details


def test_data_that_could_not_be_uploaded_is_not_a_success():
    end = outcome([result()], cancel_requested=False, time_limit=None, upload_error="the store is gone")
    assert (end.status, end.error.code) == ("Failed", "UploadFailed")
    assert "the store is gone" in end.error.message
    # A script that failed by itself is the cause that counts.
    first = outcome([result(failure=FAILED)], cancel_requested=False, time_limit=None, upload_error="gone")
    assert first.error.code == "ScriptFailed"


def at(when, **failure):
    rank = failure.get("rank", 0)
    return result(failure={**FAILED, **failure}, processes=[{"rank": rank, "exit_code": 1, "ended_at": when}])


def test_the_first_failure_is_the_cause():
    late, early = at(20.0, rank=0, tail="connection lost"), at(10.0, rank=3, tail="the real mistake")
    end = outcome([late, early], cancel_requested=False, time_limit=None)
    assert (end.error.details["rank"], end.error.details["node"]) == (3, 1)


def test_nodes_that_were_only_told_to_stop_are_not_the_cause():
    end = outcome([result("cancelled"), at(10.0, rank=3)], cancel_requested=False, time_limit=None)
    assert (end.error.code, end.error.details["node"]) == ("ScriptFailed", 1)


def test_services_are_ended_when_the_others_are_done():
    end = outcome([result(), result("cancelled")], cancel_requested=False, time_limit=None, services={1})
    assert end.status == "Completed"
    died = outcome([result("cancelled"), at(1.0)], cancel_requested=False, time_limit=None, services={1})
    assert died.error.details["node"] == 1


def test_under_a_launcher_the_node_is_the_rank_s():
    end = outcome([at(1.0, rank=2, node=1)], cancel_requested=False, time_limit=None)
    assert "rank 2 on node 1" in end.error.message

"""When a run counts as silent, on real files with the times they would have."""

from __future__ import annotations

import os
import time

import pytest

from trainmaster.job.agent import cgroup, ranks
from trainmaster.job.agent.silence import Silence


@pytest.fixture
def run(tmp_path):
    for name in ("files/azureml-logs", "journals", "nodes/0", "nodes/1"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def watch(run, seconds, node=0):
    return Silence(str(run), str(run / "nodes" / str(node)), seconds)


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_start_counts_as_a_sign_of_life(run):
    found = watch(run, 100)
    assert not found.is_too_long()
    assert 90 < found.look_at - time.monotonic() <= 100


def test_silence(run):
    log = run / "files" / "azureml-logs" / "70_driver_log_1.txt"
    log.write_text("hello")
    found = watch(run, 60)
    found._began -= 1000
    assert not found.is_too_long()
    age(log, 61)
    assert found.is_too_long()


@pytest.mark.parametrize("name", ["files/azureml-logs/70_driver_log_3.txt", "journals/3-77-abcd.jsonl"])
def test_one_word_of_any_rank_is_enough(run, name):
    quiet = run / "files" / "azureml-logs" / "70_driver_log_0.txt"
    quiet.write_text("")
    age(quiet, 500)
    (run / name).write_text("{}")
    age(run / name, 40)
    found = watch(run, 60)
    found._began -= 1000
    assert not found.is_too_long()
    # The next check is exactly when the silence would be too long.
    assert 15 < found.look_at - time.monotonic() <= 20.1


def test_a_clock_that_was_set_back_does_not_end_the_watch(run):
    log = run / "files" / "azureml-logs" / "70_driver_log.txt"
    log.write_text("")
    age(log, -3600)
    found = watch(run, 60)
    assert not found.is_too_long()
    assert found.look_at - time.monotonic() <= 60


def test_nodes_tell_each_other(run):
    first, second = watch(run, 60, node=0), watch(run, 60, node=1)
    for node in ("0", "1"):
        (run / "nodes" / node / "running.json").write_text("{}")
    assert not second.was_noted()
    first.note()
    assert first.was_noted() and second.was_noted()
    assert first.nodes_without_note() == [str(run / "nodes" / "1")]
    second.note()
    assert first.nodes_without_note() == []


def test_a_node_that_has_ended_is_not_waited_for(run):
    for name in ("running.json", "result.json"):
        (run / "nodes" / "1" / name).write_text("{}")
    assert watch(run, 60).nodes_without_note() == []


def test_memory_kills_are_counted_where_the_kernel_counts_them_nearest(tmp_path):
    """The files of cgroup version 2 in a folder: this machine may have no memory controller there."""
    inner = tmp_path / "service" / "trainmaster-run-0"
    inner.mkdir(parents=True)
    for folder in (tmp_path, inner.parent, inner):
        (folder / "cgroup.procs").write_text("")
    machine = ranks.memory_kills(str(inner))
    assert machine == ranks.memory_kills()
    assert cgroup.memory_events(str(inner)) is None
    (inner.parent / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 7000001\noom_group_kill 0\n")
    assert ranks.memory_kills(str(inner)) == 7000001
    (inner / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert ranks.memory_kills(str(inner)) == 0

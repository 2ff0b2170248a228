"""Machines whose clocks differ: which of them failed first?"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from trainmaster.engines.remote.data import RunData
from trainmaster.engines.remote.mirror import Mirror
from trainmaster.job.agent import cause, clock, ranks
from trainmaster.shared.folders import RunFolder


@pytest.mark.parametrize("off", [-900.0, 900.0])
def test_the_clock_of_the_files_counts_where_that_of_the_machine_is_off(tmp_path, monkeypatch, off):
    """Two nodes with one folder; the first to fail has a clock that is a quarter of an hour off."""
    true = time.time

    def ended(number: int, text: str) -> dict[str, object]:
        log = tmp_path / f"{number}.txt"
        log.write_text(text)
        rank = ranks.Rank(number, os.getpid(), str(log))
        rank.note_end(256, False)
        return {"rank": number, "ended_at": rank.ended_at, "exit_code": rank.exit_code, **rank.last_words}

    monkeypatch.setattr(clock.time, "time", lambda: true() + off)
    first = ended(1, "Traceback (most recent call last):\nValueError: no")
    monkeypatch.setattr(clock.time, "time", true)
    second = ended(0, "Traceback (most recent call last):\nRuntimeError: Connection closed by peer")
    found = cause.first_failure([second, first])
    assert found is not None and found["rank"] == 1


def test_small_differences_are_left_alone(tmp_path, monkeypatch):
    now = time.time() + 0.5
    monkeypatch.setattr(clock.time, "time", lambda: now)
    assert clock.now(str(tmp_path)) == now
    assert clock.now(str(tmp_path / "none")) == now


def test_what_a_host_wrote_down_is_told_by_our_clock(tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    mirror = Mirror(folder, 1, {}, RunData())
    mirror.behind = 60.0
    told = {"ended_at": 40.0, "processes": [{"rank": 1, "ended_at": 39.0, "wrote_at": None}]}
    mirror.take({"small": "nodes/1/result.json"}, json.dumps(told).encode())
    mirror.take({"small": "nodes/0/ranks/1.json"}, b'{"ended_at": 39.0}')
    mirror.take({"small": "nodes/1/agent.json"}, b'{"start_time": 7, "at": 1.0}')
    mirror.finish()
    kept = {
        name: json.loads((folder.path / name).read_text()) for name in ("nodes/1/result.json", "nodes/0/ranks/1.json")
    }
    assert kept["nodes/1/result.json"]["ended_at"] == 100.0
    assert kept["nodes/1/result.json"]["processes"] == [{"rank": 1, "ended_at": 99.0, "wrote_at": None}]
    assert kept["nodes/0/ranks/1.json"] == {"ended_at": 99.0}
    assert (folder.path / "nodes/1/agent.json").read_bytes() == b'{"start_time": 7, "at": 1.0}'

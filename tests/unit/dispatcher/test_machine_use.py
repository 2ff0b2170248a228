"""How busy the machine is, and what runs use of it."""

from __future__ import annotations

import os
import subprocess
import sys

from trainmaster.dispatcher.machine_use import (
    Sample,
    measure_machine,
    measure_runs,
    parse_gpus,
    parse_memory,
    parse_process,
    take_sample,
)


def make_process(pid: int, parent: int, ticks: int, pages: int = 1):
    fields = ["S", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 8, str(pages), *["0"] * 10]
    found = parse_process(pid, b"%d (a ) b) " % pid + " ".join(fields).encode())
    assert found is not None
    return found


def make_sample(at: float, *processes) -> Sample:
    return Sample(at, 0.0, 0.0, {each.pid: each for each in processes})


def test_descendants_of_agents_count_for_their_run():
    ticks = os.sysconf("SC_CLK_TCK")
    before = make_sample(0.0, make_process(10, 1, 0), make_process(11, 10, 0), make_process(20, 1, 0))
    now = make_sample(
        2.0,
        make_process(10, 1, 0),
        make_process(11, 10, 3 * ticks, 5),
        make_process(12, 11, ticks),
        make_process(20, 1, 9 * ticks),
    )
    first, second = measure_runs(before, now, {"a": [10], "gone": [99]})
    assert (first.run_id, first.cpu_percent, first.processes) == ("a", 200.0, 3)
    assert first.memory == 7 * os.sysconf("SC_PAGE_SIZE")
    assert (second.processes, second.cpu_percent, second.memory) == (0, 0.0, 0)


def test_this_machine():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        before, now = take_sample(), take_sample()
        use = measure_machine(before, now, "/")
        assert 0 <= use.cpu_percent <= 100 and 0 < use.memory_used <= use.memory_total and use.disk_free > 0
        (mine,) = measure_runs(before, now, {"run": [os.getpid()]})
        assert mine.processes >= 2 and mine.memory > 0
    finally:
        child.communicate(b"\n")


def test_what_cannot_be_read_is_left_out():
    assert parse_process(1, b"") is None and parse_process(1, b"1 (x) S 1") is None
    assert parse_memory("nonsense") == (0, 0)
    assert parse_gpus("no devices were found\n") == ()
    assert parse_gpus("0, NVIDIA T4, [N/A], 10, 20\n")[0].percent is None

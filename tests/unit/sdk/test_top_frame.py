"""The screen of `trainmaster top`."""

from __future__ import annotations

import pytest

from trainmaster.sdk.display.top_frame import RunLine, Snapshot, Use, render_frame

MACHINE = {
    "host": "box", "cpus": 8, "cpu_percent": 50.0, "load": 4.0, "memory_total": 32 << 30, "memory_used": 8 << 30,
    "disk_total": 1 << 40, "disk_free": 1 << 39,
    "gpus": [{"index": 0, "name": "A100", "percent": 95.0, "memory_used": 1 << 30, "memory_total": 4 << 30}],
}  # fmt: skip


def make_run(number: int, status: str = "Running", ranks: int = 1, waiting_for: str = "", age: float = 2.0) -> RunLine:
    use = Use(12.4, 1.5, 2, 0.25, 3.0)
    nodes = {0: {"cpu_percent": 1.0, "gpu0_percent": 80.0, "gpu1_percent": 40.0}}
    ranked = dict.fromkeys(range(ranks), use)
    return RunLine(
        f"run_{number}", "mnist", status, "local", "ann", 940.0, waiting_for, 1000.0 - age, use, ranked, nodes
    )


def make_snapshot(*runs: RunLine) -> Snapshot:
    target = {"name": "local", "engine": "local", "nodes": 2, "busy": 1, "waiting": 1}
    return Snapshot("team", 1000.0, MACHINE, (target,), runs)


def draw(snapshot: Snapshot, width: int, height: int | None = None, scroll: int = 0, note: str = "") -> list[str]:
    return render_frame(snapshot, width, height, lambda text, styles: text, scroll, note)


def test_runs_ranks_targets_and_the_machine_are_there() -> None:
    text = "\n".join(draw(make_snapshot(make_run(1, ranks=2), make_run(2, "Queued", 0, "1 of 2 nodes")), 160))
    assert "2 active runs, 1 running" in text
    assert "CPU [######......] 50 % of 8" in text
    assert "8.0 GB of 32.0 GB" in text
    assert "GPU 0 A100 [###########.] 95 %" in text
    for word in ("rank 0", "rank 1", "1.5 GB", "1m 00s", "1 of 2 nodes", "WRITE MB/s"):
        assert word in text
    # The average of the GPUs of the run.
    assert " 60 " in text


def test_an_old_measurement_says_its_age() -> None:
    assert "measured 40.0 s ago" in "\n".join(draw(make_snapshot(make_run(1, age=40.0)), 160))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (20, 5), (40, 2)])
def test_no_line_is_too_long_and_no_screen_too_high(width: int, height: int) -> None:
    runs = [make_run(number, ranks=4) for number in range(40)]
    lines = draw(make_snapshot(*runs), width, height, note="q quits")
    assert len(lines) <= height
    if width >= 80:
        assert max(map(len, lines)) <= width
        assert "more lines: arrow keys scroll" in lines[-1]


def test_scrolling_shows_the_rest_and_stops_at_the_end() -> None:
    snapshot = make_snapshot(*[make_run(number) for number in range(40)])
    assert "run_39" not in "\n".join(draw(snapshot, 80, 24))
    last = draw(snapshot, 80, 24, scroll=1000)
    assert "run_39" in last[-1]
    assert len(last) == 24


def test_nothing_to_show() -> None:
    assert draw(Snapshot("team", 1000.0, None, (), ()), 80)[-1] == "Nothing runs or waits."

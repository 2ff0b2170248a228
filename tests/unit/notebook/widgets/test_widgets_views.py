"""What is drawn of a run, from plain data."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_sweeps import NOW, sweep_of

from trainmaster.notebook.widgets.chart import chart
from trainmaster.notebook.widgets.frame import frame
from trainmaster.notebook.widgets.page import page
from trainmaster.notebook.widgets.view import Metric, Picture, Rank, RunView, widget_data
from trainmaster.sdk.display.text import plain_text
from trainmaster.shared.records import MetricSeries, MetricSummary, RunError, RunRecord, Status

EVIL = "<script>alert(1)</script>\x1b[31m"


def metric(name: str, values: tuple, ranks: tuple = ()) -> Metric:
    summary = MetricSummary(name, "scalar", len(values), last=values[-1], minimum=0.0, maximum=1.0)
    return Metric(summary, MetricSeries(name, "scalar", len(values), values, ranks=ranks))


def view(**changes) -> RunView:
    record = RunRecord(id="run_1", experiment="mine", status=Status.RUNNING, created_at=0.0, started_at=0.0)
    record = RunRecord(**{**vars(record), **changes.pop("record", {})})
    given = {"metrics": (), "ranks": (), "log_name": "", "log": (), "pictures": (), "children": ()}
    return RunView(record, **{**given, **changes})


def plain(text: str, styles: str) -> str:
    return text


FAILED = {
    "status": Status.FAILED,
    "ended_at": 5.0,
    "error": RunError("ScriptFailed", f"rank 1 ended with exit code 1\n{EVIL}", {"rank": 1}),
}
FULL = view(
    record=FAILED,
    metrics=(metric("loss", (0.5, float("nan"), 0.25)), metric(EVIL, (1, "text", None))),
    ranks=(Rank(0, "rank 0", "fine", False), Rank(1, "rank 1", EVIL, True)),
    log_name="70_driver_log.txt",
    log=("one", EVIL),
    pictures=(Picture("plot", "image/png", b"\x89PNG"),),
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_shows_the_error_first_and_loads_nothing() -> None:
    html = page(FULL, 6.0)
    assert html.index("ScriptFailed") < html.index("Failed</span>") < html.index("<svg") < html.index("70_driver_log")
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert not {tag for tag, _ in tags.found} & {"script", "a", "link", "iframe"}
    sources = [attrs["src"] for _, attrs in tags.found if "src" in attrs]
    assert [source[:22] for source in sources] == ["data:image/png;base64,"]
    assert "\x1b" not in html


def test_the_failed_rank_stands_out() -> None:
    html = page(FULL, 6.0)
    assert re.search(r'<tr class="tm-bad"><td>rank 1</td>', html)
    assert "<tr><td>rank 0</td>" in html


def test_each_rank_has_a_line_of_its_own() -> None:
    both = metric("loss", (1.0, 2.0, 3.0, 4.0), ranks=(0, 1, 0, 1))
    assert page(view(metrics=(both,)), 1.0).count("<polyline") == 2


@given(st.lists(st.lists(st.one_of(st.floats(), st.integers(), st.none(), st.text()))))
def test_a_chart_is_well_formed_whatever_the_values(lines: list) -> None:
    drawn = chart("a & b", lines)
    if drawn:
        points = [each.getAttribute("points") for each in minidom.parseString(drawn).getElementsByTagName("polyline")]
        numbers = [float(n) for text in points for pair in text.split() for n in pair.split(",")]
        assert all(0 <= n <= 240 for n in numbers)


def test_the_terminal_shows_the_error_first() -> None:
    lines = frame(FULL, 6.0, 80, 40, plain)
    assert lines[0] == "ScriptFailed: rank 1 ended with exit code 1"
    assert any(line.startswith("Failed  run_1") for line in lines)
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(20, 5), (40, 10), (200, 60)])
def test_nothing_is_wider_or_higher_than_the_terminal(width: int, height: int) -> None:
    long = view(
        record={**FAILED, "id": "x" * 300, "warnings": ("w" * 300,)},
        metrics=tuple(metric(f"metric {n} with a long name", (1.0, 2.0)) for n in range(30)),
        ranks=tuple(Rank(n, f"rank {n}", "y" * 300, n == 50) for n in range(64)),
        log=tuple("z" * 300 for _ in range(40)),
    )
    lines = frame(long, 6.0, width, height, plain)
    assert len(lines) <= height
    # Numbers are never cut; everything else is.
    assert [line for line in lines if len(line) > max(width, 60)] == []


def test_a_failed_rank_is_never_left_out() -> None:
    many = view(ranks=tuple(Rank(n, f"rank {n}", "", n == 50) for n in range(64)))
    assert any(line.startswith("rank 50") for line in frame(many, 1.0, 80, 60, plain))


def test_escapes_of_terminals_are_removed() -> None:
    assert plain_text("\x1b]0;title\x07a\x1b[2Kb\x1b[1;31mc\x1b[0m\r") == "abc"


@pytest.mark.parametrize("count", [0, 1, 40, 1000])
def test_a_sweep_is_a_picture_and_a_table_of_its_trials(count: int) -> None:
    sweep = sweep_of(count, 8, going=min(1, count), total=2000, experiment=EVIL)
    shown = view(sweep=sweep, log_name="hyperdrive.txt", log=("interval 4: ...",))
    html = page(shown, NOW)
    tags = Tags()
    tags.feed(re.sub(r"<(rect|circle|path|line)[^>]*/>", "", html))
    assert tags.open == []
    assert not {tag for tag, _ in tags.found} & {"script", "a", "link", "iframe"} and "\x1b" not in html
    assert html.count("<svg") == (count > 0)
    assert html.count("<tr") == (0 if count == 0 else 1 + min(20, count))
    assert f"{max(0, count - 1)} of 2,000 trials" in html
    assert len(html) < 400_000
    lines = frame(shown, NOW, 79, 20, plain)
    assert lines[0].startswith(f"{sweep.status}  digits_1") and len(lines) <= 20


def test_the_best_of_a_sweep_stands_out_and_the_cut_step_back() -> None:
    html = page(view(sweep=sweep_of(15, 1)), NOW)
    best = sweep_of(15, 1).best
    assert best is not None
    assert re.findall(r'<tr class="tm-best"><td>(.*?)</td>', html) == [f"run_{best.number}"]
    assert len(re.findall(r'<tr class="tm-cut">', html)) == 2
    assert re.findall(r'<tr class="tm-bad"><td>(.*?)</td>', html) == ["run_10"]
    # Errors first.
    assert (
        html.index("run_10 failed: rank 0") < html.index('class="tm-bar"') < html.index("<svg") < html.index("<table")
    )


def test_the_data_of_a_sweep_has_its_trials_best_first() -> None:
    record = {"type": "hyperdrive"}
    data = widget_data(view(record=record, sweep=sweep_of(5, 2)))
    assert [child["best_metric"] for child in data["child_runs"]] == sorted(
        (child["best_metric"] for child in data["child_runs"]), reverse=True
    )
    assert {"run_id", "status", "hyperdrive_id", "param_--lr", "param_--batch-size"} <= set(data["child_runs"][0])

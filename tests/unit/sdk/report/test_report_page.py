"""Reports as HTML, from plain data."""

from __future__ import annotations

import pytest
from tests.made_sweeps import sweep_of

from trainmaster.sdk.report.chart import draw_chart, split_ranks
from trainmaster.sdk.report.contents import LogEnd, Metric, Report
from trainmaster.sdk.report.page import write_page
from trainmaster.shared.records import MetricSeries, MetricSummary, RunError, RunRecord, Status


def make_record(**changes: object) -> RunRecord:
    facts: dict[str, object] = {"id": "a_1", "experiment": "a", "status": Status.COMPLETED, "created_at": 0.0}
    return RunRecord(**{**facts, **changes})  # type: ignore[arg-type]


def write(record: RunRecord, **more: object) -> str:
    return write_page(Report(record, "default", 100.0, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["id", "display_name", "description", "waiting_for", "submitted_by", "target"])
def test_every_text_of_a_run_is_escaped(field: str) -> None:
    text = write(make_record(**{field: "<b onclick='x()'>\x1b[31m\u202e"}))
    assert "<b onclick" not in text and "\x1b" not in text and "\u202e" not in text
    assert "&lt;b onclick=&#x27;x()&#x27;&gt;" in text


def test_an_error_without_text_is_shown_by_its_code() -> None:
    assert "<strong>UserError</strong>" in write(make_record(status=Status.FAILED, error=RunError("UserError", "")))


def test_a_sweep_has_a_picture_and_its_trials_best_first() -> None:
    view = sweep_of(30)
    text = write(make_record(type="hyperdrive"), sweep=view)
    assert "data:image/svg+xml;base64," in text
    assert view.best is not None
    assert text.index(f"<td>{view.best.run_id}</td>") < text.index(f"<td>{view.trials[-1].run_id}</td>")


def test_ranks_are_lines_of_one_chart() -> None:
    values, ranks = (1.0, 2.0, 3.0, 4.0), (0, 1, 0, 1)
    series = MetricSeries("loss", "scalar", 4, values, steps=(1, 1, 0, 0), index=(0, 1, 2, 3), ranks=ranks)
    assert split_ranks(series) == {0: [(0.0, 3.0), (1.0, 1.0)], 1: [(0.0, 4.0), (1.0, 2.0)]}
    metric = Metric(MetricSummary("loss", "scalar", 4, 4.0, 1.0, 4.0), series)
    text = write(make_record(), metrics=(metric,), metric_count=1)
    assert text.count("<path class='line") == 2 and "rank 1" in text


def test_what_a_run_used_is_shown_apart() -> None:
    series = MetricSeries(
        "system/node/cpu_percent", "system", 4, (1.0, 2.0, 3.0, 4.0), index=(0, 1, 2, 3), ranks=(0, 1) * 2
    )
    used = Metric(MetricSummary(series.name, "system", 4, 4.0, 1.0, 4.0), series)
    once = Metric(MetricSummary("system/memory_gb", "system", 1, 2.5, 2.5, 2.5), None)
    text = write(make_record(), system=(used, once))
    assert text.count("<path class='line") == 2
    assert "System use" in text and "node 1" in text and "<figcaption>node/cpu_percent<" in text and "2.5" in text
    assert "System use" not in write(make_record())


def test_values_without_all_steps_are_drawn_in_their_order() -> None:
    series = MetricSeries("loss", "scalar", 2, (1.0, 2.0), steps=(7, None), index=(0, 1), ranks=(None, None))
    assert split_ranks(series) == {None: [(0.0, 1.0), (1.0, 2.0)]}


@pytest.mark.parametrize("values", [[1e308, -1e308], [5, 5], [float("inf"), 1], [0, 1e-320], ["x", 2]])
def test_extreme_values_have_a_chart(values: list[object]) -> None:
    drawn = draw_chart("x", [list(enumerate(values))])  # type: ignore[arg-type]
    assert drawn.startswith("<svg") and "nan" not in drawn and "inf" not in drawn


def test_a_log_that_was_cut_says_so() -> None:
    logs = (LogEnd("70_driver_log.txt", 0, "end", is_whole=False), LogEnd("70_driver_log_1.txt", 1, "", is_whole=True))
    text = write(make_record(), logs=logs, log_count=70)
    assert "70_driver_log.txt, only its last lines" in text and "It is empty." in text and "68 more logs" in text

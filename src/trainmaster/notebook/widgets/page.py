"""A run as self-contained HTML for a notebook, errors first: no scripts, nothing to load. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from trainmaster.notebook.widgets.chart import chart
from trainmaster.notebook.widgets.markup import escape
from trainmaster.notebook.widgets.sweep_page import sweep_parts
from trainmaster.notebook.widgets.view import Metric, Picture, RunView
from trainmaster.sdk.display.describing import took
from trainmaster.sdk.display.metric_values import format_value
from trainmaster.sdk.display.text import count_of, duration, plain_text
from trainmaster.shared.records import RunRecord, Status

_MOST_LINES = 20
_LONGEST_LINE = 400
_MOST_CHARTS = 24
_COLOURS = {
    Status.COMPLETED: "#1a7f37",
    Status.FAILED: "#cf222e",
    Status.CANCELED: "#9a6700",
    Status.CANCEL_REQUESTED: "#9a6700",
    Status.RUNNING: "#0969da",
    Status.FINALIZING: "#0969da",
    Status.STARTING: "#0969da",
}
_WAITING = "#6e7781"
# Backgrounds are translucent, to be readable in light and dark notebooks. The reversed column makes a log that is
# longer than its box show its end.
_STYLE = """<style>
.tm-run{font:13px/1.45 system-ui,sans-serif;border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 12px;max-width:1040px}
.tm-run pre{font:12px/1.4 ui-monospace,monospace;margin:4px 0 0;padding:6px 8px;overflow:auto;max-height:21em;display:flex;flex-direction:column-reverse;white-space:pre-wrap;overflow-wrap:anywhere;background:rgba(128,128,128,.1);color:inherit}
.tm-run .tm-head{display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}
.tm-run .tm-state{color:#fff;border-radius:10px;padding:1px 10px;font-weight:600}
.tm-run .tm-id{font-family:ui-monospace,monospace;overflow-wrap:anywhere}
.tm-run .tm-dim{opacity:.7}
.tm-run .tm-error{border-left:4px solid #cf222e;background:rgba(207,34,46,.1);padding:6px 10px;margin-bottom:8px}
.tm-run .tm-warning{border-left:4px solid #bf8700;background:rgba(191,135,0,.12);padding:4px 10px;margin-top:6px}
.tm-run .tm-cards{display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px;margin-top:8px}
.tm-run .tm-card{border:1px solid rgba(128,128,128,.25);border-radius:4px;padding:6px 8px;width:240px}
.tm-run .tm-card svg,.tm-run .tm-card img{display:block;max-width:100%;margin-top:4px}
.tm-run .tm-name{font-weight:600;overflow-wrap:anywhere}
.tm-run table.tm-table{border-collapse:collapse;margin-top:8px;font-size:12px;width:100%;table-layout:auto}
.tm-run table.tm-table td,.tm-run table.tm-table th{text-align:left;padding:2px 10px 2px 0;border:0;vertical-align:top;background:none;overflow-wrap:anywhere}
.tm-run tr.tm-bad td{color:#cf222e;font-weight:600}
.tm-run tr.tm-best td{font-weight:600}
.tm-run tr.tm-cut td{opacity:.6}
.tm-run .tm-bar{height:8px;border-radius:4px;background:rgba(128,128,128,.25);overflow:hidden;margin:10px 0 4px}
.tm-run .tm-bar div{height:100%;background:#0969da}
.tm-run .tm-picture{margin-top:8px;overflow-x:auto}
.tm-run .tm-wide{overflow-x:auto}
.tm-run .tm-line{font-family:ui-monospace,monospace;color:#0b84d8;white-space:nowrap}
</style>"""  # noqa: E501


def page(view: RunView, now: float) -> str:
    """The HTML of the whole view."""
    parts = [
        _STYLE,
        '<div class="tm-run">',
        _error(view.record),
        _head(view.record, now, view.page),
        *(_box("tm-warning", escape(text)) for text in view.record.warnings),
        *sweep_parts(view.sweep, now),
        _cards(view),
        _ranks(view),
        _children(view.children),
        _log(view),
        "</div>",
    ]
    return "".join(part for part in parts if part)


def _error(record: RunRecord) -> str:
    if record.error is None:
        return ""
    first, *rest = record.error.message.splitlines() or [record.error.code]
    more = _pre(rest) if rest else ""
    return _box("tm-error", f"<strong>{escape(record.error.code)}</strong>: {escape(first)}{more}")


def _head(record: RunRecord, now: float, page: str) -> str:
    colour = _COLOURS.get(record.status, _WAITING)
    seconds = took(record, now)
    facts = [
        f'<span class="tm-state" style="background:{colour}">{escape(str(record.status))}</span>',
        f'<span class="tm-id">{escape(record.id)}</span>',
        f"<span>{escape(record.experiment)} #{record.number}</span>",
        f"<span>{duration(seconds)}</span>" if seconds is not None else "",
        f"<span>on {escape(record.target)}</span>" if record.target else "",
        f'<span class="tm-dim">{escape(record.waiting_for)}</span>' if record.waiting_for else "",
        f'<a href="{escape(page)}" target="_blank" rel="noopener">Web View</a>' if page else "",
    ]
    return f'<div class="tm-head">{"".join(facts)}</div>'


def _cards(view: RunView) -> str:
    cards = [_card(metric) for metric in view.metrics if metric.summary.kind != "image"]
    left = len(cards) - _MOST_CHARTS
    if left > 0:
        cards = [*cards[:_MOST_CHARTS], f'<div class="tm-dim">and {count_of(left, "more metric")}</div>']
    cards += [_picture(picture) for picture in view.pictures]
    return f'<div class="tm-cards">{"".join(cards)}</div>' if cards else ""


def _card(metric: Metric) -> str:
    summary = metric.summary
    drawn = chart(plain_text(summary.name), lines(metric)) if summary.kind == "scalar" and summary.count > 1 else ""
    span = f"{format_value(summary.minimum)} to {format_value(summary.maximum)}, {count_of(summary.count, 'value')}"
    below = f'<div class="tm-dim">{escape(span)}</div>' if drawn else ""
    return (
        f'<div class="tm-card"><span class="tm-name">{escape(summary.name)}</span> '
        f"{escape(format_value(summary.last)[:200])}{drawn}{below}</div>"
    )


def lines(metric: Metric) -> list[list[object]]:
    """The values of a metric, one line per rank that logged it."""
    ranks = metric.series.ranks or (None,) * len(metric.series.values)
    found: dict[int | None, list[object]] = {}
    for rank, value in zip(ranks, metric.series.values, strict=True):
        found.setdefault(rank, []).append(value)
    return list(found.values())


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.data).decode()
    return (
        f'<div class="tm-card"><span class="tm-name">{escape(picture.name)}</span>'
        f'<img alt="{escape(picture.name)}" src="data:{picture.media_type};base64,{data}"></div>'
    )


def _ranks(view: RunView) -> str:
    rows = [_row(rank.failed, rank.name, rank.last_line[:_LONGEST_LINE]) for rank in view.ranks]
    return _table("<tr><th>process</th><th>last line</th></tr>", rows)


def _children(children: Sequence[RunRecord]) -> str:
    rows = [_row(child.status == Status.FAILED, child.id, str(child.status)) for child in children]
    return _table("<tr><th>child</th><th>state</th></tr>", rows)


def _row(bad: bool, *cells: str) -> str:
    kind = ' class="tm-bad"' if bad else ""
    return f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _table(heading: str, rows: Sequence[str]) -> str:
    return f'<table class="tm-table">{heading}{"".join(rows)}</table>' if rows else ""


def _log(view: RunView) -> str:
    if not view.log:
        return ""
    name = f'<div class="tm-dim" style="margin-top:8px">{escape(view.log_name)}</div>'
    return name + _pre(view.log[-_MOST_LINES:])


def _pre(rows: Sequence[str]) -> str:
    text = "\n".join(escape(row[:_LONGEST_LINE]) for row in rows)
    return f"<pre><span>{text}</span></pre>"


def _box(kind: str, content: str) -> str:
    return f'<div class="{kind}">{content}</div>'

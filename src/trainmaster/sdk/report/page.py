"""A report as HTML, its state and the reason for it first: no scripts, nothing to load, every text escaped. Pure."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from trainmaster.sdk.display.describing import took
from trainmaster.sdk.display.metric_values import format_value
from trainmaster.sdk.display.text import count_of, duration, first_line, plain_text, size
from trainmaster.sdk.report.chart import LINES, draw_chart, split_ranks
from trainmaster.sdk.report.contents import LogEnd, Metric, Picture, Report
from trainmaster.sdk.report.repetition import write_repetition
from trainmaster.sdk.report.style import STYLE
from trainmaster.sdk.sweeps.pictures import picture
from trainmaster.shared.arguments import arguments_of
from trainmaster.shared.job_spec import JobSpec, load_spec, words_of
from trainmaster.shared.records import TERMINAL, RunRecord, Status
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import SweepView, rank_trials, value_in_words

_KINDS = {
    Status.COMPLETED: "good",
    Status.FAILED: "bad",
    Status.CANCELED: "warn",
    Status.CANCEL_REQUESTED: "warn",
    Status.RUNNING: "busy",
    Status.FINALIZING: "busy",
    Status.STARTING: "busy",
}
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
# A second defence: even a mistake in the escaping could not run a script or load anything.
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
_LONGEST_CELL = 2000
_SYSTEM = "system/"
_MOST_TRIALS = 100
_MOST_PARAMETERS = 12


def write_page(report: Report) -> str:
    """The whole file."""
    record = report.record
    spec = load_spec(record.spec) if record.spec else None
    title = f"{record.display_name or record.id}: {record.status}"
    parts = [
        _head(report),
        _reasons(report),
        _section("Note", f'<p class="note">{_text(record.description)}</p>' if record.description else ""),
        _section("Run", _facts(report, spec)),
        _section("Arguments", _arguments(spec)),
        _section("Parameters", _rows(record.params.items()) if record.params else ""),
        _section("Sweep", _sweep(report.sweep)),
        _section(f"Metrics ({report.metric_count:,})", _metrics(report)),
        _section("System use", _system(report.system)),
        _section("Images", _pictures(report.pictures)),
        _section("Child runs", _children(report.children)),
        _section("Ends of logs" if len(report.logs) > 1 else "End of the log", _logs(report)),
        _section(f"Files ({report.file_count:,})", _files(report)),
        _section("Environment", _lock(report.lock)),
        _section("How to repeat it", _repetition(record, spec)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + f"\n</main>\n{_footer(report)}\n</body></html>\n"
    )


def _footer(report: Report) -> str:
    live = (
        "" if report.record.status in TERMINAL else " The run was active. 'trainmaster studio' shows it as it goes on."
    )
    return f"<footer>Written by Trainmaster on {_moment(report.read_at)}.{_text(live)}</footer>"


def _head(report: Report) -> str:
    record = report.record
    seconds = took(record, report.read_at)
    facts = [
        f'<span class="state {_KINDS.get(record.status, "wait")}">{_text(str(record.status))}</span>',
        f"<h1>{_text(record.display_name or record.id)}</h1>",
    ]
    below = [record.experiment, f"run {record.number}", "" if seconds is None else duration(seconds)]
    return f'<div class="head">{"".join(facts)}</div><p class="quiet">{_text(", ".join(filter(None, below)))}</p>'


def _reasons(report: Report) -> str:
    """Why the run is in its state, and what was noticed on the way."""
    record = report.record
    parts = []
    if record.error is not None:
        first, *rest = record.error.message.splitlines() or [""]
        more = _end("\n".join(rest)) if any(line.strip() for line in rest) else ""
        parts.append(f'<div class="reason bad"><strong>{_text(record.error.code)}</strong>: {_text(first)}{more}</div>')
    if record.waiting_for:
        parts.append(f'<div class="reason">Waits: {_text(record.waiting_for)}</div>')
    parts += [f'<div class="reason warn">{_text(text)}</div>' for text in record.warnings]
    return "".join(parts)


def _facts(report: Report, spec: JobSpec | None) -> str:
    record = report.record
    tags = {name: value for name, value in record.tags.items() if not name.startswith("_aml_system_")}
    rows = [
        ("Id", record.id),
        ("Workspace", report.workspace),
        ("Child of", record.parent_id or ""),
        ("Compute target", _target(record, spec)),
        ("Submitted by", record.submitted_by),
        ("Created", _moment(record.created_at)),
        ("Started", _moment(record.started_at)),
        ("Ended", _moment(record.ended_at)),
        ("Tags", ", ".join(name if value is None else f"{name}={value}" for name, value in tags.items())),
        ("Git commit", _git(record.properties)),
        ("Snapshot", record.snapshot_id),
        *((f"Attempt {each['number']}", _attempt(each)) for each in report.attempts[:-1]),
    ]
    return _rows((name, text) for name, text in rows if text)


def _target(record: RunRecord, spec: JobSpec | None) -> str:
    if spec is None:
        return record.target
    return f"{record.target or spec.target}, {count_of(spec.node_count, 'node')}"


def _git(properties: Mapping[str, str]) -> str:
    commit = properties.get("azureml.git.commit", "")
    changed = " with uncommitted changes" if properties.get("azureml.git.dirty") == "True" else ""
    return f"{commit} {properties.get('azureml.git.branch', '')}{changed}".strip() if commit else ""


def _attempt(attempt: Mapping[str, Any]) -> str:
    return f"failed: {first_line(str(attempt.get('error', {}).get('message', '')))}"


def _arguments(spec: JobSpec | None) -> str:
    if spec is None:
        return ""
    from shlex import join

    return _pre(join(words_of(spec))) + _rows(arguments_of(spec.arguments).items())


def _sweep(view: SweepView | None) -> str:
    if view is None:
        return ""
    best = view.best
    facts = [
        ("Metric", f"{view.metric}, {view.goal.value.lower()}"),
        ("Sampling", view.sampling),
        ("Policy", view.policy),
        ("Trials", f"{len(view.trials):,} of {view.total:,}"),
        ("Best", f"{format_value(best.best)} in {best.run_id}" if best else ""),
        ("Ending", view.ending),
    ]
    drawing = base64.b64encode(picture(view).svg().encode()).decode() if best else ""
    image = f'<img alt="Trials by parameter and metric" src="data:image/svg+xml;base64,{drawing}">' if drawing else ""
    shown = rank_trials(view)[:_MOST_TRIALS]
    names = list(dict.fromkeys(name for trial in shown for name in flat(trial.parameters)))[:_MOST_PARAMETERS]
    rows = [
        [trial.run_id, str(trial.status), format_value(trial.best), *_parameters(trial.parameters, names)]
        for trial in shown
    ]
    return (
        _rows((name, text) for name, text in facts if text)
        + (f'<figure class="sweep">{image}</figure>' if image else "")
        + _table(["Trial", "State", f"Best {view.metric}", *names], rows)
        + _more(len(view.trials) - len(shown), "trial")
    )


def _parameters(parameters: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    values = flat(parameters)
    return [value_in_words(values[name]) if name in values else "" for name in names]


def _metrics(report: Report) -> str:
    """A chart for each metric with several numbers; a row for every other one."""
    charts, rows = [], []
    for metric in report.metrics:
        drawn = _chart(metric)
        if drawn:
            charts.append(drawn)
        elif metric.summary.kind != "image":
            summary = metric.summary
            rows.append([summary.name, format_value(summary.last), f"{summary.count:,}"])
    return (
        (f'<div class="charts">{"".join(charts)}</div>' if charts else "")
        + _table(["Metric without a chart" if charts else "Metric", "Last value", "Values"], rows)
        + _more(report.metric_count - len(report.metrics), "metric")
    )


def _system(metrics: Sequence[Metric]) -> str:
    """What the run used of its machines: a chart for each, and how much it was."""
    charts, rows = [], []
    for metric in metrics:
        drawn = _chart(metric, "system")
        if drawn:
            charts.append(drawn)
        else:
            rows.append([metric.summary.name.removeprefix(_SYSTEM), _number(metric.summary.last)])
    table = _table(["Measured once", "Value"], rows) if rows else ""
    return (f'<div class="charts">{"".join(charts)}</div>' if charts else "") + table


def _chart(metric: Metric, kind: str = "scalar") -> str:
    summary = metric.summary
    if metric.series is None or summary.kind != kind or summary.count < 2:
        return ""
    lines = split_ranks(metric.series)
    drawn = draw_chart(plain_text(summary.name), list(lines.values()))
    if not drawn:
        return ""
    last, low, high = (_number(each) for each in (summary.last, summary.minimum, summary.maximum))
    span = f"last {last}, {low} to {high}, {count_of(summary.count, 'value')}"
    name = summary.name.removeprefix(_SYSTEM) if kind == "system" else summary.name
    unit = "node" if kind == "system" and name.startswith("node/") else "rank"
    return (
        f'<figure><figcaption>{_text(name)}</figcaption><div class="quiet">{_text(span)}</div>'
        f"{drawn}{_keys(list(lines), unit)}</figure>"
    )


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else format_value(value)


def _keys(ranks: Sequence[int | None], unit: str) -> str:
    """What each line is, if there are several."""
    if len(ranks) < 2:
        return ""
    keys = [
        f'<span class="key c{n}">{"outside of the job" if rank is None else f"{unit} {rank}"}</span>'
        for n, rank in enumerate(ranks[:LINES])
    ]
    more = f'<span class="key quiet">and {len(ranks) - LINES} more</span>' if len(ranks) > LINES else ""
    return f"<div>{''.join(keys)}{more}</div>"


def _pictures(pictures: Sequence[Picture]) -> str:
    shown = [
        f'<figure><figcaption>{_text(each.name)}</figcaption><img alt="{_text(each.name)}" '
        f'src="data:{each.media_type};base64,{base64.b64encode(each.data).decode()}"></figure>'
        for each in pictures
    ]
    return f'<div class="charts">{"".join(shown)}</div>' if shown else ""


def _children(children: Sequence[RunRecord]) -> str:
    rows = [[child.id, child.display_name, str(child.status)] for child in children]
    return _table(["Run", "Name", "State"], rows)


def _logs(report: Report) -> str:
    # The reason of a failure already has the last lines. Of many logs only the first is open.
    has_end = report.record.error is not None and bool(report.record.error.details.get("tail"))
    shown = [_log(log, is_open=number == 0 and not has_end) for number, log in enumerate(report.logs)]
    return "".join(shown) + _more(report.log_count - len(report.logs), "log")


def _log(log: LogEnd, is_open: bool) -> str:
    name = log.name if log.rank is None else f"Rank {log.rank}: {log.name}"
    note = "" if log.is_whole else ", only its last lines"
    text = "\n".join(plain_text(line) for line in log.text.splitlines())
    body = _end(text) if text.strip() else '<p class="quiet">It is empty.</p>'
    return f"<details{' open' if is_open else ''}><summary>{_text(name + note)}</summary>{body}</details>"


def _files(report: Report) -> str:
    rows = [[name, size(count)] for name, count in report.files]
    table = _table(["Name", "Size"], rows)
    if len(rows) > 30:
        table = f"<details><summary>{count_of(report.file_count, 'file')}</summary>{table}</details>"
    return table + _more(report.file_count - len(report.files), "file")


def _lock(lock: str) -> str:
    if not lock.strip():
        return ""
    lines = sum(1 for line in lock.splitlines() if line.strip() and not line.lstrip().startswith(("#", "--")))
    return f"<details><summary>Lock: the exact packages ({count_of(lines, 'line')})</summary>{_pre(lock)}</details>"


def _repetition(record: RunRecord, spec: JobSpec | None) -> str:
    return "" if spec is None else _pre(write_repetition(record, spec))


def _section(heading: str, body: str) -> str:
    return f"<section><h2>{_text(heading)}</h2>{body}</section>" if body else ""


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    """A table of names and texts."""
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_cell(text)}</td></tr>' for name, text in pairs)
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text; the rest is text or numbers."""
    if not rows:
        return ""
    top = "".join(f'<th scope="col">{_text(head)}</th>' for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _more(count: int, noun: str) -> str:
    return f'<p class="quiet">And {count_of(count, f"more {noun}")}.</p>' if count > 0 else ""


def _cell(text: str) -> str:
    return _text(text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}...")


def _pre(text: str) -> str:
    lines = (plain_text(line) for line in text.splitlines())
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _end(text: str) -> str:
    """A box that shows the end of a text that is longer than it."""
    return f'<div class="end" role="region" aria-label="Last lines" tabindex="0">{_pre(text)}</div>'


def _text(text: str) -> str:
    """As HTML, without control characters."""
    return escape(plain_text(text))


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))

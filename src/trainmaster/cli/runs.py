"""`trainmaster runs`, `show` and `cancel`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, find_run_to_change, get_run, list_runs, open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.describing import SWEEP, list_labels, reason, run_as_json, style_of, took
from trainmaster.sdk.display.screen import is_terminal, note, paint, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, duration, first_line, moment, plain_text, tags
from trainmaster.shared.records import ACTIVE, LIMITS_PROPERTY, TERMINAL, RunQuery, RunRecord, Status
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_USUAL_LIMIT = 20


def runs_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-n", "--limit", metavar="N", type=int, help="list at most N runs (default: 20, with --csv all)"
    )
    parser.add_argument("-e", "--experiment", metavar="NAME", help="only runs of this experiment")
    parser.add_argument(
        "--status",
        action="append",
        metavar="STATE",
        help="only runs in this state, or 'active' or 'ended' (repeatable)",
    )
    parser.add_argument("--tag", action="append", metavar="NAME[=VALUE]", help="only runs with this tag (repeatable)")
    parser.add_argument("-a", "--all", action="store_true", help="list child runs too")
    parser.add_argument("--archived", action="store_true", help="list archived runs too")
    parser.add_argument(
        "--where", metavar="FILTER", help="only runs that match, such as 'lr < 0.1 and metric.loss.min <= 0.3'"
    )
    parser.add_argument(
        "--sort", metavar="FIELD", help="sort by this field, such as metric:loss; 'metric:loss desc': largest first"
    )
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="show these fields, such as id,name,lr,metric.loss.min,tags,arguments,metrics",
    )
    parser.add_argument("--csv", action="store_true", help="print CSV, with a column for each argument, metric and tag")


def runs(options: Options) -> int:
    """List runs, newest first.

    JSON: a list of {"id", "experiment", "number", "display_name", "parent_id", "type", "target", "status",
    "waiting_for", "error", "warnings", "created_at", "started_at", "ended_at", "duration_seconds", "snapshot_id",
    "submitted_by", "tags"}. With --where, --sort or --columns: a list of objects with the columns.

      trainmaster runs --where "lr < 0.1 and tag.kind = base" --sort metric:loss
      trainmaster runs -e mnist --columns id,name,lr,metric.loss.min,tags
      trainmaster runs -e mnist --csv > runs.csv
    """
    if options.limit is not None and options.limit < 1:
        raise UserErrorException(f"--limit must be at least 1, not {options.limit}")
    if options.csv and options.json:
        raise UserErrorException("--csv and --json cannot be used together", hint="Leave one of them out.")
    query = RunQuery(
        experiment=options.experiment,
        statuses=statuses(options.status),
        tags=tags(options.tag),
        include_children=options.all,
        archived=options.archived,
        limit=options.limit or _USUAL_LIMIT,
    )
    workspace = open_workspace(options.workspace)
    if options.where or options.sort or options.columns or options.csv:
        # Loaded only if needed: the plain list is what people wait for most often.
        from trainmaster.cli.runs_search import show_search

        return show_search(workspace, options, query.statuses, query.tags)
    found = list_runs(workspace, query)
    now = time.time()
    # Most people name and tag no run, or all of them: columns that would be empty are left out.
    labels = [column for column in _LABELS if any(column.text(record) for record in found)]
    listing: Listing[RunRecord] = Listing(
        columns=(
            Column("RUN"),
            *(Column(column.heading, flexible=True) for column in labels),
            Column("EXPERIMENT", flexible=True),
            Column("STATUS", style=style_of),
            Column("TOOK", right=True),
            Column("CREATED", right=True),
            Column("NOTE", flexible=True, style=lambda text: "dim"),
        ),
        row=lambda record: table_row(record, now, [plain_text(column.text(record)) for column in labels]),
        json=run_as_json,
        empty=_no_runs(workspace, query),
    )
    return listing.show(found, options)


class _Labels(NamedTuple):
    heading: str
    text: Callable[[RunRecord], str]


_LABELS = (
    _Labels("NAME", lambda record: record.display_name),
    _Labels("TAGS", list_labels),
    _Labels("ARCHIVED", lambda record: "archived" if record.archived_at is not None else ""),
)


def statuses(given: list[str] | None) -> tuple[str, ...]:
    """The states that the words of --status stand for.

    >>> statuses(["failed", "Canceled"])
    ('Canceled', 'Failed')
    """
    groups = {"active": ACTIVE, "ended": TERMINAL}
    known = {status.lower(): frozenset({status}) for status in Status}
    found: set[Status] = set()
    for word in given or ():
        meant = groups.get(word.lower()) or known.get(word.lower().replace("-", "").replace("cancelled", "canceled"))
        if meant is None:
            raise UserErrorException(
                f"--status {word!r} is not a state of a run", hint=f"States: active, ended, {', '.join(Status)}."
            )
        found |= meant
    return tuple(sorted(str(status) for status in found))


def table_row(record: RunRecord, now: float, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """The cells of a run; `labels` are those that people have written."""
    seconds = took(record, now)
    return (
        record.id,
        *labels,
        record.experiment,
        str(record.status),
        "" if seconds is None else duration(seconds),
        moment(record.created_at, now),
        reason(record),
    )


def _no_runs(workspace: Workspace, query: RunQuery) -> str:
    if query.experiment or query.statuses or query.tags:
        return f"Workspace '{workspace.name}' has no such runs."
    return f"Workspace '{workspace.name}' has no runs yet. 'trainmaster submit FOLDER SCRIPT' starts one."


def show_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--html", metavar="FILE", help="write a report of the run to this file, with charts and logs")


def show(options: Options) -> int:
    """Show one run: its state, error and settings.

    With --html, write a report instead: one file that needs nothing else, with the state, arguments, charts of all
    metrics, ends of logs, files, packages, and how to repeat the run.

    JSON: the keys of 'runs', and "description", "properties", "origin" (the run that it repeats), "resumed_from",
    "attempts", "job" (what was submitted), "folder" and "page" (its address in the studio, if one runs). With --html:
    {"run", "file"}.

      trainmaster show last --html report.html
    """
    from trainmaster.sdk.run.details import run_attempts

    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    if options.html is not None:
        return _write_report(workspace, record, options)
    files = workspace.backend.run_files(record.id)
    attempts = run_attempts(record, files)
    page = workspace.backend.find_page(f"{'sweeps' if record.type == SWEEP else 'runs'}/{record.id}")
    if options.json:
        job = json.loads(record.spec) if record.spec else None
        more = {
            "description": record.description,
            "properties": dict(record.properties),
            "origin": record.properties.get("origin"),
            "resumed_from": record.properties.get("resumed_from"),
            "parameters": dict(record.params),
            "attempts": attempts,
            "job": job,
            "folder": files.location,
            "page": page or None,
        }
        say_json({**run_as_json(record), **more})
        return exits.OK
    say(f"{paint(record.id, 'bold')}  {paint(str(record.status), style_of(record.status))}")
    if record.error is not None:
        say()
        for line in record.error.message.splitlines():
            say(f"  {paint(line, 'red')}")
        say()
    facts = [(name, text) for name, text in _facts(record, attempts, files.location, page) if text]
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        say(f"  {paint(name.ljust(width), 'dim')}  {text}")
    if record.description:
        # The note is Markdown of any length, so it stands below, as it was written.
        say()
        for line in record.description.splitlines():
            say(f"  {line}".rstrip())
    return exits.OK


def _write_report(workspace: Workspace, record: RunRecord, options: Options) -> int:
    from pathlib import Path

    from trainmaster.sdk.report.writing import write_report

    path = Path(options.html).expanduser()
    write_report(workspace, record.id, path)
    if options.json:
        say_json({"run": record.id, "file": str(path.resolve())})
    else:
        say(str(path))
    return exits.OK


def _facts(record: RunRecord, attempts: list[dict[str, Any]], folder: str, page: str) -> list[tuple[str, str]]:
    now = time.time()
    seconds = took(record, now)
    return [
        ("name", record.display_name),
        ("experiment", f"{record.experiment} (run {record.number})"),
        ("child of", record.parent_id or ""),
        *_origin(record),
        ("waits", record.waiting_for),
        ("took", "" if seconds is None else duration(seconds)),
        ("created", _time(record.created_at)),
        ("started", _time(record.started_at)),
        ("ended", _time(record.ended_at)),
        ("tags", list_labels(record)),
        ("parameters", ", ".join(f"{name}={value}" for name, value in record.params.items())),
        *_attempt_facts(attempts),
        *_job_facts(record),
        ("snapshot", record.snapshot_id),
        ("git", _git(record)),
        ("by", record.submitted_by),
        ("folder", folder),
        # On a server the folder is the page.
        ("page", page if page != folder else ""),
        *(("note", text) for text in record.warnings),
    ]


def _origin(record: RunRecord) -> list[tuple[str, str]]:
    resumed = record.properties.get("resumed_from", "")
    return [("resumes", resumed), ("rerun of", "" if resumed else record.properties.get("origin", ""))]


def _attempt_facts(attempts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(f"attempt {each['number']}", f"failed: {first_line(each['error']['message'])}") for each in attempts[:-1]]


def _job_facts(record: RunRecord) -> list[tuple[str, str]]:
    if not record.spec:
        return []
    from shlex import join

    from trainmaster.shared.job_spec import load_spec, words_of

    spec = load_spec(record.spec)
    environment = spec.environment
    if environment.user_managed:
        python = environment.interpreter or "the Python that submitted it"
    else:
        python = f"{environment.python_version} with {' '.join(environment.pip_packages) or 'no packages'}".lstrip()
    return [
        ("target", f"{spec.target}, {count_of(spec.node_count, 'node')}"),
        ("source", spec.source_directory),
        ("runs", join(words_of(spec))),
        ("python", python),
        ("variables", " ".join(spec.environment_variables)),
        ("at most", _limit(spec.max_run_duration_seconds)),
        ("priority", str(spec.priority or "")),
        ("limits", record.properties.get(LIMITS_PROPERTY, "")),
        ("retries", str(spec.max_retries or "")),
        ("hang limit", duration(spec.hang_seconds) if spec.hang_seconds else ""),
    ]


def _limit(seconds: int | None) -> str:
    # Thirty days are v1's default, which nobody chose.
    return "" if seconds is None or seconds >= 2592000 else duration(seconds)


def _git(record: RunRecord) -> str:
    properties = record.properties
    commit = properties.get("azureml.git.commit", "")
    branch = properties.get("azureml.git.branch", "")
    changed = " with changes" if properties.get("azureml.git.dirty") == "True" else ""
    return f"{commit[:12]} {branch}{changed}".strip() if commit else ""


def _time(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def cancel_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="+", help="a run's id or its beginning, 'last' or @N")
    parser.add_argument("--wait", action="store_true", help="return when all their processes have ended")


def cancel(options: Options) -> int:
    """End runs and all their processes.

    JSON: a list of the runs, with the keys of 'runs'.

      trainmaster cancel last
      trainmaster cancel @1 @2 --wait
    """
    workspace = open_workspace(options.workspace)
    chosen = [find_run_to_change(workspace, given) for given in options.run]
    canceled = [from_plain(RunRecord, workspace.connection.call("runs.cancel", run_id=record.id)) for record in chosen]
    if options.wait:
        canceled = [_wait(workspace, record) for record in canceled]
    if options.json:
        say_json([run_as_json(record) for record in canceled])
        return exits.OK
    for before, after in zip(chosen, canceled, strict=True):
        late = " already" if before.status in TERMINAL else ""
        say(f"{after.id} is{late} {paint(str(after.status), style_of(after.status))}")
    if is_terminal(sys.stderr) and any(record.status not in TERMINAL for record in canceled):
        note("The state becomes Canceled when all processes have ended.")
    return exits.OK


def _wait(workspace: Workspace, record: RunRecord) -> RunRecord:
    with workspace.connection.watch(record.id) as watch:
        for _ in watch:
            pass
    return get_run(workspace, record.id)

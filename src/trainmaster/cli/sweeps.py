"""`trainmaster sweep show` and `sweep list`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, list_runs, open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.sweep_following import follow_sweep, look_at
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.sdk.display.describing import SWEEP, style_of, took
from trainmaster.sdk.display.screen import paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.sweep_frame import number, summary_as_json, sweep_as_json, whole
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, duration, moment
from trainmaster.shared.records import RunQuery, RunRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.tuning.view import SweepSummary

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def add_sweep(parser: Parser) -> None:
    """Adds the argument SWEEP."""
    parser.add_argument("run", metavar="SWEEP", help="a sweep's id or its beginning, 'last' or @N")


def show_arguments(parser: Parser) -> None:
    add_sweep(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="keep drawing it until it has ended")
    parser.add_argument(
        "-n", "--limit", metavar="N", type=int, help="show only the best N trials (default with -f: 50, at the end)"
    )


def show(options: Options) -> int:
    """Show one sweep: its progress, the best trial so far, and all trials, best first.

    With -f the view is redrawn until the sweep has ended (without a terminal, each change is one line), and the exit
    code is that of the sweep: 0, 1 or 3. Ctrl-C stops watching; the sweep continues. 'trainmaster show' shows one
    trial, and 'trainmaster cancel SWEEP' ends a sweep with all its trials.

    JSON: {"id", "status", "metric", "goal", "sampling", "policy", "space", "total", "counts", "seconds_left", "ending",
    "warnings", "best", "trials": [{"number", "id", "status", "parameters", "best", "last", "reports", "series",
    "cut_interval", "cut_reason", "error", ...}], ...}; with -f at the end of the sweep.

      trainmaster sweep show -f last
      trainmaster sweep show last -n 3 --json
    """
    if options.limit is not None and options.limit < 1:
        raise UserErrorException(f"--limit must be at least 1, not {options.limit}")
    workspace = open_workspace(options.workspace)
    record = find_sweep(workspace, options.run)
    if options.follow:
        return follow_to_end(workspace, record.id, options)
    view = look_at(workspace, record.id)
    if options.json:
        say_json(_limit_trials(sweep_as_json(view, time.time()), options.limit))
        return exits.OK
    for line in whole(view, time.time(), width_of_terminal(), paint, options.limit):
        say(line)
    return exits.OK


def follow_to_end(workspace: Workspace, run_id: str, options: Options) -> int:
    """Shows a sweep until it has ended; returns the exit code for its end."""
    limit = getattr(options, "limit", None)
    view = follow_sweep(workspace, run_id, sys.stderr if options.json else sys.stdout, limit)
    if view is None:
        return exits.INTERRUPTED
    if options.json:
        say_json(_limit_trials(sweep_as_json(view, time.time()), limit))
    return exits.code_of_status(view.status)


def find_sweep(workspace: Workspace, given: str) -> RunRecord:
    """The sweep of this id. `last` and `@N` count sweeps only, and the id of a trial stands for its sweep."""
    if given == "last" or given.startswith("@"):
        place = 1 if given == "last" else _place(given)
        found = list_runs(workspace, RunQuery(type=SWEEP, limit=place))
        if len(found) < place:
            raise UserErrorException(
                f"workspace '{workspace.name}' has {count_of(len(found), 'sweep') if found else 'no sweeps'}",
                hint="'trainmaster sweep list' lists them, 'trainmaster sweep submit FILE' starts one.",
            )
        return found[-1]
    try:
        record = find_run(workspace, given)
    except RunNotFoundException as error:
        raise RunNotFoundException(error.headline, hint="'trainmaster sweep list' lists the sweeps.") from None
    if record.type == SWEEP:
        return record
    parent = None if record.parent_id is None else find_run(workspace, record.parent_id)
    if parent is not None and parent.type == SWEEP:
        return parent
    raise UserErrorException(f"run {record.id} is not a sweep", hint="'trainmaster sweep list' lists the sweeps.")


def _place(given: str) -> int:
    if not given[1:].isdecimal() or not 1 <= int(given[1:]) <= 1000:
        raise UserErrorException(
            f"{given!r} is not a sweep", hint="Write @1 for the newest sweep, @2 for the one before, and so on."
        )
    return int(given[1:])


def _limit_trials(data: dict[str, Any], limit: int | None) -> dict[str, Any]:
    return {**data, "trials": data["trials"][:limit]}


def list_sweeps_arguments(parser: Parser) -> None:
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="list at most N sweeps (default: 20)")
    parser.add_argument("-e", "--experiment", metavar="NAME", help="only sweeps of this experiment")


def list_sweeps(options: Options) -> int:
    """List sweeps, newest first.

    JSON: a list of sweeps, with the keys of 'sweep show' except for "trials".

      trainmaster sweep list -e mnist
    """
    if options.limit < 1:
        raise UserErrorException(f"--limit must be at least 1, not {options.limit}")
    workspace = open_workspace(options.workspace)
    records = list_runs(workspace, RunQuery(type=SWEEP, experiment=options.experiment, limit=options.limit))
    answers = workspace.connection.call("sweeps.summaries", run_ids=[record.id for record in records])
    now = time.time()
    listing: Listing[tuple[RunRecord, SweepSummary]] = Listing(
        columns=(
            Column("SWEEP"),
            Column("EXPERIMENT", flexible=True),
            Column("STATUS", style=style_of),
            Column("TRIALS", right=True),
            Column("METRIC", flexible=True),
            Column("BEST", right=True, style=lambda text: "bold"),
            Column("TOOK", right=True),
            Column("CREATED", right=True),
        ),
        row=lambda pair: _row(*pair, now),
        json=lambda pair: summary_as_json(pair[1]),
        empty=f"Workspace '{workspace.name}' has no such sweeps. 'trainmaster sweep submit FILE' starts one.",
    )
    summaries = [from_plain(SweepSummary, answer) for answer in answers]
    return listing.show(list(zip(records, summaries, strict=True)), options)


def _row(record: RunRecord, summary: SweepSummary, now: float) -> tuple[str, ...]:
    seconds = took(record, now)
    return (
        record.id,
        record.experiment,
        str(record.status),
        f"{summary.counts.ended}/{summary.view.total}",
        summary.view.metric,
        number(summary.best.best) if summary.best else "",
        "" if seconds is None else duration(seconds),
        moment(record.created_at, now),
    )

"""`trainmaster best`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.runs_search import find_rows, make_filter, quote
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.describing import style_of
from trainmaster.sdk.display.metric_values import format_value
from trainmaster.sdk.display.screen import note
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import duration
from trainmaster.shared.spelling import guess

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

GOALS = ("minimize", "maximize")
_SMALLER = frozenset(
    [
        "loss",
        "error",
        "err",
        "cost",
        "mse",
        "rmse",
        "mae",
        "mape",
        "rmsle",
        "perplexity",
        "ppl",
        "wer",
        "cer",
        "nll",
        "fid",
        "latency",
        "seconds",
    ]
)
_LARGER = frozenset(
    [
        "accuracy",
        "acc",
        "auc",
        "f1",
        "precision",
        "recall",
        "score",
        "r2",
        "bleu",
        "rouge",
        "iou",
        "miou",
        "map",
        "reward",
        "return",
        "throughput",
        "dice",
    ]
)
"""Words in names of metrics that say which values are better."""


def best_arguments(parser: Parser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="the name of an experiment")
    parser.add_argument("-m", "--metric", metavar="NAME", required=True, help="the metric that decides")
    parser.add_argument(
        "--goal", metavar="GOAL", help="minimize or maximize (default: minimize a loss or error, maximize an accuracy)"
    )
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=5, help="show the N best runs (default: 5)")


def best(options: Options) -> int:
    """Show the best runs of an experiment by a metric, best first. Trials of sweeps count too.

    A run is as good as the best value that it logged, at any time.

    JSON: a list of {"id", "name", "status", "best", "last", "duration_seconds", "arguments", "tags"}.

      trainmaster best mnist --metric accuracy
      trainmaster best mnist --metric loss --goal minimize -n 1 --json
    """
    if options.limit < 1:
        raise UserErrorException(f"--limit must be at least 1, not {options.limit}")
    goal = _find_goal(options.goal, options.metric)
    name, part = f"metric.{quote(options.metric)}", "min" if goal == "minimize" else "max"
    workspace = open_workspace(options.workspace)
    where = make_filter(f"{name}.{part} is set", options.experiment, (), {})
    order = f"{name}.{part}" + ("" if goal == "minimize" else " desc")
    columns = ("id", "name", "status", f"{name}.{part}", name, "duration", "arguments", "tags")
    keys = ("id", "name", "status", "best", "last", "duration_seconds", "arguments", "tags")
    found = find_rows(workspace, where, order, columns, options.limit, children=True)
    if not found:
        raise _nothing_found(workspace, options)
    rows = [dict(zip(keys, (row[column] for column in columns), strict=True)) for row in found]
    if not options.json:
        note(f"{'smallest' if goal == 'minimize' else 'largest'} {options.metric} first")
    listing: Listing[dict[str, Any]] = Listing(_columns(rows, options.metric), _cells(rows), dict)
    return listing.show(rows, options)


def _find_goal(given: str | None, metric: str) -> str:
    if given is not None and given not in GOALS:
        raise UserErrorException(f"--goal {given!r} is neither minimize nor maximize")
    return given or _guess_goal(metric)


def _guess_goal(metric: str) -> str:
    """
    >>> _guess_goal("val_loss"), _guess_goal("test/Accuracy")
    ('minimize', 'maximize')
    """
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    smaller, larger = bool(words & _SMALLER), bool(words & _LARGER)
    if smaller == larger:
        raise UserErrorException(
            f"is a small or a large {metric[:100]} better?", hint="Add --goal minimize or --goal maximize."
        )
    return "minimize" if smaller else "maximize"


def _columns(rows: Sequence[dict[str, Any]], metric: str) -> list[Column]:
    return [
        Column("RUN"),
        *([Column("NAME", flexible=True)] if _have_names(rows) else []),
        Column("STATUS", style=style_of),
        Column(metric.upper(), right=True, style=lambda text: "bold"),
        Column("LAST", right=True),
        Column("TOOK", right=True),
        Column("ARGUMENTS", flexible=True),
    ]


def _have_names(rows: Sequence[dict[str, Any]]) -> bool:
    return any(row["name"] and row["name"] != row["id"] for row in rows)


def _cells(rows: Sequence[dict[str, Any]]) -> Any:
    has_names = _have_names(rows)

    def cells(row: dict[str, Any]) -> list[str]:
        return [
            row["id"],
            *([row["name"] or ""] if has_names else []),
            row["status"],
            format_value(row["best"]),
            format_value(row["last"]),
            "" if row["duration_seconds"] is None else duration(row["duration_seconds"]),
            format_value(dict(sorted(row["arguments"].items()))),
        ]

    return cells


def _nothing_found(workspace: Workspace, options: Options) -> UserErrorException:
    experiments = [each["name"] for each in workspace.connection.call("experiments.list", view="all")]
    if options.experiment not in experiments:
        return UserErrorException(
            f"there is no experiment '{options.experiment[:300]}' in workspace '{workspace.name}'",
            hint=f"{guess(options.experiment, experiments)}Experiments: {', '.join(experiments[:20]) or 'none yet'}.",
        )
    where = make_filter(None, options.experiment, (), {})
    some = find_rows(workspace, where, "", ("metrics",), 20, children=True)
    known = sorted({name for row in some for name in row["metrics"]})
    return UserErrorException(
        f"no run of experiment '{options.experiment}' has numbers of a metric '{options.metric[:300]}'",
        hint=f"{guess(options.metric, known)}They have: {', '.join(known) or 'none yet'}.",
    )

"""`trainmaster compare`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.output import show_table
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.comparison.comparison import PARTS, Comparison, Row, compare_runs, points_of, read_curves
from trainmaster.sdk.display.describing import reason, run_as_json, style_of, took
from trainmaster.sdk.display.line_chart import line_chart
from trainmaster.sdk.display.metric_values import shorten
from trainmaster.sdk.display.screen import has_colours, note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.sparkline import sparkline
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, duration, moment
from trainmaster.shared.differences import FileDifference
from trainmaster.shared.records import Curve, RunRecord
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    pass

_STYLES = ("cyan", "yellow", "green", "red", "blue")
_MOST_CHARTS = 6
_MOST_LINES = 40
"""Of the code's differences, unless --diff asks for all."""
_WIDEST, _HEIGHT = 100, 7
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def compare_arguments(parser: Parser) -> None:
    parser.add_argument(
        "run", metavar="RUN", nargs="+", help="two or more runs: ids or their beginnings, experiments, 'last' or @N"
    )
    parser.add_argument("--metric", metavar="NAME", action="append", help="draw only this metric (repeatable)")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves into a .svg or .png file")
    parser.add_argument("--diff", action="store_true", help="print only the differences of the code, as 'diff -u' does")


def compare(options: Options) -> int:
    """Show what differs between runs: arguments, settings, packages, machines, results and code, and their curves.

    Every run is compared with the first. What is the same in all of them is not shown. PNG needs matplotlib: pip
    install 'trainmaster[plot]'.

    JSON: {"runs", "arguments", "settings", "environment", "packages", "machine", "metrics", "code", "notices", "plot"}.
    "runs" is a list with the keys of 'runs'. A difference is {"name", "values"}, with a value for each run, null if it
    has none. "code" is a list of {"run", "files"} for each run after the first.

      trainmaster compare @1 @2
      trainmaster compare @1 @2 @3 --metric loss --plot loss.svg
      trainmaster compare @1 @2 --diff | less
    """
    workspace = open_workspace(options.workspace)
    runs = [find_run(workspace, given) for given in options.run]
    found = compare_runs(workspace, runs)
    if options.diff and not options.json:
        return _show_diff(found)
    # Asked for before anything is printed: a wrong name of a metric is an error.
    curves = read_curves(workspace, runs, options.metric or ())
    plot = _draw(options.plot, runs, curves) if options.plot else None
    if options.json:
        say_json(as_json(found, plot))
        return exits.OK
    _show_runs(runs)
    _show_differences(found)
    _show_curves(runs, curves, is_chosen=bool(options.metric))
    if plot:
        say()
        say(str(plot))
    return exits.OK


def as_json(found: Comparison, plot: Path | None) -> dict[str, Any]:
    """The keys of a comparison."""
    rows = {part: [{"name": row.name, "values": list(row.values)} for row in getattr(found, part)] for part in PARTS}
    code = [
        {"run": run.id, "files": [to_plain(file) for file in files]}
        for run, files in zip(found.runs[1:], found.code, strict=True)
    ]
    return {
        "runs": [run_as_json(run) for run in found.runs],
        **rows,
        "code": code,
        "notices": list(found.notices),
        "plot": str(plot.resolve()) if plot else None,
    }


def _draw(given: str, runs: Sequence[RunRecord], curves: Mapping[str, Sequence[Curve]]) -> Path:
    from trainmaster.sdk.comparison.picture import draw_curves

    path = Path(given).expanduser()
    names = {run.id: _name(run) for run in runs}
    draw_curves(", ".join(dict.fromkeys(run.experiment for run in runs)), names, curves).save(str(path))
    return path


def _name(run: RunRecord) -> str:
    return f"{run.display_name} ({run.id})" if run.display_name and run.display_name != run.id else run.id


def _show_runs(runs: Sequence[RunRecord]) -> None:
    now = time.time()
    columns = (
        Column("", style=_style_of_letter),
        Column("RUN"),
        Column("STATUS", style=style_of),
        Column("TOOK", right=True),
        Column("CREATED", right=True),
        Column("NAME", flexible=True),
        Column("NOTE", flexible=True, style=lambda text: "dim"),
    )
    rows = []
    for letter, run in zip(_LETTERS, runs, strict=False):
        seconds = took(run, now)
        name = run.display_name if run.display_name != run.id else ""
        spent = "" if seconds is None else duration(seconds)
        rows.append((letter, run.id, str(run.status), spent, moment(run.created_at, now), name, reason(run)))
    used = [n for n, column in enumerate(columns) if not column.flexible or any(row[n] for row in rows)]
    show_table([columns[n] for n in used], [[row[n] for n in used] for row in rows])


def _style_of_letter(text: str) -> str:
    return f"bold {_STYLES[_LETTERS.index(text) % len(_STYLES)]}" if len(text) == 1 else ""


def _show_differences(found: Comparison) -> None:
    same = []
    for part in PARTS:
        # The code has a part of its own.
        rows = [row for row in getattr(found, part) if row.name != "snapshot_id"]
        if rows:
            say()
            _show_part(part, rows)
        elif part != "packages" or not any("packages" in text for text in found.notices):
            same.append(part)
    _show_code(found.code)
    if not any(found.code):
        same.append("code")
    for text in found.notices:
        note(f"note: {text}", "yellow")
    if same:
        say()
        say(paint(f"No difference: {', '.join(same)}", "dim"))


def _show_part(part: str, rows: Sequence[Row]) -> None:
    count = len(rows[0].values)
    columns = [
        Column(part.upper(), flexible=True),
        *(Column(letter, right=part == "metrics", flexible=True) for letter in _LETTERS[:count]),
    ]
    show_table(columns, [(row.name, *(_show_value(value) for value in row.values)) for row in rows])


def _show_value(value: str | None) -> str:
    if value is None:
        return "-"
    try:
        return f"{float(value):.6g}" if "." in value else value
    except ValueError:
        return shorten(value)


def _show_code(code: Sequence[Sequence[FileDifference]]) -> None:
    """What differs from the code of the first run; runs with the same code share a part."""
    letters: dict[Sequence[FileDifference], list[str]] = {}
    for letter, files in zip(_LETTERS[1:], code, strict=False):
        letters.setdefault(files, []).append(letter)
    for files, those in letters.items():
        if not files:
            continue
        say()
        say(f"{paint('CODE', 'bold')}  A to {', '.join(those)}: {count_of(len(files), 'file')}")
        lines = [line for file in files for line in _describe_file(file)]
        for line in lines[:_MOST_LINES]:
            say(f"  {paint(line, _style_of_line(line))}")
        if len(lines) > _MOST_LINES:
            note(f"  and {len(lines) - _MOST_LINES} more lines; --diff shows all")


def _describe_file(file: FileDifference) -> list[str]:
    head = f"{file.kind} {file.path}  +{file.added} -{file.removed}"
    # The names of the file are in the line above.
    return [head, *file.diff.splitlines()[2:], *([f"({file.notice})"] if file.notice else [])]


def _style_of_line(line: str) -> str:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return styles.get(line[:1], "bold" if line.startswith(("added ", "removed ", "changed ")) else "")


def _show_diff(found: Comparison) -> int:
    for files in found.code:
        for file in files:
            for line in file.diff.splitlines():
                say(paint(line, _style_of_line(line)))
            if file.notice:
                note(f"{file.path}: {file.notice}", "yellow")
    for text in found.notices:
        note(f"note: {text}", "yellow")
    return exits.OK


def _show_curves(runs: Sequence[RunRecord], curves: Mapping[str, Sequence[Curve]], is_chosen: bool) -> None:
    letters = {run.id: letter for run, letter in zip(runs, _LETTERS, strict=False)}
    shown = list(curves) if is_chosen else list(curves)[:_MOST_CHARTS]
    for name in shown:
        say()
        say(paint(name, "bold"))
        _show_chart([(letters[curve.run_id], curve) for curve in curves[name]])
    if len(curves) > len(shown):
        note(f"and {len(curves) - len(shown)} more metrics; --metric NAME shows one, --plot FILE draws all")


def _show_chart(curves: Sequence[tuple[str, Curve]]) -> None:
    """A chart where colours tell the lines apart; otherwise a line of blocks for each run, with the same scale."""
    styles = [_style_of_letter(letter).removeprefix("bold ") for letter, _ in curves]
    if has_colours(sys.stdout):
        width = min(_WIDEST, width_of_terminal() or _WIDEST)
        for line in line_chart([points_of(curve) for _, curve in curves], styles, width, _HEIGHT, paint):
            say(line)
        ends = [f"{paint(letter, style)} {_last(curve)}" for (letter, curve), style in zip(curves, styles, strict=True)]
        say("  ".join(ends))
        return
    values = [value for _, curve in curves for value in curve.values if value is not None]
    for letter, curve in curves:
        say(f"{letter}  {sparkline(curve.values, 40, (min(values), max(values)))}  {_last(curve)}")


def _last(curve: Curve) -> str:
    last = curve.values[-1] if curve.values else None
    return "-" if last is None else f"{last:.6g}"

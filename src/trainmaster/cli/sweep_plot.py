"""`trainmaster sweep plot`."""

from __future__ import annotations

from pathlib import Path

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.sweep_following import look_at
from trainmaster.cli.sweeps import add_sweep, find_sweep
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.sweeps.pictures import KINDS, picture


def plot_arguments(parser: Parser) -> None:
    add_sweep(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a .svg or .png file (default: SWEEP.svg in this folder)"
    )
    parser.add_argument("--kind", metavar="KIND", default=KINDS[0], help=f"{' or '.join(KINDS)} (default: {KINDS[0]})")


def plot(options: Options) -> int:
    """Draw a sweep, finished or not.

    'parallel' draws a line for each trial, through its parameters to the metric. 'scatter' draws each parameter against
    the metric. The best trial is highlighted; canceled and failed trials are faint. PNG needs matplotlib: pip install
    'trainmaster[plot]'.

    JSON: {"sweep", "kind", "file", "trials"}.

      trainmaster sweep plot last
      trainmaster sweep plot last --kind scatter -o scatter.png
    """
    if options.kind not in KINDS:
        raise UserErrorException(f"--kind {options.kind!r} does not exist", hint=f"Known: {', '.join(KINDS)}.")
    workspace = open_workspace(options.workspace)
    record = find_sweep(workspace, options.run)
    view = look_at(workspace, record.id)
    path = Path(options.output or f"{record.id}.svg").expanduser()
    picture(view, options.kind).save(str(path))
    if options.json:
        say_json({"sweep": record.id, "kind": options.kind, "file": str(path.resolve()), "trials": len(view.trials)})
        return exits.OK
    say(str(path))
    if view.best is None:
        note("No trial has reported the metric yet.", "yellow")
    return exits.OK

"""`trainmaster top`: what is going on in the workspace, live."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.top_snapshot import snapshot_as_json, take_snapshot
from trainmaster.cli.top_terminal import Ended, Terminal, is_usable
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display.screen import paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.top_frame import Snapshot, render_frame

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_WIDTH_ELSEWHERE = 160
_SCROLLS = {"up": -1, "down": 1, "page up": -10, "page down": 10}


def top_arguments(parser: Parser) -> None:
    parser.add_argument("--once", action="store_true", help="print the present state once, and end")
    parser.add_argument(
        "--every", metavar="SECONDS", type=float, default=2.0, help="how often to look again (default: 2)"
    )


def top(options: Options) -> int:
    """Watch the targets, the runs that have not ended, their ranks, and what they use. 'q' quits.

    Runs show their last measurement, whose age is in the note if it is older than ten seconds: long runs are measured
    once a minute. Arrow keys scroll. If standard output is not a terminal, the state is printed once.

    JSON: {"workspace", "at", "machine", "targets", "runs"}; each run has its "use", and "ranks" and "nodes" with what
    was measured of each.

      trainmaster top
      trainmaster top --once
    """
    if not options.every > 0:
        raise UserErrorException(f"--every must be more than 0 seconds, not {options.every:g}")
    workspace = open_workspace(options.workspace)
    if options.json:
        say_json(snapshot_as_json(take_snapshot(workspace)))
    elif options.once or not is_usable():
        width = width_of_terminal() or _WIDTH_ELSEWHERE
        for line in render_frame(take_snapshot(workspace), width, None, paint):
            say(line)
    else:
        _watch(workspace, options.every)
    return exits.OK


def _watch(workspace: Workspace, seconds: float) -> None:
    snapshot = take_snapshot(workspace)
    terminal = Terminal(sys.stdout, sys.stdin)
    try:
        with terminal.open():
            _redraw_until_quit(workspace, snapshot, terminal, seconds)
    except (KeyboardInterrupt, Ended):
        return


def _redraw_until_quit(workspace: Workspace, snapshot: Snapshot, terminal: Terminal, seconds: float) -> None:
    scroll, note = 0, "q quits"
    while True:
        width, height = terminal.size()
        terminal.draw(render_frame(snapshot, width, height, paint, scroll, note))
        key = terminal.wait(seconds)
        if key in ("q", "Q", "\x03"):
            return
        if key in _SCROLLS:
            most = max(0, len(render_frame(snapshot, width, None, paint)) - height)
            scroll = max(0, min(most, scroll + _SCROLLS[key]))
        if key is None:
            try:
                snapshot, note = take_snapshot(workspace), "q quits"
            except TrainmasterError as error:
                # The last state stays on the screen, and the next look may succeed.
                note = f"no answer: {error.headline}"

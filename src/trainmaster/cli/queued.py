"""What a command says of the run that it has just queued: its id, or its output until it ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options
from trainmaster.sdk.display.screen import note, say, say_json

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.shared.records import RunRecord


def report_queued(workspace: Workspace, record: RunRecord, options: Options) -> int:
    """Prints the id of the run or, with --wait, its output. Returns the exit code."""
    for text in record.warnings:
        note(f"note: {text}", "yellow")
    return _wait(workspace, record, options) if options.wait else _print_id(record, options)


def _print_id(record: RunRecord, options: Options) -> int:
    if options.json:
        _say_run(record)
        return exits.OK
    say(record.id)
    if sys.stderr.isatty():
        note(f"The run is queued. 'trainmaster logs -f {record.id}' follows it.")
    return exits.OK


def _wait(workspace: Workspace, record: RunRecord, options: Options) -> int:
    note(f"run {record.id}")
    from trainmaster.cli.following import follow

    ended = follow(workspace, record.id, sys.stderr if options.json else sys.stdout, shown_warnings=record.warnings)
    if ended is None:
        return exits.INTERRUPTED
    if options.json:
        _say_run(ended)
    return exits.code_of_status(ended.status)


def _say_run(record: RunRecord) -> None:
    from trainmaster.sdk.display.describing import run_as_json

    say_json(run_as_json(record))

"""`trainmaster runs delete` and `runs prune`."""

from __future__ import annotations

import time
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run_to_change, open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.runs import statuses
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.text import count_of, seconds_of, size
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.records import TERMINAL


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="+", help="a run's id or its beginning, 'last' or @N")
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")


def delete(options: Options) -> int:
    """Delete runs that have ended, with their child runs, files, logs and metrics, and with snapshots that no other
    run uses. Models that were registered from them stay.

    JSON: {"removed": [ids], "children", "bytes", "left", "dry_run"}; "left" says what could not be deleted.

      trainmaster runs delete @3 --dry-run
    """
    workspace = open_workspace(options.workspace)
    chosen = [find_run_to_change(workspace, given).id for given in options.run]
    return _remove(workspace, chosen, options, {})


def prune_arguments(parser: Parser) -> None:
    parser.add_argument("--older-than", metavar="TIME", help="runs that ended longer ago than TIME: 30d, 12h, 2w")
    parser.add_argument("--keep", metavar="N", type=int, help="keep the newest N runs of each experiment")
    parser.add_argument("-e", "--experiment", metavar="NAME", help="only runs of this experiment")
    parser.add_argument("--status", action="append", metavar="STATE", help="only runs in this state (repeatable)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")


def prune(options: Options) -> int:
    """Delete old runs as 'runs delete' does. Runs that have not ended, runs from which a model was registered, and runs
    that an unfinished sweep resumes from are kept.

    JSON: the keys of 'runs delete', and "kept": {"models": [ids], "used": [ids]}.

      trainmaster runs prune --older-than 30d --keep 10 --dry-run
    """
    if options.older_than is None and options.keep is None:
        raise UserErrorException(
            "'runs prune' needs --older-than, --keep or both", hint="For example --older-than 30d, or --keep 100."
        )
    if options.keep is not None and options.keep < 0:
        raise UserErrorException(f"--keep must not be negative, not {options.keep}")
    age = None if options.older_than is None else seconds_of("--older-than", options.older_than)
    wanted = statuses(options.status)
    if set(wanted) - set(TERMINAL):
        raise UserErrorException(
            "only runs that have ended can be deleted", hint=f"States: {', '.join(sorted(TERMINAL))}."
        )
    workspace = open_workspace(options.workspace)
    found = workspace.connection.call(
        "runs.old",
        ended_before=None if age is None else time.time() - age,
        keep=options.keep or 0,
        experiment=options.experiment,
        statuses=wanted,
    )
    kept = {"models": found["models"], "used": found["used"]}
    return _remove(workspace, found["old"], options, kept)


def _remove(workspace: Workspace, run_ids: list[str], options: Options, kept: dict[str, list[str]]) -> int:
    done = workspace.connection.call("runs.delete", run_ids=run_ids, dry_run=options.dry_run)
    if options.json:
        say_json(
            {
                "removed": done["run_ids"],
                "children": done["children"],
                "bytes": done["bytes"],
                "left": done["left"],
                "dry_run": options.dry_run,
                **({"kept": kept} if kept else {}),
            }
        )
    else:
        for run_id in done["run_ids"]:
            say(run_id)
        _summarize(done, options.dry_run, kept)
    return exits.OK if set(run_ids) <= set(done["run_ids"]) else exits.UNUSABLE


def _summarize(done: dict[str, Any], dry_run: bool, kept: dict[str, list[str]]) -> None:
    if kept.get("models"):
        note(f"Kept, because models were registered from them: {count_of(len(kept['models']), 'run')}.")
    if kept.get("used"):
        note(f"Kept, because a sweep resumes from them: {count_of(len(kept['used']), 'run')}.")
    for line in done["left"][:5]:
        note(f"could not be deleted: {line}", "yellow")
    if not done["run_ids"]:
        if not done["left"]:
            note("Nothing to delete.")
        return
    children = f" with {count_of(done['children'], 'child run')}" if done["children"] else ""
    deleted = f"{count_of(len(done['run_ids']), 'run')}{children}"
    if dry_run:
        note(f"Would delete {deleted} and free at least {size(done['bytes'])}.")
    else:
        note(f"Deleted {deleted}, which freed {size(done['bytes'])}.")

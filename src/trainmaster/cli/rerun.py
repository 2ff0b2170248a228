"""`trainmaster rerun` and `resume`."""

from __future__ import annotations

import sys

from trainmaster.cli.opening import find_run_to_change, open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.queued import report_queued
from trainmaster.sdk.display.text import pairs, tags
from trainmaster.sdk.run.repeating import Repetition, find_source, refresh_environment, send_again
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.records import RunRecord

_CHANGED = "an argument of the script or a setting, such as lr=0.1, target=NAME, nodes=2, env.NAME=VALUE (repeatable)"


def _add_changes(parser: Parser, command: str) -> None:
    parser.usage = f"trainmaster {command} RUN [OPTIONS] [-- ARGUMENTS OF THE SCRIPT ...]"
    parser.add_argument("run", metavar="RUN", help="a run's id or its beginning, 'last' or @N")
    parser.set_defaults(arguments=[])
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", help=_CHANGED)
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a tag to add (repeatable)")
    parser.add_argument(
        "-w", "--wait", action="store_true", help="show the output, and exit with 0, 1 or 3 when the run ends"
    )


def rerun_arguments(parser: Parser) -> None:
    _add_changes(parser, "rerun")
    parser.add_argument("--fresh-code", action="store_true", help="take the source folder as it is now")
    parser.add_argument("--source", metavar="FOLDER", help="take this folder as the code")
    parser.add_argument("--fresh-env", action="store_true", help="resolve the packages anew")


def rerun(options: Options) -> int:
    """Run again what an earlier run did, as a new run: the same code, and exactly the same packages.

    Arguments after two dashes replace all arguments of the script; --set changes single ones, and settings: target,
    nodes, name, tag.NAME, env.NAME (a variable), max_seconds, max_retries, hang_seconds. arg.NAME is an argument of
    such a name. 'show' and the studio say which run a run was made from.

    JSON: the new run, as in 'runs'.

      trainmaster rerun last
      trainmaster rerun last --set lr=0.01 --wait
      trainmaster rerun @2 --fresh-code -- --lr 0.01 --epochs 5
    """
    workspace = open_workspace(options.workspace)
    origin = find_run_to_change(workspace, options.run)
    fresh_code = options.fresh_code or options.source
    source = find_source(origin, options.source) if fresh_code else ""
    if options.fresh_env:
        refresh_environment(workspace, origin, _show_log)
    return _send(workspace, origin, options, source=source, fresh_environment=options.fresh_env)


def resume_arguments(parser: Parser) -> None:
    _add_changes(parser, "resume")


def resume(options: Options) -> int:
    """Continue a run that has ended: a new run in a copy of its working folder, with its outputs and checkpoints.

    The script finds all files as it left them, and the id of the earlier run in TRAINMASTER_RESUMED_FROM. It works for
    runs that failed, were canceled or completed, on targets that see the workspace's folder.

    JSON: the new run, as in 'runs'.

      trainmaster resume last
      trainmaster resume last --set epochs=50 --wait
    """
    workspace = open_workspace(options.workspace)
    return _send(workspace, find_run_to_change(workspace, options.run), options, resume=True)


def _send(
    workspace: Workspace,
    origin: RunRecord,
    options: Options,
    source: str = "",
    fresh_environment: bool = False,
    resume: bool = False,
) -> int:
    wanted = Repetition(
        arguments=options.arguments or None,
        settings=pairs("--set", options.set),
        tags=tags(options.tag) or None,
        source_directory=source,
        fresh_environment=fresh_environment,
        resume=resume,
    )
    return report_queued(workspace, send_again(workspace, origin, wanted), options)


def _show_log(part: str) -> None:
    sys.stderr.write(part)
    sys.stderr.flush()

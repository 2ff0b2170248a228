"""`trainmaster archive` and `restore`."""

from __future__ import annotations

from trainmaster.cli.opening import find_run_to_change, open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.display.text import count_of


def archive_arguments(parser: Parser) -> None:
    _add_runs(parser)


def archive(options: Options) -> int:
    """Leave ended runs and their child runs out of lists. Nothing is deleted, and 'restore' brings them back.

    JSON: {"archived": [ids]}, with the ids of child runs.

      trainmaster archive @3 @4
      trainmaster runs --archived
    """
    return _change(options, "runs.archive", "archived")


def restore_arguments(parser: Parser) -> None:
    _add_runs(parser)


def restore(options: Options) -> int:
    """Show archived runs and their child runs in lists again.

    JSON: {"restored": [ids]}, with the ids of child runs.

      trainmaster restore mnist_1700000000_1a2b3c4d
    """
    return _change(options, "runs.restore", "restored")


def _change(options: Options, operation: str, done: str) -> int:
    workspace = open_workspace(options.workspace)
    chosen = list(dict.fromkeys(find_run_to_change(workspace, given).id for given in options.run))
    changed: list[str] = workspace.connection.call(operation, run_ids=chosen)
    lines = [f"{run_id} is {done if run_id in changed else f'already {done}'}" for run_id in chosen]
    children = len(set(changed) - set(chosen))
    if children:
        lines.append(f"with {count_of(children, 'child run')}")
    return show_result(options, {done: changed}, "\n".join(lines))


def _add_runs(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="+", help="a run's id or its beginning, 'last' or @N")

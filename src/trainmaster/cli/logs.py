"""`trainmaster logs`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.describing import reason
from trainmaster.cli.opening import find_run, open_workspace, run_folder
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.cli.screen import note, say_json
from trainmaster.errors import UserErrorException
from trainmaster.waiting import LogReader

if TYPE_CHECKING:
    from trainmaster.folders import RunFolder
    from trainmaster.records import RunRecord
    from trainmaster.workspace import Workspace

_DRIVER_LOG = re.compile(r"70_driver_log(?:_(\d+))?\.txt")


def logs_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="until the run ends; Ctrl-C ends the looking")
    parser.add_argument("--rank", metavar="N", type=int, default=0, help="of this process (default: 0)")


def logs(options: Options) -> int:
    """What the script of a run printed; for one that has no script's output yet, what prepared it.

    JSON: {"run", "status", "rank", "text"}, with -f at the end of the run. With -f the exit code is that of the run.
    """
    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    folder = run_folder(workspace, record)
    _check_rank(folder, options.rank)
    code = exits.OK
    if options.follow:
        ended = _follow(workspace, record, options)
        if ended is None:
            return exits.INTERRUPTED
        record, code = ended, exits.code_of_status(ended.status)
        _check_rank(folder, options.rank)
    if options.json:
        data = {"run": record.id, "status": str(record.status), "rank": options.rank}
        say_json({**data, "text": _text(folder, options.rank)})
    elif not options.follow:
        _print(folder, record, options.rank)
    return code


def _follow(workspace: Workspace, record: RunRecord, options: Options) -> RunRecord | None:
    from trainmaster.cli.following import follow

    return follow(workspace, record.id, sys.stderr if options.json else sys.stdout, options.rank)


def _check_rank(folder: RunFolder, rank: int) -> None:
    known = ranks(folder)
    if rank < 0 or (known and rank not in known):
        shown = ", ".join(map(str, known[:20])) + (" ..." if len(known) > 20 else "")
        raise UserErrorException(
            f"run {folder.path.name} has no process of rank {rank}", hint=f"It has: {shown or 'none yet'}."
        )


def ranks(folder: RunFolder) -> list[int]:
    """The ranks that have a log."""
    try:
        found = [_DRIVER_LOG.fullmatch(path.name) for path in folder.logs.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(int(match[1] or 0) for match in found if match)


def _text(folder: RunFolder, rank: int) -> str:
    parts: list[str] = []
    LogReader(folder, rank, headings=False).show(parts.append)
    return "".join(parts)


def _write(text: str) -> None:
    sys.stdout.write(text)


def _print(folder: RunFolder, record: RunRecord, rank: int) -> None:
    if ranks(folder):
        LogReader(folder, rank, headings=False).show(_write)
        return
    LogReader(folder, rank).show(_write)
    why = reason(record)
    note(f"The script has not printed anything: the run is {record.status}{f' ({why})' if why else ''}.")

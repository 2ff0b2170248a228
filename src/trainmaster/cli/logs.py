"""`trainmaster logs`."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.describing import SWEEP, reason
from trainmaster.sdk.display.screen import note, say_json
from trainmaster.sdk.run.logs import LogReader, driver_logs

if TYPE_CHECKING:
    from trainmaster.cli.following import Reader
    from trainmaster.sdk.backend.backend import RunFiles
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.shared.records import RunRecord

ALL = "all"


def logs_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="show new lines until the run ends; Ctrl-C stops watching, the run continues",
    )
    parser.add_argument("--rank", metavar="N", default="0", help="the output of process N, or of 'all' (default: 0)")


def logs(options: Options) -> int:
    """Show what the script of a run printed, or the log of its preparation if the script has not started.

    With --rank all, each line begins with the name of its rank: [rank 1]. With -f, the exit code is that of the run.

    JSON: {"run", "status", "rank", "text"}, or {"run", "status", "rank": "all", "ranks": [{"rank", "name", "text"}]};
    with -f it is printed at the end of the run.

      trainmaster logs -f last
      trainmaster logs mnist --rank all
    """
    wanted = rank_of(options.rank)
    workspace = open_workspace(options.workspace)
    record = find_run(workspace, options.run)
    files = workspace.backend.run_files(record.id)
    _check_rank(files, wanted)
    code = exits.OK
    if options.follow:
        ended = _follow(workspace, record, wanted, sys.stderr if options.json else sys.stdout)
        if ended is None:
            return exits.INTERRUPTED
        record, code = ended, exits.code_of_status(ended.status)
        _check_rank(files, wanted)
    if options.json:
        say_json({"run": record.id, "status": str(record.status), "rank": wanted, **_texts(files, record, wanted)})
    elif not options.follow:
        _print(files, record, wanted)
    return code


def rank_of(word: str) -> int | str:
    """A rank, or `all`.

    >>> rank_of("3"), rank_of("all")
    (3, 'all')
    """
    if word == ALL:
        return ALL
    if not word.isdecimal():
        raise UserErrorException(f"--rank must be a number or 'all', not {word!r}")
    return int(word)


def _follow(workspace: Workspace, record: RunRecord, rank: int | str, output: IO[str]) -> RunRecord | None:
    from trainmaster.cli.following import follow

    return follow(workspace, record.id, output, _reader(workspace.backend.run_files(record.id), record, rank, output))


def _reader(files: RunFiles, record: RunRecord, rank: int | str, output: IO[str]) -> Reader:
    if isinstance(rank, int):
        return LogReader(files, rank, headings=False)
    from trainmaster.cli.interleaved import Interleaved

    return Interleaved(files, _names(record), output)


def _names(record: RunRecord) -> tuple[str, ...]:
    from trainmaster.launch.counts import rank_names
    from trainmaster.shared.job_spec import load_spec

    # A run without a job has no ranks and no logs of ranks.
    return rank_names(load_spec(record.spec)) if record.spec else ()


def _check_rank(files: RunFiles, rank: int | str) -> None:
    known = list(driver_logs(files.logs()))
    if rank != ALL and known and rank not in known:
        shown = ", ".join(map(str, known[:20])) + (" ..." if len(known) > 20 else "")
        raise UserErrorException(
            f"run {files.run_id} has no process of rank {rank}", hint=f"It has: {shown or 'none yet'}."
        )


def _texts(files: RunFiles, record: RunRecord, rank: int | str) -> dict[str, Any]:
    if isinstance(rank, int):
        return {"text": _text(files, rank)}
    names = dict(enumerate(_names(record)))
    ranks = driver_logs(files.logs())
    return {"ranks": [{"rank": n, "name": names.get(n, f"rank {n}"), "text": _text(files, n)} for n in ranks]}


def _text(files: RunFiles, rank: int) -> str:
    parts: list[str] = []
    LogReader(files, rank, headings=False).show(parts.append)
    return "".join(parts)


def _write(text: str) -> None:
    sys.stdout.write(text)


def _print(files: RunFiles, record: RunRecord, rank: int | str) -> None:
    if driver_logs(files.logs()):
        _reader(files, record, rank, sys.stdout).finish(_write)
        return
    LogReader(files).show(_write)
    if record.type == SWEEP:
        note(f"'trainmaster sweep show {record.id}' shows the trials.")
        return
    why = reason(record)
    note(f"The script has not printed anything yet: the run is {record.status}{f' ({why})' if why else ''}.")

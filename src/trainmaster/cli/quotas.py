"""`trainmaster quota list`, `set` and `delete`."""

from __future__ import annotations

from typing import Any

from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import size
from trainmaster.shared.byte_sizes import parse_size
from trainmaster.shared.records import EACH_USER, WHOLE_WORKSPACE, QuotaReport
from trainmaster.shared.serialization import from_plain

_NO_LIMIT = "none"


def list_quotas(options: Options) -> int:
    """List the quotas of the workspace, and what is used of them.

    JSON: a list of {"owner", "runs", "nodes", "gpus", "disk_bytes"}, each a list of what is used and the limit or null.

      trainmaster quota list
    """
    return _show(open_workspace(options.workspace).connection.call("quotas.list"), options)


def put_arguments(parser: Parser) -> None:
    parser.add_argument(
        "user",
        metavar="USER",
        nargs="?",
        default="",
        help="a user, or '*' for each other user (default: the workspace)",
    )
    parser.add_argument("--runs", metavar="N", type=_count, help="active runs at a time, or 'none'")
    parser.add_argument("--nodes", metavar="N", type=_count, help="nodes that these runs hold")
    parser.add_argument("--gpus", metavar="N", type=_count, help="GPUs of these nodes")
    parser.add_argument("--disk", metavar="SIZE", type=_bytes, help="disk for the files of ended runs, such as 500GB")


def put(options: Options) -> int:
    """Limit what a user, each user, or the whole workspace may use at once. Runs wait while a limit is reached.

    JSON: the list of all quotas, as in 'quota list'.

      trainmaster quota set ada --runs 10 --gpus 4
      trainmaster quota set --disk 500GB
    """
    given = {"runs": options.runs, "nodes": options.nodes, "gpus": options.gpus, "disk_bytes": options.disk}
    limits = {name: None if limit < 0 else limit for name, limit in given.items() if limit is not None}
    if not limits:
        raise UserErrorException("no limit is given", hint="Use --runs, --nodes, --gpus or --disk.")
    workspace = open_workspace(options.workspace)
    return _show(workspace.connection.call("quotas.set", owner=options.user, **limits), options)


def delete_arguments(parser: Parser) -> None:
    parser.add_argument(
        "user",
        metavar="USER",
        nargs="?",
        default="",
        help="a user, or '*' for each other user (default: the workspace)",
    )


def delete(options: Options) -> int:
    """Remove all limits of a user, of each user, or of the workspace.

    JSON: the list of all quotas, as in 'quota list'.

      trainmaster quota delete ada
    """
    nothing = {"runs": None, "nodes": None, "gpus": None, "disk_bytes": None}
    workspace = open_workspace(options.workspace)
    return _show(workspace.connection.call("quotas.set", owner=options.user, **nothing), options)


def _show(answer: list[Any], options: Options) -> int:
    listing: Listing[QuotaReport] = Listing(
        columns=(
            Column("WHO"),
            Column("RUNS", right=True),
            Column("NODES", right=True),
            Column("GPUS", right=True),
            Column("DISK", right=True),
        ),
        row=_make_row,
        json=_as_json,
        empty="There are no quotas. 'trainmaster quota set USER --runs 4' limits a user.",
    )
    return listing.show([from_plain(QuotaReport, each) for each in answer], options)


def _make_row(report: QuotaReport) -> tuple[str, ...]:
    quota = report.quota
    names = {WHOLE_WORKSPACE: "the workspace", EACH_USER: "each other user"}
    counts = [(report.runs, quota.runs), (report.nodes, quota.nodes), (report.gpus, quota.gpus)]
    cells = ["" if limit is None else f"{limit}" if quota.owner == EACH_USER else f"{n}/{limit}" for n, limit in counts]
    disk = quota.disk_bytes
    shown = "" if disk is None else size(disk)
    if disk is not None and quota.owner != EACH_USER:
        shown = f"{size(report.disk_bytes)}/{shown}"
    return (names.get(quota.owner, quota.owner), *cells, shown)


def _as_json(report: QuotaReport) -> dict[str, Any]:
    quota = report.quota
    return {
        "owner": quota.owner,
        "runs": [report.runs, quota.runs],
        "nodes": [report.nodes, quota.nodes],
        "gpus": [report.gpus, quota.gpus],
        "disk_bytes": [report.disk_bytes, quota.disk_bytes],
    }


def _count(text: str) -> int:
    """A number of something; -1 for no limit."""
    return -1 if text.lower() == _NO_LIMIT else _check_count(int(text))


def _check_count(count: int) -> int:
    if count < 0:
        raise ValueError
    return count


def _bytes(text: str) -> int:
    """A size in bytes; -1 for no limit.

    >>> _bytes("1.5GB"), _bytes("none")
    (1610612736, -1)
    """
    if text.lower() == _NO_LIMIT:
        return -1
    found = parse_size(text)
    if found is None:
        raise ValueError
    return found

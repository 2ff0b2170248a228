"""`trainmaster workspace move`."""

from __future__ import annotations

from trainmaster.cli.opening import locate
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.workspaces import read_database_url
from trainmaster.sdk.backend.local.database import move_database
from trainmaster.sdk.display.screen import note
from trainmaster.shared.identity import read_identity


def move_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--to",
        metavar="URL",
        required=True,
        help="postgresql://USER@HOST/DATABASE, sqlite for a file in the workspace's folder, or - to read the URL from "
        "standard input, so that a password in it is not visible in the list of processes",
    )


def move(options: Options) -> int:
    """Move the database of the workspace to a PostgreSQL server, or back to a file in its folder.

    Refused while runs are active. The copy is compared with the original before the workspace uses it. If the command
    is interrupted, the workspace stays as it was; the command can be repeated. The old database is kept under another
    name.

    JSON: {"workspace", "database", "kept"}; "kept" is where the old database is.

      trainmaster workspace move --to postgresql://ada@db.example.org/lab
    """
    folder = locate(options.workspace)
    name = read_identity(folder)["name"]
    to = "sqlite" if options.to == "sqlite" else read_database_url(options.to)

    def tell(table: str, done: int, total: int) -> None:
        if not options.json and total:
            note(f"{table}: {done:,} of {total:,} rows")

    kept = move_database(folder, to, tell)
    kind = "sqlite" if to == "sqlite" else "postgresql"
    place = "a file in its folder" if kind == "sqlite" else "PostgreSQL"
    facts = {"workspace": name, "database": kind, "kept": kept}
    return show_result(options, facts, f"Workspace '{name}' is on {place}. The old database is kept: {kept}")

"""`trainmaster workspace`, `workspace list` and `workspace create`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.opening import read_server_variable
from trainmaster.sdk.display.screen import note, paint, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.workspace.files import find_named_folder, find_place
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.database_address import check_url
from trainmaster.shared.folders import WorkspaceFolder, home
from trainmaster.shared.identity import read_identity


def show(options: Options) -> int:
    """Show the workspace that commands use in this folder.

    JSON: {"name", "path", "exists"}.

      trainmaster workspace
    """
    place = find_place(options.workspace)
    if isinstance(place, WorkspaceFolder):
        facts = workspace_as_json(place)
    else:
        facts = remote_as_json(open_workspace(options.workspace))
    if options.json:
        say_json(facts)
        return exits.OK
    say(f"{paint(facts['name'], 'bold')}  {facts['path']}")
    if not facts["exists"]:
        note("It does not exist yet. The first command that needs it creates it.")
    return exits.OK


def workspace_as_json(folder: WorkspaceFolder) -> dict[str, Any]:
    """The keys of a workspace."""
    exists = folder.identity.exists()
    name = read_identity(folder)["name"] if exists else folder.path.name
    return {"name": name, "path": str(folder.path), "exists": exists}


def remote_as_json(workspace: Workspace) -> dict[str, Any]:
    """The keys of a workspace on a server; `path` is its address."""
    return {"name": workspace.name, "path": workspace.backend.location, "exists": True}


def list_workspaces(options: Options) -> int:
    """List your workspaces: those of TRAINMASTER_SERVER, or of this machine.

    A workspace that was created with --path is not listed.

    JSON: a list of workspaces, with the keys of 'workspace'.

      trainmaster workspace list
    """
    listing: Listing[dict[str, Any]] = Listing(
        columns=(Column("WORKSPACE", style=lambda text: "bold"), Column("PLACE")),
        row=lambda each: (each["name"], each["path"]),
        json=lambda each: each,
        empty=f"There are no workspaces in {read_server_variable() or home()} yet.",
    )
    if read_server_variable():
        found = [each[0] for each in Workspace.list().values()]
        return listing.show([remote_as_json(workspace) for workspace in found], options)
    folders = [WorkspaceFolder(file.parent) for file in sorted(home().glob("workspaces/*/workspace.json"))]
    return listing.show([workspace_as_json(folder) for folder in folders], options)


def create_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the workspace's name")
    parser.add_argument("--path", metavar="DIR", help="its folder (default: one with its name in TRAINMASTER_HOME)")
    parser.add_argument(
        "--database",
        metavar="URL",
        help="keep its database on a PostgreSQL server: postgresql://USER@HOST/DATABASE, or - to read the URL from "
        "standard input, so that a password in it is not visible in the list of processes",
    )
    parser.add_argument("--use", action="store_true", help="record it in .azureml/config.json of this folder")


def create(options: Options) -> int:
    """Create a workspace.

    JSON: the workspace, with the keys of 'workspace'.

      trainmaster workspace create lab --use
      trainmaster workspace create lab --path /mnt/shared/lab
    """
    if options.use:
        _check_config_place(Path.cwd())
    if read_server_variable() and not options.path and not options.database:
        workspace = Workspace.create(options.name, show_output=False)
        facts = remote_as_json(workspace)
    else:
        folder = WorkspaceFolder(Path(options.path).resolve() if options.path else find_named_folder(options.name))
        if folder.identity.exists():
            raise UserErrorException(
                f"{folder.path} already contains a workspace",
                hint=f"Use it with --workspace {json.dumps(str(folder.path))}, or choose another name or --path.",
            )
        database = read_database_url(options.database) if options.database else None
        workspace = Workspace.create(options.name, path=folder.path, show_output=False, database=database)
        facts = workspace_as_json(folder)
    if options.use:
        workspace.write_config()
    return show_result(options, facts, f"Workspace '{workspace.name}' is in {facts['path']}")


def read_database_url(given: str) -> str:
    """The URL of a database as it was given, or from standard input."""
    return check_url(sys.stdin.readline().strip() if given == "-" else given)


def _check_config_place(here: Path) -> None:
    """Refuses --use where its file cannot be written, before anything is created."""
    place = here / ".azureml"
    if not os.access(place if place.exists() else here, os.W_OK) or (place.exists() and not place.is_dir()):
        raise UserErrorException(
            f"--use cannot write {place / 'config.json'}",
            hint="Omit --use and pass --workspace NAME to the commands, or change to another folder.",
        )

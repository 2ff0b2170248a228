"""`trainmaster workspace`, `workspace list` and `workspace create`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import locate
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.workspace.files import find_named_folder, read_identity
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.folders import WorkspaceFolder, home

_COLUMNS = (Column("WORKSPACE", style=lambda text: "bold"), Column("FOLDER"))


def show_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def show(options: Options) -> int:
    """The workspace that commands use here. JSON: {"name", "path", "exists"}."""
    folder = locate(options.workspace)
    facts = workspace_as_json(folder)
    if options.json:
        say_json(facts)
        return exits.OK
    say(f"{paint(facts['name'], 'bold')}  {facts['path']}")
    if not facts["exists"]:
        note("It is not there yet; the first command that needs it makes it.")
    return exits.OK


def workspace_as_json(folder: WorkspaceFolder) -> dict[str, Any]:
    """The keys of a workspace."""
    exists = folder.identity.exists()
    name = read_identity(folder)["name"] if exists else folder.path.name
    return {"name": name, "path": str(folder.path), "exists": exists}


def listing_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def listing(options: Options) -> int:
    """The workspaces of this user; one in a folder of its own is known there only. JSON: a list of workspaces."""
    folders = [WorkspaceFolder(file.parent) for file in sorted(home().glob("workspaces/*/workspace.json"))]
    found = [workspace_as_json(folder) for folder in folders]
    if options.json:
        say_json(found)
    elif found:
        rows = [(each["name"], each["path"]) for each in found]
        for line in render(_COLUMNS, rows, width_of_terminal(), paint):
            say(line)
    else:
        note(f"There is none below {home()} yet.")
    return exits.OK


def create_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--path", metavar="DIR", help="its folder (default: by its name, below TRAINMASTER_HOME)")
    parser.add_argument("--use", action="store_true", help="note it in .azureml/config.json, for commands run here")


def create(options: Options) -> int:
    """Make a workspace. JSON: the workspace."""
    folder = WorkspaceFolder(Path(options.path).resolve() if options.path else find_named_folder(options.name))
    if folder.identity.exists():
        raise UserErrorException(
            f"there is a workspace in {folder.path} already",
            hint=f"Use it with --workspace {json.dumps(str(folder.path))}, or choose another name or --path.",
        )
    if options.use:
        _check_config_place(Path.cwd())
    made = Workspace.create(options.name, path=folder.path, show_output=False)
    if options.use:
        made.write_config()
    if options.json:
        say_json(workspace_as_json(folder))
    else:
        say(f"Workspace '{made.name}' is in {made.path}")
    return exits.OK


def _check_config_place(here: Path) -> None:
    """Before anything is made: whether the note of --use has a place."""
    place = here / ".azureml"
    if not os.access(place if place.exists() else here, os.W_OK) or (place.exists() and not place.is_dir()):
        raise UserErrorException(
            f"--use cannot write {place / 'config.json'}",
            hint="Leave --use out and give --workspace NAME to the commands, or go to another folder.",
        )

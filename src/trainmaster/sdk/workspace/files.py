"""How a workspace is created, and the config file of a project by which it is found."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.backend.opening import Place, RemotePlace, read_name_variable, read_server_variable
from trainmaster.shared.database_address import POSTGRESQL, check_url, write_address
from trainmaster.shared.folders import WorkspaceFolder, home
from trainmaster.shared.identity import as_text
from trainmaster.shared.private import make_home

_NAME = re.compile(r"[A-Za-z0-9][\w-]{2,32}", re.ASCII)
_CONFIG_FOLDERS = (".azureml", "aml_config", ".")
_CONFIG_NAMES = ("config.json", "project.json")


def find_place(given: str | None) -> Place:
    """Where that workspace is, in a folder that need not exist or on a server. Nothing is created."""
    server = read_server_variable()
    if given is not None:
        if given.startswith(("https://", "http://")):
            return RemotePlace(given, read_name_variable())
        if _is_path(given):
            return WorkspaceFolder(Path(given).expanduser().resolve())
        return RemotePlace(server, given) if server else WorkspaceFolder(find_named_folder(given))
    config = find_config(Path.cwd())
    facts, path = read_config(config) if config else ({}, None)
    server = server or facts.get("server", "")
    if server:
        return RemotePlace(server, read_name_variable() or facts.get("name", ""))
    return WorkspaceFolder(path.resolve() if path is not None else find_named_folder(facts.get("name", "default")))


def _is_path(given: str) -> bool:
    return os.sep in given or given in (".", "..") or (Path(given) / "workspace.json").is_file()


def find_named_folder(name: str) -> Path:
    """The folder of the workspace with this name."""
    check_workspace_name(name)
    return home() / "workspaces" / name


def check_workspace_name(name: str) -> None:
    """Refuses a name that no workspace can have."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserErrorException(
            f"{str(name)[:60]!r} cannot be the name of a workspace",
            hint="Use 3 to 33 letters, digits, dashes or underscores, beginning with a letter or digit.",
        )


def make_workspace(folder: WorkspaceFolder, facts: dict[str, Any], database: str | None = None) -> bool:
    """Creates the folder and its identity, and returns whether it did.

    An existing workspace stays as it is, even if two programs do it at once. `database` is the URL of a PostgreSQL
    database; without it, the workspace uses a file.
    """
    if folder.identity.exists():
        return False
    import uuid

    if database is not None:
        check_url(database)
        facts = {**facts, "database": POSTGRESQL}

    identity = {"id": str(uuid.uuid4()), "created_at": time.time(), **facts}
    try:
        # Only for its owner: job specifications may contain private data.
        if folder.path.is_relative_to(home()):
            make_home()
        durable.make_folder(folder.path, mode=0o700)
        draft = folder.path / f".workspace-{uuid.uuid4().hex}.json"
        durable.write_new(draft, as_text(identity))
        try:
            os.link(draft, folder.identity)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        durable.flush_one(folder.path)
    except OSError as error:
        raise WorkspaceException(
            f"no workspace can be created in {folder.path}",
            cause=str(error),
            hint="TRAINMASTER_HOME sets another folder for workspaces.",
        ) from None
    if database is not None:
        write_address(folder, database)
    return True


def undo_workspace(folder: WorkspaceFolder) -> None:
    """Removes the identity of a workspace that was just created and cannot be used, so that it can be tried again."""
    folder.identity.unlink(missing_ok=True)
    folder.database_address.unlink(missing_ok=True)


def drop_none(**facts: Any) -> dict[str, Any]:
    """The arguments that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


def find_config(start: Path, file_name: str | None = None) -> Path | None:
    """The nearest config file from `start` upward; `start` itself if it is a file."""
    if start.is_file():
        return start
    names = (file_name,) if file_name else _CONFIG_NAMES
    for folder in (start.resolve(), *start.resolve().parents):
        for place in _CONFIG_FOLDERS:
            for name in names:
                if _is_config(folder / place / name):
                    return folder / place / name
    return None


def _is_config(file: Path) -> bool:
    """Whether it names a workspace: many projects have a config.json of their own."""
    if not file.is_file():
        return False
    if file.parent.name in _CONFIG_FOLDERS:
        return True
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and ("workspace_name" in data or "Scope" in data)


def make_once(folder: WorkspaceFolder, facts: dict[str, Any]) -> None:
    """Creates the workspace if it does not exist yet, and prints a line."""
    if not folder.identity.exists():
        make_workspace(folder, {"location": "local", **facts})
        print(f"Created workspace '{facts['name']}' in {folder.path}")


def read_config(config: Path) -> tuple[dict[str, str], Path | None]:
    """The contents of a config file: name, subscription, resource group, server, and the folder if it names one."""
    try:
        data = json.loads(config.read_text())
    except (OSError, ValueError) as error:
        raise UserErrorException(f"{config} cannot be read", cause=str(error)) from None
    facts = _from_scope(data) if isinstance(data, dict) and "Scope" in data else _from_keys(data)
    if not facts.get("name"):
        raise UserErrorException(f"{config} names no workspace", hint="It needs the key 'workspace_name'.")
    # Trainmaster wrote this file. A workspace that no longer exists is an error, and not silently created again.
    path = config.resolve().parent / str(data["path"]) if data.get("path") else None
    facts["server"] = str(data.get("server") or "")
    return {key: value for key, value in facts.items() if value}, path


def _from_keys(data: Any) -> dict[str, str]:
    if not isinstance(data, dict):
        return {}
    keys = {"name": "workspace_name", "subscription_id": "subscription_id", "resource_group": "resource_group"}
    return {ours: str(data.get(theirs) or "") for ours, theirs in keys.items()}


def _from_scope(data: dict[str, Any]) -> dict[str, str]:
    """The parts of `/subscriptions/S/resourceGroups/G/.../workspaces/N`."""
    parts = str(data["Scope"]).strip("/").split("/")
    named = {key.lower(): value for key, value in zip(parts[::2], parts[1::2], strict=False)}
    return {
        "name": parts[-1],
        "subscription_id": named.get("subscriptions", ""),
        "resource_group": named.get("resourcegroups", ""),
    }

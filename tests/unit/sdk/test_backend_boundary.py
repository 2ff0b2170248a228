"""Nothing above `sdk/backend` knows whether its workspace is a folder of this machine or on a server."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[3] / "src" / "trainmaster"
ABOVE = ("sdk", "cli", "notebook")

# What only a workspace in a folder of this machine has.
LOCAL_MODULES = (
    "trainmaster.sdk.backend.local",
    "trainmaster.shared.run_files",
    "trainmaster.shared.file_events",
    "trainmaster.shared.dispatcher_socket",
)
LOCAL_NAMES = (
    "trainmaster.shared.folders.RunFolder",
    "trainmaster.shared.folders.ServiceFolder",
    "trainmaster.shared.folders.WorkspaceFolder",
    "trainmaster.snapshots.model_contents.Contents",
    "trainmaster.snapshots.take_snapshot",
    "trainmaster.snapshots.write_archive",
)
WORKSPACES = ("workspace", "_workspace")

# Modules about a folder or a dispatcher of this machine, with the reason.
ALLOWED = {
    "cli/dispatcher.py": "starts and stops the dispatcher of this machine",
    "cli/findings.py": "examines this machine",
    "cli/opening.py": "finds the folder that a command is about",
    "cli/workspace_move.py": "moves a database that no dispatcher uses",
    "cli/workspaces.py": "lists and creates the workspaces of this machine",
    "sdk/mlflow/files.py": "is for addresses of folders on this machine; a server has its own",
    "sdk/mlflow/stores.py": "is for addresses of folders on this machine; a server has its own",
    "sdk/services/described.py": "has the folder as a property",
    "sdk/dry_run.py": "plans without a dispatcher where there is no workspace yet",
    "sdk/workspace/files.py": "finds, creates and describes workspaces of this machine",
    "sdk/workspace/workspace.py": "has the folder as a property",
}


def test_nothing_above_the_backend_uses_the_folder_of_a_workspace() -> None:
    found = {name: uses for name, uses in find_local_uses().items() if name not in ALLOWED}
    assert found == {}


def test_every_exception_is_needed() -> None:
    assert [name for name in ALLOWED if name not in find_local_uses()] == []


def test_all_ways_to_the_folder_are_noticed() -> None:
    uses = list(
        local_uses(
            ast.parse(
                "from trainmaster.shared.folders import WorkspaceFolder, home\n"
                "from trainmaster.shared import run_files\n"
                "import trainmaster.shared.file_events\n"
                "def work(run):\n"
                "    from trainmaster.sdk.backend.local.connection import call_once\n"
                "    return run.experiment.workspace.path, run.workspace.backend.folder, run.name\n"
            )
        )
    )
    assert uses == [
        "trainmaster.shared.folders.WorkspaceFolder",
        "trainmaster.shared.run_files",
        "trainmaster.shared.file_events",
        "trainmaster.sdk.backend.local.connection.call_once",
        "run.experiment.workspace.path",
        "run.workspace.backend.folder",
    ]


def find_local_uses() -> dict[str, list[str]]:
    """Each module above the backend that uses a folder of this machine, and how."""
    paths = [path for top in ABOVE for path in sorted((SOURCES / top).rglob("*.py"))]
    above = [path for path in paths if not path.is_relative_to(SOURCES / "sdk" / "backend")]
    assert len(above) > 100
    found = {path.relative_to(SOURCES).as_posix(): list(local_uses(ast.parse(path.read_text()))) for path in above}
    return {name: uses for name, uses in found.items() if uses}


def local_uses(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_local(alias.name))
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if is_local(name))
        elif isinstance(node, ast.Attribute) and is_folder(node):
            yield ast.unparse(node)


def is_local(name: str) -> bool:
    return name in LOCAL_NAMES or any(name == each or name.startswith(f"{each}.") for each in LOCAL_MODULES)


def is_folder(node: ast.Attribute) -> bool:
    """Whether it is `workspace.path` or `backend.folder`, of whatever object."""
    above = node.value
    name = above.attr if isinstance(above, ast.Attribute) else above.id if isinstance(above, ast.Name) else ""
    return (node.attr == "path" and name in WORKSPACES) or (node.attr == "folder" and name == "backend")

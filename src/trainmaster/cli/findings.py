"""What `trainmaster doctor` checks: Trainmaster itself, the workspace, and the machine that it is on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster import __version__
from trainmaster.environments.findings import Finding, examine_machine, git
from trainmaster.sdk.display.text import size
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_LITTLE_SPACE = 2 * 1024**3
_LEAST_PYTHON = (3, 11)


def examine(workspace: WorkspaceFolder, environ: Mapping[str, str]) -> list[Finding]:
    """The results of all checks on this machine, the essential ones first."""
    system, uv, *others = examine_machine(environ)
    usage = shutil.disk_usage(nearest_existing(workspace.path))
    return [trainmaster(), system, uv, folder(workspace), space(usage.free, usage.total), *others]


def examine_server(workspace: Workspace) -> list[Finding]:
    """The results for a workspace on a server: what this machine needs, then what the server's machine has."""
    connection = workspace.connection
    version = connection.call("status")["version"]
    disk = connection.call("workspace.disk")
    there = [from_plain(Finding, each) for each in connection.call("workspace.examine")]
    return [
        trainmaster(),
        git(),
        Finding("server", "found", f"{workspace.backend.location}, Trainmaster {version}", essential=True),
        *(replace(each, name=f"{each.name} (server)") for each in (space(disk["free"], disk["total"]), *there)),
    ]


def essential_missing(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without which nothing runs."""
    return [finding for finding in findings if finding.essential and finding.state != "found"]


def trainmaster() -> Finding:
    """This Trainmaster and its Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    text = f"{__version__}, Python {version} ({sys.executable})"
    if sys.version_info[:2] < _LEAST_PYTHON:
        return Finding("Trainmaster", "wrong", text, hint="Trainmaster needs Python 3.11 or newer.", essential=True)
    return Finding("Trainmaster", "found", text, essential=True)


def folder(workspace: WorkspaceFolder) -> Finding:
    """The workspace's folder, which exists or can be created."""
    existing = nearest_existing(workspace.path)
    hint = "Choose another folder with TRAINMASTER_HOME or --workspace."
    if not os.access(existing, os.W_OK | os.X_OK):
        text = f"{workspace.path}: {existing} cannot be written"
        return Finding("workspace", "wrong", text, "Everything is stored there.", hint, essential=True)
    created = "" if workspace.identity.exists() else " (created on first use)"
    return Finding("workspace", "found", f"{workspace.path}{created}", essential=True)


def space(free: int, total: int) -> Finding:
    """The disk of the workspace."""
    text = f"{size(free)} free of {size(total)}"
    if free < _LITTLE_SPACE:
        return Finding("disk", "wrong", text, "Runs, environments and snapshots need space.", "Free some space.")
    return Finding("disk", "found", text)


def nearest_existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next((place for place in (path, *path.parents) if place.exists()), Path("/"))

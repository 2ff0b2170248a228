"""What the parts of a dispatcher share. It is passed in, so that each part shows what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trainmaster.dispatcher.activity import Activity
from trainmaster.dispatcher.runs.changes import Changes
from trainmaster.dispatcher.runs.engines import Engines
from trainmaster.dispatcher.runs.ports import Ports
from trainmaster.dispatcher.secrets import Secrets
from trainmaster.dispatcher.store import Store
from trainmaster.shared.folders import WorkspaceFolder


@dataclass(frozen=True)
class Context:
    """The workspace and the few things that all parts of the dispatcher use."""

    folder: WorkspaceFolder
    store: Store
    secrets: Secrets
    engines: Engines
    ports: Ports = field(default_factory=Ports)
    activity: Activity = field(default_factory=Activity)
    changes: Changes = field(default_factory=Changes)
    builds: dict[str, Path] = field(default_factory=dict)
    """The digest of each environment that is being built, and the log of its builder."""

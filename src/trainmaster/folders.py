"""Where things lie in a workspace folder (docs/on-disk.md): paths only, nothing is touched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# A unix socket's path has to fit into 108 bytes, its end mark included.
_LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def code(self) -> Path:
        return self.path / "code"

    @property
    def files(self) -> Path:
        return self.path / "files"

    @property
    def logs(self) -> Path:
        return self.files / "azureml-logs"

    @property
    def journals(self) -> Path:
        return self.path / "journals"

    @property
    def environment_lock(self) -> Path:
        return self.path / "environment.lock"

    @property
    def data_plan(self) -> Path:
        return self.path / "data.json"

    def node(self, number: int) -> Path:
        return self.path / "nodes" / str(number)


@dataclass(frozen=True)
class WorkspaceFolder:
    """The folder of one workspace."""

    path: Path

    @property
    def identity(self) -> Path:
        return self.path / "workspace.json"

    @property
    def database(self) -> Path:
        return self.path / "trainmaster.db"

    @property
    def lock(self) -> Path:
        return self.path / "dispatcher.lock"

    @property
    def log(self) -> Path:
        return self.path / "dispatcher.log"

    @property
    def socket(self) -> Path:
        inside = self.path / "dispatcher.sock"
        if len(os.fsencode(inside)) <= _LONGEST_SOCKET_PATH:
            return inside
        # Rarely needed, and dear to import.
        import hashlib
        import tempfile

        key = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:24]
        return Path(tempfile.gettempdir()) / f"trainmaster-{os.getuid()}" / f"{key}.sock"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def environments(self) -> Path:
        return self.path / "environments"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def datastore(self) -> Path:
        return self.path / "datastore"

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)

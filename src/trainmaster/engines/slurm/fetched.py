"""What comes back from a cluster's shared folder, into the run's folder here."""

from __future__ import annotations

from pathlib import Path

from trainmaster.engines.ssh.data import freight_of
from trainmaster.engines.ssh.mirror import Mirror
from trainmaster.shared.folders import RunFolder


class Fetched(Mirror):
    """All nodes of one attempt of a run, which share a folder. Their results come after all else."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder, 0, None, freight_of(folder))

    def sizes(self) -> dict[str, int]:
        nodes = self._node.parent
        found = [*nodes.glob("*.log"), *nodes.glob("*/*.log")]
        return {**super().sizes(), **{self._name(path): path.stat().st_size for path in found}}

    def _take_small(self, name: str, data: bytes) -> str:
        self._write_small(name, data)
        return name

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._run.path))

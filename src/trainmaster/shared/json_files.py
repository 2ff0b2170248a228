"""JSON objects in files. A file is written completely or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainmaster.job.agent import durable


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file `path`; None if the file does not exist or contains anything else."""
    try:
        data = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write an object. Readers find the old one or the new one, even after a power cut."""
    durable.write(path, json.dumps(data).encode())

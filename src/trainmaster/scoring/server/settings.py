"""`server.json`: the settings of a scoring server. Paths may be relative to the file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Tuple


@dataclass(frozen=True)
class Settings:
    """The settings of one service. The fields are those of `Scoring` in `shared/service_plan.py`."""

    name: str
    code: str
    entry_script: str
    model_dir: str = ""
    keys_file: str = ""
    cors_origins: Tuple[str, ...] = ()
    max_batch_size: int = 1
    max_latency_ms: float = 5.0
    body_bytes: int = 100 * 1024 * 1024
    seconds: float = 60.0
    in_flight: int = 1000
    threads: int = 1
    description: str = ""
    version: str = "1"
    working: str = ""
    log_probes: bool = True
    """Whether questions about its health are in the log: a cluster asks every second."""


def read(path: str) -> Settings:
    """Read the settings. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        data: Dict[str, Any] = json.loads(file.read().decode("utf-8"))
    folder = os.path.dirname(os.path.abspath(path))
    # A newer Trainmaster may write settings that this copy of the server does not know.
    flat = {**data, **data.get("batching", {}), **data.get("limits", {})}
    known = {name: flat[name] for name in Settings.__dataclass_fields__ if name in flat}
    for name in ("code", "working", "model_dir", "keys_file"):
        if known.get(name):
            known[name] = os.path.join(folder, known[name])
    if "cors_origins" in known:
        known["cors_origins"] = tuple(known["cors_origins"])
    missing = [name for name in ("name", "code", "entry_script") if name not in known]
    if missing:
        raise ValueError("{} lacks: {}".format(path, ", ".join(missing)))
    return Settings(**known)

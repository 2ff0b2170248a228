"""The killing of agents, which may take one run after the other: whose agent it is at that moment is looked at."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.conftest import until
from trainmaster.job.agent import process


def kill_agent(agent: dict[str, Any], runs: Path, struck: set[str]) -> bool:
    """Kills the agent of a claim; adds the runs in the folder `runs` that it had begun and not ended to `struck`."""
    pid = agent["pid"]
    with contextlib.suppress(ProcessLookupError):
        # While it stands still it takes no other run, and nobody knows yet.
        os.kill(pid, signal.SIGSTOP)
        until(lambda: _stands_still(pid), what="the stop of an agent")
        claims = runs.glob("*/nodes/0/agent.json")
        struck.update(claim.parents[2].name for claim in claims if _is_under_way(claim, agent))
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _stands_still(pid: int) -> bool:
    stat = process.read(f"/proc/{pid}/stat")
    return not stat or stat.rpartition(b")")[2].split()[0] in (b"T", b"t", b"Z", b"X")


def _is_under_way(claim: Path, agent: dict[str, Any]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        noted = json.loads(claim.read_text())
        same = (noted["pid"], noted["start_time"]) == (agent["pid"], agent["start_time"])
        return same and not claim.with_name("result.json").exists()
    return False

"""SIGKILL for PostgreSQL and all its processes, its connections and the dispatcher, while runs come, log and end.

`CHAOS_SEED` repeats a storm, `CHAOS_SERVER_KILLS` sets how many kills it has.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.chaos.test_kills import HERE, Storm, check_run
from tests.conftest import end_workspace
from tests.postgresql import Server, run_server
from trainmaster import ComputeTarget, LocalCompute, Workspace
from trainmaster.shared.database_address import read_address
from trainmaster.shared.records import ACTIVE

KILLS = int(os.environ.get("CHAOS_SERVER_KILLS", "30"))
VICTIMS = ["server", "server", "connections", "dispatcher", "submitter"]
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'trainmaster%'"


class ServerStorm(Storm):
    """Kills the server of the database too."""

    def __init__(self, workspace: Workspace, base: Path, seed: int, server: Server) -> None:
        super().__init__(workspace, base, seed)
        self.server = server
        self.victims = VICTIMS
        address = read_address(self.folder)
        assert address is not None
        self._address = address

    def _kill(self, victim: str, run_id: str) -> bool:
        if victim == "server":
            self.server.kill()
            self.server.start()
            # Otherwise the next kill comes before anything has happened.
            self.workspace.connection.call("status")
            return True
        if victim == "connections":
            self.server.execute(CUT)
            return True
        return super()._kill(victim, run_id)

    def states(self) -> dict[str, str]:
        marks = ",".join(f"'{status}'" for status in ACTIVE)
        with psycopg.connect(self._address.url, autocommit=True) as connection:
            rows = connection.execute(
                f"SELECT id, status FROM {self._address.schema}.runs WHERE status IN ({marks})".encode()
            )
            return dict(rows.fetchall())


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[ServerStorm]:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nCHAOS_SEED={seed}")
    for folder in ("source", "proofs", "wheels"):
        (tmp_path / folder).mkdir()
    shutil.copy(HERE / "job.py", tmp_path / "source")
    with run_server() as server:
        ws = Workspace.create("storm", path=tmp_path / "ws", show_output=False, database=server.create_database())
        ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=3))
        try:
            yield ServerStorm(ws, tmp_path, seed, server)
        finally:
            with contextlib.suppress(Exception):
                end_workspace(ws.path)


@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_whatever_is_killed(storm: ServerStorm) -> None:
    storm.rage(KILLS)
    runs = list(storm.workspace.experiments["storm"].get_runs())
    for run in runs:
        run.wait_for_completion(raise_on_error=False)
    print(f"{sum(storm.kills.values())} kills, {len(runs)} runs")
    for (victim, state), count in sorted(storm.kills.items()):
        print(f"  {victim:12s}{state:18s}{count:4d}")
    assert storm.promised <= {run.id for run in runs}, "a run whose submit returned is not there"
    assert len({run.tags["proof"] for run in runs}) == len(runs), "a run was submitted twice"
    ends = collections.Counter(check_run(storm, run) for run in runs)
    print(f"  {dict(ends)}")
    assert set(ends) <= {"Completed", "Canceled"} and ends["Completed"] > 3

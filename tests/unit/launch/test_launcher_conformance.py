"""Every launcher of ours does what `trainmaster.testing` asks of all launchers."""

from __future__ import annotations

from typing import Any

import pytest

from trainmaster.launch import agent_count, port_count
from trainmaster.launch.planner import PLANNERS
from trainmaster.shared.job_spec import Distribution, JobSpec
from trainmaster.testing import LauncherConformance, LauncherPlace


def make_place(kind: str, nodes: int, **distribution: Any) -> LauncherPlace:
    spec = JobSpec("", "box", node_count=nodes, distribution=Distribution(kind, **distribution))
    return LauncherPlace(PLANNERS[kind], spec, agent_count(spec), port_count(spec))


PLACES = {
    "single": make_place("single", 1),
    "mpi": make_place("mpi", 2, process_count_per_node=2),
    "mpi on one node": make_place("mpi", 1, process_count_per_node=3),
    "torch": make_place("torch", 2, process_count=4),
    "torch with one process per node": make_place("torch", 3),
    "parameter server": make_place("parameter_server", 2, worker_count=3, parameter_server_count=2),
    "parameter server on one node": make_place("parameter_server", 1, worker_count=2, parameter_server_count=1),
}


class TestOurLaunchers(LauncherConformance):
    @pytest.fixture(params=PLACES.values(), ids=PLACES.keys())
    def place(self, request: pytest.FixtureRequest) -> LauncherPlace:
        place: LauncherPlace = request.param
        return place


def test_every_kind_is_tested() -> None:
    assert {place.spec.distribution.kind for place in PLACES.values()} == set(PLANNERS)

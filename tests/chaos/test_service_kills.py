"""Services whose processes are killed under load: at most what was in flight fails, nothing is answered wrongly."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.service_run import Load, Service, wait_until
from trainmaster.job.agent import process
from trainmaster.scoring import control
from trainmaster.shared.service_plan import Limits

ECHO = "import json\ndef run(data): return json.loads(data)"
CLIENTS = 6


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, ECHO, replicas=2).start()
    yield made
    control.kill(made.folder)


def test_killed_replicas_are_replaced(service: Service) -> None:
    kills = 3
    with Load(service.port, CLIENTS) as load:
        for _ in range(kills):
            load.wait_for(100)
            victim = next(each.pid for each in service.state.replicas if each.state == "ready")
            os.kill(victim, signal.SIGKILL)
            wait_until(partial(_both_ready_without, service, victim))
        load.wait_for(100)
    assert load.wrong == []
    # Each client has one request under way at most.
    assert len(load.failed) <= kills * CLIENTS
    assert sum(each.restarts for each in service.state.replicas) == kills


def test_a_killed_supervisor_takes_its_replicas_along_and_comes_back(service: Service) -> None:
    port, replicas = service.port, [each.pid for each in service.state.replicas]
    names = [(pid, process.start_time(pid)) for pid in replicas]
    with Load(port, CLIENTS) as load:
        load.wait_for(100)
        assert control.kill(service.folder)
        wait_until(lambda: not any(process.is_alive(pid, start, "") for pid, start in names))
        # Its replicas may be gone before it is.
        wait_until(lambda: not control.look(service.folder).alive)
        # What a dispatcher does when it finds it gone.
        control.start(service.plan)
        service.wait()
        load.wait_for(100)
    assert (service.port, load.wrong) == (port, [])


def test_a_replica_that_dies_at_once_again_and_again_leaves_the_others_alone(service: Service) -> None:
    """Its script cannot be loaded any more: new replicas fail, the old one goes on answering."""
    (service.code / "score.py").write_text("raise RuntimeError('edited')")
    first, second = (each.pid for each in service.state.replicas)
    with Load(service.port, CLIENTS) as load:
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: "edited" in service.state.error.get("headline", ""))
        # Who was being answered by it has noticed by now.
        load.wait_for(100)
        failed = len(load.failed)
        load.wait_for(100)
        assert len(load.failed) == failed
        assert service.state.state == "ready"
        assert second in [each.pid for each in service.state.replicas]
        (service.code / "score.py").write_text(ECHO)
        wait_until(lambda: _ready_without(service, first) == 2)
    assert load.wrong == []
    assert service.state.error == {}


def test_a_replica_that_does_nothing_any_more_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped as by a script that hangs without ever letting the event loop have its turn."""
    monkeypatch.setenv("TRAINMASTER_STUCK_SECONDS", "4")
    made = Service(tmp_path, ECHO, limits=Limits(seconds=1.0)).start()
    try:
        stuck = made.state.replicas[0].pid
        os.kill(stuck, signal.SIGSTOP)
        wait_until(lambda: _ready_without(made, stuck) == 1)
        assert made.ask(body=3).json == 3
    finally:
        control.kill(made.folder)


def test_what_a_script_has_started_goes_with_its_replica(tmp_path: Path) -> None:
    script = """
        import subprocess

        def init():
            global child
            child = subprocess.Popen(["sleep", "3600"])

        def run(data):
            return child.pid
    """
    made = Service(tmp_path, script).start()
    try:
        child = made.ask(body="1").json
        start = process.start_time(child)
        os.kill(made.state.replicas[0].pid, signal.SIGKILL)
        wait_until(lambda: not process.is_alive(child, start, ""))
        made.wait()
        wait_until(lambda: _ready_without(made, 0) == 1)
        child = made.ask(body="1").json
        start = process.start_time(child)
    finally:
        # The kernel ends the replicas with their supervisor, and only them; the rest is looked for.
        control.kill(made.folder)
    wait_until(lambda: not process.is_alive(child, start, ""))


def _both_ready_without(service: Service, pid: int) -> bool:
    return _ready_without(service, pid) == 2


def _ready_without(service: Service, pid: int) -> int:
    return sum(each.state == "ready" and each.pid != pid for each in service.state.replicas)

"""Dispatchers killed while services come, change and go: each ends as it was asked for, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.service_bench import ASKED, SCORE, Bench, supervisor_of
from trainmaster import LocalWebservice, Webservice, Workspace
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.folders import WorkspaceFolder

SEEDS = range(int(os.environ.get("CHAOS_SEEDS", "2")))


def killer(folder: WorkspaceFolder, seed: int, times: int = 3) -> contextlib.AbstractContextManager[None]:
    """Kills the dispatcher so many times, at moments that nobody chose."""
    return killing(lambda: int(folder.lock.read_text()), seed, times)


@contextlib.contextmanager
def killing(victim: Callable[[], int], seed: int, times: int) -> Iterator[None]:
    """Kills whoever is the victim at the moment; returns when all is done."""
    chance = random.Random(seed)

    def kill() -> None:
        for _ in range(times):
            time.sleep(chance.uniform(0.0, 0.8))
            with contextlib.suppress(OSError, ValueError):
                os.kill(victim(), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def processes_of(place: Path) -> list[int]:
    """The processes of the service in a folder: its supervisor by its command, its replicas by their files."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if os.fsencode(place) in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


@pytest.fixture
def bench(workspace: Workspace, tmp_path: Path) -> Bench:
    (tmp_path / "project").mkdir()
    return Bench(workspace, tmp_path / "project")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dispatcher_killed_at_any_moment(bench: Bench, seed: int) -> None:
    folder = WorkspaceFolder(bench.workspace.path)
    place = folder.service("tough").path
    config = LocalWebservice.deploy_configuration(replicas=2)
    with killer(folder, seed):
        service = bench.deploy("tough", factor=2, deployment_config=config)
    assert service.run(ASKED)["result"] == [2, 4]
    port, supervisor = service.port, supervisor_of(bench.workspace, "tough")
    with killer(folder, seed + 100):
        service.update(models=[bench.model(3)], wait=True)
    assert service.run(ASKED)["result"] == [3, 6] and service.port == port
    # One that is refused leaves what serves, however often it is begun anew.
    bench.script("score.py", SCORE + "\nraise LookupError('never')\n")
    with killer(folder, seed + 200), pytest.raises(WebserviceException, match="never"):
        service.reload(wait=True)
    assert service.run(ASKED)["result"] == [3, 6]
    # None of the dispatchers touched what served.
    assert supervisor_of(bench.workspace, "tough") == supervisor
    assert not list(place.rglob("*partial*"))
    assert len(processes_of(place)) >= 2
    with killer(folder, seed + 300):
        service.delete()
    assert bench.workspace.webservices == {}
    # The files go last; a dispatcher that was killed over it leaves them to the next.
    bench.workspace.connection.call("status")
    until(lambda: not place.exists(), what="the removal of its folder")
    until(lambda: not processes_of(place), what="the end of its processes")


def test_a_broken_one_ends_failed_and_nothing_runs(bench: Bench) -> None:
    bench.script("score.py", "def init():\n    raise LookupError('never')\n\ndef run(data):\n    pass\n")
    folder = WorkspaceFolder(bench.workspace.path)
    with killer(folder, 7):
        service: Any = bench.deploy("hopeless", wait=False)
        with pytest.raises(WebserviceException, match="never"):
            service.wait_for_deployment()
    assert Webservice(bench.workspace, "hopeless").state == "failed"
    until(lambda: not processes_of(folder.service("hopeless").path), what="the end of its processes")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_supervisor_killed_over_an_update(bench: Bench, seed: int) -> None:
    """Then nobody answers for a moment; what answers after it is what was asked for, or what served before."""
    service = bench.deploy("struck", factor=2)
    with killing(lambda: supervisor_of(bench.workspace, "struck"), seed, 2):
        service.update(models=[bench.model(3)], wait=True)
    answers(service, [3, 6])
    bench.script("score.py", SCORE + "\nraise LookupError('never')\n")
    strikes = killing(lambda: supervisor_of(bench.workspace, "struck"), seed + 100, 2)
    with strikes, pytest.raises(WebserviceException, match="never"):
        service.reload(wait=True)
    answers(service, [3, 6])
    assert service.state == "failed"


def test_a_model_file_changed_on_disk_is_said_and_never_served(bench: Bench) -> None:
    service = bench.deploy("watched", factor=2)
    file = bench.workspace.path / "models" / "factor" / "1" / "factor.json"
    file.chmod(0o644)
    file.write_text('{"factor": 10}')

    def warned() -> bool:
        service.update_deployment_state()
        return any("factor.json has changed on disk" in each for each in service.warnings)

    until(warned, what="the warning")
    assert service.run(ASKED)["result"] == [2, 4]
    os.kill(service.run(ASKED)["process"], signal.SIGKILL)
    until(lambda: _state(service) == "failed", what="the end of the replica")
    with pytest.raises(WebserviceException, match="The service has no running replica"):
        service.run(ASKED)
    # A version of its own is what brings other contents.
    service.update(models=[bench.model(3)], wait=True)
    answers(service, [3, 6])
    assert not service.warnings


def _state(service: Any) -> str:
    service.update_deployment_state()
    return str(service.state)


def answers(service: Any, wanted: list[int]) -> None:
    def asked() -> bool:
        try:
            return bool(service.run(ASKED)["result"] == wanted)
        except WebserviceException:
            return False

    until(asked, what="the right answer")

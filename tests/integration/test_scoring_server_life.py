"""A service over time: generations replace each other, the address stays, the end is orderly; packages stand alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.service_run import Connection, Load, Service, wait_until

from trainmaster.job.agent.process import boot_id, is_alive
from trainmaster.job.errors import WebserviceException
from trainmaster.scoring import control
from trainmaster.shared.service_plan import SERVER

OLD = "import json\ndef run(data): return ['old', json.loads(data)]"
NEW = "import json\ndef run(data): return ['new', json.loads(data)]"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, OLD, replicas=2)
    yield made
    control.kill(made.folder)


def _either(number: int, answer: Any) -> bool:
    return answer[0] in ("old", "new") and answer[1] == number


def test_an_update_drops_no_request_and_keeps_the_address(service: Service) -> None:
    service.start()
    port = service.port
    with Load(port, expect=_either) as load:
        load.wait_for(50)
        service.update(NEW, replicas=3)
        service.wait()
        load.wait_for(50)
        assert service.ask(body=1).json == ["new", 1]
    assert (load.failed, load.wrong) == ([], [])
    assert service.port == port
    wait_until(lambda: {each.generation for each in service.state.replicas} == {2})
    assert [each.state for each in service.state.replicas] == ["ready"] * 3
    # Each client, whose numbers grow, is answered by the old ones first and then by the new ones alone.
    for client in range(load.clients):
        versions = [
            version for version, number in sorted(load.seen, key=lambda one: one[1]) if number // 10**6 == client
        ]
        assert versions == sorted(versions, reverse=True), versions
    assert {version for version, _ in load.seen} == {"old", "new"}


def test_all_replicas_get_work(service: Service) -> None:
    service.write("import os\ndef run(data): return os.getpid()")
    service.start()
    wanted = {each.pid for each in service.state.replicas}
    seen: set[int] = set()
    with contextlib.ExitStack() as open_connections:

        def ask() -> bool:
            seen.add(open_connections.enter_context(Connection(service.port)).ask(body="1").json)
            return seen == wanted

        wait_until(ask, f"only {seen} of {wanted} answer")


def test_a_broken_update_changes_nothing(service: Service) -> None:
    service.start()
    before = {each.pid for each in service.state.replicas}
    service.update("import nothing_of_this_name")
    with pytest.raises(WebserviceException, match="nothing_of_this_name"):
        service.wait()
    assert (service.state.state, service.state.serving, service.state.failed) == ("ready", 1, 2)
    assert service.ask(body=7).json == ["old", 7]
    wait_until(lambda: {each.pid for each in service.state.replicas} == before)
    service.update(NEW)
    service.wait()
    assert (service.ask(body=7).json, service.state.failed, service.state.error) == (["new", 7], 0, {})


def test_a_newer_update_overtakes_one_that_is_still_starting(service: Service, tmp_path: Path) -> None:
    service.start()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    service.update(f"open({str(gate)!r}).read()\ndef run(data): return 'never'")
    wait_until(lambda: service.state.wanted == 2)
    service.update(NEW)
    service.wait()
    assert service.ask(body=1).json == ["new", 1]


def test_the_same_plan_again_changes_nothing(service: Service) -> None:
    service.start()
    before = service.state.replicas
    control.start(service.plan)
    control.start(service.plan)
    assert service.ask(body=1).status == 200
    assert service.state.replicas == before


def test_stopping_answers_what_has_begun_and_the_address_comes_back(service: Service, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    service.write(f"def run(data): return open({str(gate)!r}).read()")
    service.start()
    port = service.port
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(service.ask(body="1")))
    with Connection(port) as idle:
        assert idle.ask("/").body == b"Healthy"
        asking.start()
        wait_until(lambda: b"requests_in_flight 1" in service.ask("/metrics").body)
        assert control.stop(service.folder)
        wait_until(lambda: service.state.state == "stopping")
        wait_until(lambda: _refused(port))
        gate.write_text("at last")
        asking.join(120)
    assert (answers[0].status, answers[0].json) == (200, "at last")
    assert answers[0].headers["connection"] == "close"
    assert control.wait_stopped(service.folder, 120)
    assert (service.state.state, service.state.replicas) == ("stopped", ())
    service.write(OLD)
    control.start(service.plan)
    service.wait()
    assert service.port == port


def test_a_service_whose_folder_was_removed_ends(service: Service) -> None:
    """As with a workspace that somebody removed with `rm -r`."""
    service.start()
    port, supervisor = service.port, control.supervisor(service.folder)
    assert supervisor is not None
    shutil.rmtree(service.folder)
    wait_until(lambda: not is_alive(supervisor.pid, supervisor.start_time, boot_id()))
    assert _refused(port)


def test_an_address_that_is_taken_is_told_at_once(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(WebserviceException, match=f"cannot use the address 127.0.0.1:{port}"):
            control.start(Service(tmp_path, OLD, port=port).plan)
    assert not control.look(tmp_path / "service").alive


def test_two_that_start_it_at_once_get_one_supervisor(service: Service) -> None:
    threads = [threading.Thread(target=control.start, args=(service.plan,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    service.wait()
    assert service.log.count("the supervisor of test listens") == 1


def test_a_model_file_that_changes_is_noticed(tmp_path: Path) -> None:
    models = tmp_path / "models"
    (models / "m" / "1").mkdir(parents=True)
    weights = models / "m" / "1" / "weights"
    weights.write_text("1")
    script = "import os\ndef run(data): return open(os.environ['AZUREML_MODEL_DIR'] + '/weights').read()"
    made = Service(tmp_path, script, models_root=str(models), model_dir=str(weights.parent)).start()
    try:
        weights.write_text("other")
        wait_until(lambda: made.state.warnings)
        assert made.state.warnings == ("the model file m/1/weights has changed on disk",)
        # A replica that dies is not replaced by one that would load something else.
        os.kill(made.state.replicas[0].pid, signal.SIGKILL)
        wait_until(lambda: made.state.state == "unhealthy")
        assert made.state.replicas == ()
        # Nor does a supervisor that comes after this one.
        made.stop()
        control.start(made.plan)
        with pytest.raises(WebserviceException, match="m/1/weights has changed on disk"):
            made.wait()
        made.update(script)
        made.wait()
        assert (made.ask(body="1").json, made.state.warnings) == ("other", ())
    finally:
        control.kill(made.folder)


def test_the_log_is_cut(service: Service) -> None:
    service.start()
    log = service.folder / "service.log"
    with log.open("ab") as file:
        file.truncate(70 * 1024 * 1024)
    wait_until(lambda: log.stat().st_size < 1024 * 1024)
    assert (service.folder / "service.log.1").stat().st_size >= 70 * 1024 * 1024
    service.ask(body=1)
    wait_until(lambda: "POST /score 200" in service.log)


def test_the_check_tells_without_serving(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (tmp_path / "server.json").write_text(json.dumps({"name": "a", "code": "code", "entry_script": "score.py"}))

    def check(script: str) -> Any:
        (code / "score.py").write_text(script)
        command = [sys.executable, str(SERVER), "check", str(tmp_path / "server.json")]
        return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.splitlines()[-1])

    assert check("def run(data): pass") == {"ready": True}
    told = check("def init(): raise RuntimeError('no memory')\ndef run(data): pass")["error"]
    assert told["headline"] == "init() of score.py failed: RuntimeError: no memory"
    assert "in init" in told["cause"]


def test_a_copy_of_the_server_runs_with_plain_uvicorn(tmp_path: Path) -> None:
    shutil.copytree(SERVER, tmp_path / "anything", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app.py").write_text("from anything.application import from_file\napp = from_file('server.json')\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "score.py").write_text(
        "import sys, threading\n"
        "def init():\n    global thread\n    thread = threading.get_ident()\n"
        "def run(data):\n    return [data, threading.get_ident() == thread, 'trainmaster' in sys.modules]\n"
    )
    (tmp_path / "server.json").write_text(json.dumps({"name": "a", "code": "code", "entry_script": "score.py"}))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.set_inheritable(True)
        command = [sys.executable, "-m", "uvicorn", "app:app", "--fd", str(listening.fileno())]
        running = subprocess.Popen(command, cwd=tmp_path, pass_fds=[listening.fileno()], stderr=subprocess.DEVNULL)
        try:
            with Connection(listening.getsockname()[1]) as line:
                assert line.ask(body="x").json == ["x", True, False]
                assert line.ask("/").body == b"Healthy"
                assert b"replicas_ready 1" in line.ask("/metrics").body
        finally:
            running.terminate()
            running.wait(120)


def test_a_plan_for_another_address_is_refused(service: Service) -> None:
    service.start()
    service.plan = replace(service.plan, generation=2, port=1)
    control.start(service.plan)
    with pytest.raises(WebserviceException, match="address of a service cannot be changed"):
        service.wait()
    assert service.ask(body=1).json == ["old", 1]


def _refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=120).close()
    except ConnectionRefusedError:
        return True
    return False

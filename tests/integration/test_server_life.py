"""How the server starts, limits its clients, reports about itself, and ends."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import write_certificate
from tests.conftest import PATIENCE, until
from tests.server_process import ServerProcess
from trainmaster.errors import TrainmasterError

from trainmaster import Experiment, Workspace

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))
LIMITS = {"header_seconds": 1.0, "body_seconds": 2.0, "stall_seconds": 1.0, "concurrent_requests": 8}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root", settings={"limits": LIMITS})
    process.create_workspace("vision")
    process.call("vision", "experiments.ensure", name="first")
    yield process
    process.end()


def connect(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def read_all(connection: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    pieces = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def start_run(server: ServerProcess) -> str:
    """A run without a job, which does not end by itself."""
    run = {"id": f"run-{uuid.uuid4().hex}", "experiment": "first", "status": "Running", "created_at": time.time()}
    server.call("vision", "runs.create", runs=[run])
    return str(run["id"])


# Limits


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_client_that_does_not_finish_its_headers_is_disconnected(server: ServerProcess, sent: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(sent)
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_headers_are_limited(server: ServerProcess) -> None:
    with connect(server) as connection:
        try:
            connection.sendall(b"GET /health HTTP/1.1\r\nX-Long: ")
            for _ in range(64):
                connection.sendall(b"x" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_a_body_is_limited(server: ServerProcess) -> None:
    """The server answers before it reads the body."""
    head = f"POST /api/v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
    with connect(server) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {2 << 20}\r\n\r\n".encode())
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too_large"' in answer


def test_requests_at_the_same_time_are_limited(server: ServerProcess) -> None:
    """Eight clients that do not send their bodies: a ninth is told to come again later."""
    head = f"POST /api/v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
    waiting = [connect(server) for _ in range(8)]
    for connection in waiting:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n".encode())
    answer = until(lambda: (found := server.request("GET", "/health")).status == 503 and found)
    assert answer.headers["retry-after"] == "1"
    for connection in waiting:
        # They are told that they were too slow, which makes room for others.
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
        connection.close()
    assert server.request("GET", "/health").status == 200


@pytest.mark.parametrize("answer", ["a file", "many answers"])
def test_a_client_that_does_not_read_its_answer_is_disconnected(server: ServerProcess, answer: str) -> None:
    """Else a few clients could hold all the memory, or all the requests that are answered at the same time."""
    path, count = "/openapi.json", 200
    if answer == "a file":
        path, count = f"/api/v1/workspaces/vision/runs/{start_run(server)}/files/large.bin", 1
        assert server.request("PUT", path, bytes(64 << 20)).status == 200
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request.encode() * count)
        poll = select.poll()
        poll.register(connection, select.POLLERR | select.POLLHUP)
        # A file has its own limit, which is longer than this.
        until(lambda: poll.poll(0), 30, "the end of the connection")
    assert server.request("GET", "/health").status == 200


# What the server says about itself


def test_health_and_readiness_need_no_token(server: ServerProcess) -> None:
    assert server.request("GET", "/health", token="").json()["status"] == "ok"
    ready = server.request("GET", "/ready", token="")
    assert (ready.status, ready.json()["is_ready"]) == (200, True)
    assert {check["name"] for check in ready.json()["checks"]} == {"running", "database", "disk", "dispatchers"}


def test_metrics_count_requests_and_runs(server: ServerProcess) -> None:
    assert server.request("GET", "/metrics", token="").status == 401
    count = len(server.call("vision", "status")["active"])
    start_run(server)
    server.request("GET", "/api/v1/workspaces/vision/experiments")
    text = server.request("GET", "/metrics").body.decode()
    route = "/api/v1/workspaces/{workspace}/experiments"
    assert f'trainmaster_requests_total{{method="GET",route="{route}",status="200"}}' in text
    assert f'trainmaster_request_seconds_bucket{{route="{route}",le="+Inf"}}' in text
    assert f'trainmaster_active_runs{{workspace="vision"}} {count + 1}\n' in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0, line


def test_the_access_log_has_a_line_per_request_and_no_secrets(server: ServerProcess) -> None:
    secret, name = "hunter22-in-a-query", f"my-request-{uuid.uuid4().hex[:8]}"
    server.request("GET", f"/api/v1/workspaces?code={secret}", headers={"X-Request-Id": name})
    server.request("PUT", "/api/v1/workspaces/vision/secrets/key", {"value": "hunter22-in-a-body"})

    def find() -> list[dict[str, Any]]:
        lines = [line for line in server.log().splitlines() if name in line]
        return [json.loads(line) for line in lines]

    (entry,) = until(find)
    assert (entry["method"], entry["path"], entry["user"]) == ("GET", "/api/v1/workspaces", "admin")
    assert entry["ms"] > 0
    until(lambda: "/secrets/key" in server.log())
    assert "hunter22" not in server.log()
    assert server.token not in server.log()


# Addresses


def run_server(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TRAINMASTER, "server", "run", *options], capture_output=True, text=True, timeout=PATIENCE)


def test_it_does_not_listen_beyond_this_machine_without_tls(server: ServerProcess) -> None:
    done = run_server("--root", str(server.root), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "does not listen on 0.0.0.0 without TLS" in done.stderr


def test_a_root_without_a_server_is_an_error_with_a_hint(tmp_path: Path) -> None:
    done = run_server("--root", str(tmp_path))
    assert done.returncode == 2
    assert "trainmaster server init" in done.stderr


def test_a_port_that_is_taken_is_an_error_with_a_hint(tmp_path: Path, server: ServerProcess) -> None:
    root = str(tmp_path / "root")
    subprocess.run([TRAINMASTER, "server", "init", "--root", root], check=True, capture_output=True)
    done = run_server("--root", root, "--port", str(server.port))
    assert done.returncode == 5
    assert f"cannot listen on 127.0.0.1, port {server.port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_certificate_that_cannot_be_used_is_an_error_with_a_hint(tmp_path: Path, server: ServerProcess) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    for certificate in (str(wrong), str(tmp_path / "missing.pem")):
        done = run_server("--root", str(server.root), "--tls-cert", certificate, "--tls-key", certificate)
        assert done.returncode == 2
        assert "the certificate and its key cannot be used" in done.stderr


def test_it_serves_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = write_certificate(tmp_path)
    process = ServerProcess(tmp_path / "root", "--tls-cert", str(certificate), "--tls-key", str(key))
    try:
        assert process.scheme == "https"
        trusted = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", process.port, context=trusted, timeout=PATIENCE)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
        monkeypatch.setenv("TRAINMASTER_SERVER", process.url)
        monkeypatch.setenv("TRAINMASTER_TOKEN", process.token)
        with pytest.raises(TrainmasterError, match="certificate"):
            Workspace.create("secured", show_output=False)
        monkeypatch.setenv("TRAINMASTER_CA_FILE", str(certificate))
        workspace = Workspace.create("secured", show_output=False)
        with Experiment(workspace, "over-tls").start_logging(snapshot_directory=None) as run:
            run.log("loss", 0.5)
        assert run.get_metrics() == {"loss": 0.5}
    finally:
        process.end()


# The end


def test_sigterm_ends_streams_and_leaves_runs_alone(tmp_path: Path) -> None:
    process = ServerProcess(tmp_path / "root")
    try:
        process.create_workspace("vision")
        process.call("vision", "experiments.ensure", name="first")
        run_id = start_run(process)
        connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=PATIENCE)
        path = f"/api/v1/workspaces/vision/runs/{run_id}/events"
        connection.request("GET", path, headers={"Authorization": f"Bearer {process.token}"})
        response = connection.getresponse()
        assert response.status == 200
        until(lambda: response.readline().startswith(b"event: state"))
        assert "trainmaster_streams 1\n" in process.request("GET", "/metrics").body.decode()
        rest: list[bytes] = []
        reader = threading.Thread(target=lambda: rest.append(response.read()))
        reader.start()
        dispatcher = process.call("vision", "status")["pid"]
        assert process.stop() == 0
        # The stream ended as a stream does: a client knows that it got everything so far.
        reader.join(PATIENCE)
        connection.close()
        assert len(rest) == 1
        os.kill(dispatcher, 0)
        process.start()
        status = process.call("vision", "status")
        assert status["pid"] == dispatcher
        assert [run["id"] for run in status["active"]] == [run_id]
        process.call("vision", "runs.finish", run_id=run_id, status="Completed")
    finally:
        process.end()

"""Malformed requests: never a 5xx of the server's own, never a word about where it lives."""

from __future__ import annotations

import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service_run import Service

from trainmaster.serving import control
from trainmaster.serving.plan import Limits

SCRIPT = """
    import numpy
    from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
    from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
    from inference_schema.schema_decorators import input_schema, output_schema

    @input_schema("data", NumpyParameterType(numpy.array([[1.0, 2.0]])))
    @input_schema("times", StandardPythonParameterType(1))
    @output_schema(NumpyParameterType(numpy.array([1.0])))
    def run(data, times):
        return numpy.ones(3)
"""
MALFORMED = 1000
LEAKS = re.compile(rb"Traceback|File \"|site-packages|score\.py|/tmp|/home|/root|Error\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("malformed"), SCRIPT, limits=Limits(body_bytes=5000, seconds=2.0)).start()
    yield made
    control.kill(made.folder)


def test_schemathesis_finds_nothing(service: Service, tmp_path: Path) -> None:
    conformance = ("status_code", "content_type", "response_schema")
    checks = ",".join(["not_a_server_error", "unsupported_method", *(f"{name}_conformance" for name in conformance)])
    command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
    command += [f"http://127.0.0.1:{service.port}/swagger.json", "--checks", checks, "--phases", "coverage,fuzzing"]
    command += ["--mode", "negative", "--max-examples", "40", "--seed", "7", "--generation-database", "none"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    tested = re.search(r"(\d+) generated", done.stdout)
    assert tested is not None and int(tested.group(1)) > 80
    assert "run failed" not in service.log


def test_raw_bytes(service: Service) -> None:
    before = service.state.replicas
    chance = random.Random(7)
    statuses: dict[int, int] = {}
    for _ in range(MALFORMED):
        sent = _malformed(chance)
        said = _exchange(service.port, sent)
        assert LEAKS.search(said) is None, (sent, said)
        for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", said):
            statuses[int(status)] = statuses.get(int(status), 0) + 1
            assert int(status) < 500, (sent, said)
    assert {400, 404, 405, 413} <= set(statuses), statuses
    assert service.ask(body={"data": [[1, 2]], "times": 1}).json == [1.0, 1.0, 1.0]
    assert service.state.replicas == before
    assert "run failed" not in service.log and "Traceback" not in service.log


def _malformed(chance: random.Random) -> bytes:
    """A request that is wrong in one way or several."""
    noise = bytes(chance.randrange(256) for _ in range(chance.choice((0, 3, 40, 400))))
    method = chance.choice((b"POST", b"POST", b"GET", b"PUT", b"OPTIONS", b"HEAD", b"BREW", noise[:4] or b"", b"post"))
    path = chance.choice(
        (b"/score", b"/score", b"/score?data=%ff&times=", b"/../../etc/passwd", b"//", b"*", b"/%00", noise)
    )
    version = chance.choice((b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"", noise[:3]))
    body = chance.choice(
        (b"", b"{", b"[[[", b'{"data": 1e999, "times": {}}', b'{"data":[[1]]}', b"\xff\xfe", noise, b"x" * 6000)
    )
    length = chance.choice((len(body), len(body), len(body) + 5, 10**9, -1, 10**30))
    headers = [b"Host: a", b"Content-Length: %d" % length]
    headers += chance.sample(
        [
            b"Transfer-Encoding: chunked",
            b"Content-Length: 3",
            b"Expect: 100-continue",
            b"X-Request-Id: ../../x\x00",
            b"Authorization: Bearer " + noise[:20],
            b"Origin: " + noise[:5],
            b"Upgrade: websocket\r\nConnection: Upgrade",
            b"Cookie: " + b"c" * chance.choice((10, 70_000)),
            b": ",
            noise[:30],
        ],
        chance.randrange(4),
    )
    return method + b" " + path + b" " + version + b"\r\n" + b"\r\n".join(headers) + b"\r\n\r\n" + body


def _exchange(port: int, sent: bytes) -> bytes:
    """What comes back until the other side closes; our side is closed for writing first."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        try:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(65536):
                said += part
        except ConnectionError:
            return said
    return said


def test_headers_without_end_are_not_read_without_end(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(1_000_000):
                line.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    assert service.ask("/").body == b"Healthy"

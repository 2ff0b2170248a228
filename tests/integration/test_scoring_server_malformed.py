"""Malformed requests: never a 5xx of the server's own, never a word about where it lives."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.generated_requests import LEAKS, Generated
from tests.service_run import Service

from trainmaster.scoring import control
from trainmaster.shared.service_plan import Limits

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
RAW_SCRIPT = """
    from azureml.contrib.services.aml_request import rawhttp
    from azureml.contrib.services.aml_response import AMLResponse

    @rawhttp
    def run(request):
        found = {"bytes": len(request.get_data()), "json": request.get_json(force=True, silent=True)}
        found.update(args=request.args, form=request.form, files=sorted(request.files), url=request.url)
        return AMLResponse({name: repr(value) for name, value in found.items()}, 200, json_str=True)
"""
LIMITS = Limits(body_bytes=5000, seconds=15.0)
MALFORMED = 1000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("malformed"), SCRIPT, limits=LIMITS).start()
    yield made
    control.kill(made.folder)


@pytest.mark.timeout(900)
def test_schemathesis_finds_nothing(service: Service, tmp_path: Path) -> None:
    """A thousand requests and more, made of the descriptions of three services; a fourth is in test_onnx.py."""
    keys = tmp_path / "keys.json"
    control.write_keys(keys, "right", "other")
    raw = Service(tmp_path / "raw", RAW_SCRIPT, limits=LIMITS).start()
    locked = Service(tmp_path / "locked", SCRIPT, limits=LIMITS, keys_file=str(keys)).start()
    key = ("--header", "Authorization: Bearer right")
    made = [
        Generated(service.port, tmp_path / "a", "--mode", "negative", examples=250),
        # Any bytes are right for a raw script; it is its request that has to bear them.
        Generated(raw.port, tmp_path / "b", examples=60),
        Generated(locked.port, tmp_path / "c", *key, "--mode", "negative", checks=("ignored_auth",), examples=80),
    ]
    try:
        exchanges = [each.exchanges() for each in made]
        logs = [each.log for each in (service, raw, locked)]
    finally:
        for process in made:
            process.end()
        for other in (raw, locked):
            control.kill(other.folder)
    assert sum(map(len, exchanges)) >= MALFORMED, list(map(len, exchanges))
    statuses = [{each.status for each in found} for found in exchanges]
    assert {400, 405} <= statuses[0] and {200, 405} <= statuses[1] and {400, 401} <= statuses[2]
    assert not any("run failed" in log or "Traceback" in log for log in logs)


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
    with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
        try:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(65536):
                said += part
        except ConnectionError:
            return said
    return said


def test_headers_without_end_are_not_read_without_end(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(1_000_000):
                line.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    assert service.ask("/").body == b"Healthy"

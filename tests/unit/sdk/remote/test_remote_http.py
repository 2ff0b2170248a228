"""The HTTP client: repeated requests, kept connections, errors, TLS, proxies, streams of events."""

from __future__ import annotations

import datetime
import io
import ipaddress
import json
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.sdk.remote.scripted_server import Received, ScriptedServer, answer, cut, scripted
from trainmaster.errors import (
    AuthenticationException,
    RunNotFoundException,
    ServiceException,
    UserErrorException,
)

from trainmaster.sdk.backend.remote.address import parse_server
from trainmaster.sdk.backend.remote.answers import UnavailableException
from trainmaster.sdk.backend.remote.downloads import fetch, read_part
from trainmaster.sdk.backend.remote.events import EventStream
from trainmaster.sdk.backend.remote.http import HttpClient, Request

OK = answer(200, b'{"result": 1}')


def client_of(server: ScriptedServer) -> HttpClient:
    return HttpClient(parse_server(server.url), "tm_secret")


def error(status: int, kind: str, **more: str) -> bytes:
    body = {"error": {"type": kind, "headline": "what", "cause": "why", "hint": "now", "request_id": "r1", **more}}
    return answer(status, json.dumps(body).encode())


def test_a_change_is_repeated_with_the_same_key_when_the_connection_is_lost() -> None:
    with scripted(cut, answer(503, b"", Retry_After="0.01"), OK) as server:
        assert client_of(server).call("POST", "/x", {"a": 1}) == {"result": 1}
    assert len(server.requests) == 3
    assert len({each.headers["idempotency-key"] for each in server.requests}) == 1
    assert {each.body for each in server.requests} == {b'{"a": 1}'}


def test_two_changes_have_different_keys_and_reads_have_none() -> None:
    with scripted(OK) as server:
        client = client_of(server)
        client.call("POST", "/x", {})
        client.call("POST", "/x", {})
        client.call("GET", "/x")
    first, second, read = (each.headers.get("idempotency-key") for each in server.requests)
    assert first != second and read is None


def test_an_answer_that_is_cut_is_asked_for_again() -> None:
    def half(received: Received, connection: socket.socket) -> bool:
        connection.sendall(OK[:-3])
        return False

    with scripted(half, OK) as server:
        assert client_of(server).call("GET", "/x") == {"result": 1}


def test_connections_are_kept_and_a_closed_one_is_replaced() -> None:
    def answer_and_close(received: Received, connection: socket.socket) -> bool:
        connection.sendall(OK)
        return False

    with scripted(OK, answer_and_close, OK) as server:
        client = client_of(server)
        for _ in range(3):
            client.call("GET", "/x")
    assert [each.connection for each in server.requests] == [1, 1, 2]


def test_a_forked_child_uses_connections_of_its_own() -> None:
    with scripted(OK) as server:
        client = client_of(server)
        client.call("GET", "/parent")
        child = os.fork()
        if child == 0:
            try:
                client.call("GET", "/child")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        client.call("GET", "/parent")
    assert {each.target: each.connection for each in server.requests} == {"/parent": 1, "/child": 2}


def test_errors_are_raised_as_at_home() -> None:
    with scripted(error(404, "RunNotFoundException")) as server, pytest.raises(RunNotFoundException) as raised:
        client_of(server).call("GET", "/x")
    assert (raised.value.headline, raised.value.cause, raised.value.hint) == ("what", "why", "now")
    assert len(server.requests) == 1


def test_an_error_of_the_server_names_the_request() -> None:
    with scripted(error(500, "ServiceException")) as server, pytest.raises(ServiceException, match="request r1"):
        client_of(server).call("GET", "/x")


def test_a_token_that_is_not_accepted_hints_at_login() -> None:
    server = ScriptedServer([error(401, "AuthenticationException")])
    with pytest.raises(AuthenticationException, match=f"trainmaster login {server.url}"):
        client_of(server).call("GET", "/x")
    server.close()


def test_an_answer_of_something_else_is_an_error_with_a_sentence() -> None:
    with scripted(answer(404, b"<html>nothing here")) as server, pytest.raises(UserErrorException, match="status 404"):
        client_of(server).call("GET", "/x")


def test_a_server_that_is_not_there_is_an_error_after_a_few_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = HttpClient(parse_server(f"http://127.0.0.1:{port}"), "t")
    with pytest.raises(UnavailableException, match="cannot be reached"):
        client.request(Request("GET", "/x", patience=0.2))


def test_a_refusal_before_the_end_of_a_long_body_is_read() -> None:
    with scripted(error(413, "UserErrorException"), reads_body=False) as server:
        request = Request("PUT", "/x", body=lambda: io.BytesIO(bytes(1 << 24)), size=1 << 24)
        with pytest.raises(UserErrorException, match="what"):
            client_of(server).request(request)


def test_a_body_from_a_file_is_sent_from_its_beginning_again(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 100_000)
    with scripted(cut, OK) as server:
        client_of(server).request(Request("PUT", "/x", body=lambda: file.open("rb"), size=100_000))
    assert [len(each.body) for each in server.requests] == [100_000, 100_000]


@pytest.mark.parametrize("theirs", ["99.0.0", "0.999.0", "nonsense"])
def test_a_server_with_another_version_is_refused(theirs: str) -> None:
    other = answer(200, b"{}", X_Trainmaster_Version=theirs)
    with scripted(other) as server, pytest.raises(ServiceException, match="one minor version"):
        client_of(server).call("GET", "/x")


def test_http_to_another_machine_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    address = parse_server("http://gpu.example.org")
    with pytest.raises(UserErrorException, match="has no TLS"):
        HttpClient(address, "t")
    monkeypatch.setenv("TRAINMASTER_INSECURE", "1")
    HttpClient(address, "t")


def test_a_proxy_of_the_environment_is_used_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_INSECURE", "1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with scripted(OK) as proxy:
        monkeypatch.setenv("http_proxy", f"http://ada:word@127.0.0.1:{proxy.port}")
        HttpClient(parse_server("http://gpu.example.org:8765"), "t").call("GET", "/x")
    (request,) = proxy.requests
    assert request.target == "http://gpu.example.org:8765/x"
    assert request.headers["proxy-authorization"] == "Basic YWRhOndvcmQ="
    monkeypatch.setenv("no_proxy", "gpu.example.org")
    with pytest.raises(UnavailableException):
        client = HttpClient(parse_server("http://gpu.example.org:8765"), "t")
        client.request(Request("GET", "/x", patience=0.0))
    assert len(proxy.requests) == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A certificate for 127.0.0.1, signed by itself, and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    yield file


def test_a_certificate_has_to_be_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with scripted(OK, context=context) as server:
        with pytest.raises(ServiceException, match="TRAINMASTER_CA_FILE"):
            client_of(server).call("GET", "/x")
        assert server.requests == []
        monkeypatch.setenv("TRAINMASTER_CA_FILE", str(certificate))
        assert client_of(server).call("GET", "/x") == {"result": 1}


def test_a_download_that_is_cut_continues_where_it_ended(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000

    def first_half(received: Received, connection: socket.socket) -> bool:
        connection.sendall(answer(200, data, ETag='"1"')[: len(data) // 2])
        return False

    def rest(received: Received, connection: socket.socket) -> bool:
        start = int(received.headers["range"].removeprefix("bytes=").removesuffix("-"))
        assert start > 0 and received.headers["if-match"] == '"1"'
        connection.sendall(answer(206, data[start:]))
        return True

    with scripted(first_half, rest) as server:
        fetch(client_of(server), "/file", tmp_path / "below" / "copy")
    assert (tmp_path / "below" / "copy").read_bytes() == data
    assert list((tmp_path / "below").iterdir()) == [tmp_path / "below" / "copy"]


def test_a_part_behind_the_end_of_a_file_is_empty() -> None:
    with scripted(error(416, "UserErrorException")) as server:
        assert read_part(client_of(server), "/file", 10, None) == b""


def stream(*parts: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(parts)


def test_events_are_read_with_a_time_limit_and_continued_after_a_cut() -> None:
    def first(received: Received, connection: socket.socket) -> bool:
        connection.sendall(stream(b": heartbeat\n\n", b"id: 7\nevent: state\ndata: one\n\n", b"event: state\nda"))
        return False

    def second(received: Received, connection: socket.socket) -> bool:
        assert received.headers["last-event-id"] == "7"
        connection.sendall(stream(b"id: 8\nevent: state\ndata: two\n\n"))
        return False

    with scripted(first, second) as server:
        events = EventStream(client_of(server), "/events", {}, lambda event: event.data == "two")
        found = [events.next(60), events.next(60)]
        with pytest.raises(EOFError):
            events.next(60)
    assert [each.data for each in found if each] == ["one", "two"]


def test_waiting_for_an_event_ends_after_its_time_and_loses_nothing() -> None:
    import threading

    go = threading.Event()

    def late(received: Received, connection: socket.socket) -> bool:
        connection.sendall(stream(b"event: sta"))
        go.wait(60)
        connection.sendall(b"te\ndata: one\n\n")
        return False

    with scripted(late) as server, EventStream(client_of(server), "/e", {}, lambda event: True) as events:
        assert events.next(0.01) is None
        go.set()
        found = events.next(60)
    assert found is not None and (found.kind, found.data) == ("state", "one")


def test_an_error_instead_of_events_is_raised() -> None:
    with scripted(error(404, "RunNotFoundException")) as server:
        events = EventStream(client_of(server), "/e", {})
        with pytest.raises(RunNotFoundException):
            events.next(60)

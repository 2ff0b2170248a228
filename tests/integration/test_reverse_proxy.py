"""A server behind nginx, which adds TLS, with the lines of the guide."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.certificates import write_certificate
from tests.conftest import PATIENCE
from tests.reverse_proxy import find_port, nginx
from tests.server_people import create_run
from tests.server_process import Answer, ServerProcess

from trainmaster import Experiment, Workspace

MEGABYTES = 48


@dataclass(frozen=True)
class Site:
    """What clients see: only the proxy."""

    server: ServerProcess
    port: int
    certificate: Path

    @contextlib.contextmanager
    def open(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and return the answer when its head is there."""
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=trusted, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {"Authorization": f"Bearer {self.server.token}"})
            with connection.getresponse() as answer:
                yield answer

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request without a token."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            named, body = {"Content-Type": "application/json", **named}, json.dumps(body)
        with self.open(method, path, body, named or {"Accept": "*/*"}) as found:
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    key, certificate = write_certificate(folder)
    port = find_port()
    settings = {"public_url": f"https://127.0.0.1:{port}", "proxies": ["127.0.0.1"]}
    server = ServerProcess(folder / "root", settings=settings)
    try:
        server.create_workspace("vision")
        with nginx(folder / "nginx", port, server.port, certificate, key):
            yield Site(server, port, certificate)
    finally:
        server.end()


def test_the_sdk_works_through_it(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAINMASTER_SERVER", f"https://127.0.0.1:{site.port}")
    monkeypatch.setenv("TRAINMASTER_TOKEN", site.server.token)
    monkeypatch.setenv("TRAINMASTER_CA_FILE", str(site.certificate))
    workspace = Workspace.get("vision")
    with Experiment(workspace, "proxied").start_logging(snapshot_directory=None) as run:
        run.log("loss", 0.5)
        large = tmp_path / "large.bin"
        large.write_bytes(bytes(range(256)) * (MEGABYTES << 12))
        run.upload_file("large.bin", str(large))
    assert run.get_metrics() == {"loss": 0.5}
    run.download_file("large.bin", str(tmp_path / "again.bin"))
    assert (tmp_path / "again.bin").read_bytes() == large.read_bytes()


def test_events_arrive_when_they_happen(site: Site) -> None:
    run = create_run(site.server, "vision")
    path = f"/api/v1/workspaces/vision/runs/{run}"
    with site.open("GET", f"{path}/events?files=journals") as stream:
        assert stream.getheader("content-type") == "text/event-stream; charset=utf-8"
        _read_until(stream, b"Running")
        # Only now is there something more to read: a proxy that waits for a full buffer would not pass it on.
        assert site.server.request("PUT", f"{path}/journals/program?offset=0", b"{}\n").status == 200
        _read_until(stream, b"journals")


def test_a_browser_signs_in_and_changes_something(site: Site) -> None:
    url = site.server.request("POST", "/api/v1/users/admin/sign-in-link").json()["url"]
    assert url.startswith(f"https://127.0.0.1:{site.port}/login#code=")
    origin = f"https://127.0.0.1:{site.port}"
    answer = site.ask("POST", "/login/link", {"code": urlsplit(url).fragment.removeprefix("code=")}, Origin=origin)
    assert answer.status == 200, answer
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-") and "; Secure" in cookie
    own = {"Cookie": cookie.partition(";")[0], "X_CSRF_Token": answer.json()["csrf_token"]}
    path = "/api/v1/workspaces/vision/operations/experiments.ensure"
    assert site.ask("POST", path, {"name": "by-page"}, Origin=origin, **own).status == 200
    assert site.ask("POST", path, {"name": "forged"}, Origin="https://evil.example", **own).status == 403


def test_names_of_other_sites_are_refused(site: Site) -> None:
    assert site.ask("GET", "/health", Host="evil.example").status == 421


def test_the_audit_log_has_the_addresses_of_clients(site: Site) -> None:
    path, token = "/api/v1/workspaces/vision/operations/experiments.ensure", f"Bearer {site.server.token}"
    # The test is the proxy here: it says for whom it asks.
    named = {"X-Forwarded-For": "203.0.113.1, 192.0.2.7", "X-Request-Id": "of-this-proxy"}
    assert site.server.request("POST", path, {"name": "known"}, headers=named).status == 200
    # nginx does not pass on what a client claims.
    claim = {"X_Forwarded_For": "192.0.2.9", "X_Request_Id": "through-nginx"}
    assert site.ask("POST", path, {"name": "known"}, Authorization=token, **claim).status == 200
    entries = site.server.request("GET", "/api/v1/audit").json()["entries"]
    addresses = {entry["request_id"]: entry["address"] for entry in entries}
    assert (addresses["of-this-proxy"], addresses["through-nginx"]) == ("192.0.2.7", "127.0.0.1")


def _read_until(stream: http.client.HTTPResponse, text: bytes) -> None:
    while line := stream.readline():
        if text in line:
            return
    raise AssertionError("the stream ended")

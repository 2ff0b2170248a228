"""Which names the server answers to, and which pages may change something."""

from __future__ import annotations

import socket

import pytest

from trainmaster.server.identity.hosts import comes_from_own_page, find_allowed_hosts


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8765",
        "LOCALHOST:1",
        "localhost.",
        "127.0.0.1:8765",
        "[::1]:8765",
        "192.168.1.7",
        "train.example.org",
        "train.example.org:443",
        "alias:80",
        socket.gethostname(),
    ],
)
def test_known_names(host: str) -> None:
    assert find_allowed_hosts("https://train.example.org/x", ["Alias"]).allows(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example.org",
        "train.example.org.evil.org",
        "eviltrain.example.org",
        "localhost.evil.org",
        "127.0.0.1.evil.org",
        "localhost@evil.org",
        "evil.org#localhost",
        "evil.org/localhost",
        "localhost, evil.org",
        "localhost:99999999",
        "localhost:x",
        "[::1",
        "0x7f000001.evil.org",
    ],
)
def test_unknown_names(host: str) -> None:
    assert not find_allowed_hosts("https://train.example.org").allows(host)


@pytest.mark.parametrize(
    ("origin", "site", "expected"),
    [
        ("http://localhost:8765", None, True),
        ("http://localhost:8765", "same-origin", True),
        (None, "same-origin", True),
        (None, None, False),
        ("null", None, False),
        ("http://localhost:8888", None, False),
        ("http://localhost", None, False),
        ("http://evil.example.org", None, False),
        ("http://localhost:8765.evil.org", None, False),
        ("http://localhost:8765", "same-site", False),
        ("http://localhost:8765", "cross-site", False),
        (None, "none", False),
        (None, "cross-site", False),
    ],
)
def test_pages(origin: str | None, site: str | None, expected: bool) -> None:
    assert comes_from_own_page("localhost:8765", origin, site) is expected

"""Where notifications may go, and what limits their delivery."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from trainmaster.dispatcher.notifications import commands, mail, webhooks
from trainmaster.dispatcher.notifications.addresses import DeliveryError, Reach, connect
from trainmaster.job.errors import UserErrorException

PRIVATE = [
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1"),
    # IPv4 in IPv6: mapped, NAT64, 6to4, Teredo.
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_server_reaches_no_private_address(address: str) -> None:
    assert not Reach(True).allows(address)
    assert Reach().allows(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_server_reaches_public_addresses(address: str) -> None:
    assert Reach(True).allows(address)


def test_an_administrator_allows_networks() -> None:
    reach = Reach(True, ("10.1.0.0/16", "::1/128"))
    assert reach.allows("10.1.2.3") and reach.allows("::1")
    assert not reach.allows("10.2.0.1") and not reach.allows("127.0.0.1")


def test_names_are_checked_by_what_they_stand_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(DeliveryError, match="is in a private network"):
            connect("localhost", port, Reach(True), 5)
        connect("localhost", port, Reach(True, ("127.0.0.0/8",)), 5).close()


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org", "http://", "http://a b/", "http://x:0/", "http://x:99999/", "file:///x"],
)
def test_addresses_that_are_no_webhooks(url: str) -> None:
    with pytest.raises(UserErrorException, match="must be a URL"):
        webhooks.check_url(url)


def test_a_webhook_has_no_password() -> None:
    with pytest.raises(UserErrorException, match="must not contain a password"):
        webhooks.check_url("https://ann:secret@example.org/")


def answer(listener: socket.socket, text: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n", "answered with status 302"),
        (b"HTTP/1.1 500 No\r\n\r\n", "answered with status 500"),
        (b"nonsense\r\n\r\n", "did not answer"),
        (b"", "did not answer"),
    ],
)
def test_answers_that_are_no_success(text: bytes, complaint: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener, text))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(DeliveryError, match=complaint):
            webhooks.send(webhooks.Post(url, b"{}", "id", 0), Reach())
        thread.join()


def test_a_receiver_that_never_ends_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(DeliveryError, match="did not answer"):
            webhooks.send(webhooks.Post(url, b"{}", "id", 0), Reach())


def test_a_command_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match=r"did not end within 0\.5 s"):
        asyncio.run(commands.send(f"sleep 600 & echo $! > {tmp_path}/pid; wait", {}, b"{}", seconds=0.5))
    pid = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(DeliveryError, match="the command ended with 3: no luck"):
        asyncio.run(commands.send("echo no luck >&2; exit 3", {}, b"{}"))
    asyncio.run(commands.send("exit 0", {}, b"x" * 1_000_000))


@pytest.mark.parametrize("text", ["", "ann", "ann@", "a@b.c\nBcc: x@y.z", "Ann <a@b.c>", ", ".join(["a@b.c"] * 21)])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UserErrorException, match="e-mail address"):
        mail.check_addresses(text)

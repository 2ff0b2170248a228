"""Hosts, the command lines that reach them, and errors of ssh."""

from __future__ import annotations

import pytest

from trainmaster.engines.remote.channel import Unreachable
from trainmaster.engines.remote.host import SshHost, command, hosts_of, split_address
from trainmaster.engines.remote.ssh_errors import explain
from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.shared.records import TargetRecord


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gpu1", ("", "gpu1", None)),
        ("me@gpu1", ("me", "gpu1", None)),
        ("me@gpu1:2222", ("me", "gpu1", 2222)),
        ("fe80::1", ("", "fe80::1", None)),
        ("me@[fe80::1]:2222", ("me", "fe80::1", 2222)),
        ("[fe80::1]", ("", "fe80::1", None)),
        ("domain\\me@gpu1", ("domain\\me", "gpu1", None)),
    ],
)
def test_split_address(text, parts):
    assert split_address(text) == parts


def test_hosts_of_a_target():
    options = {"hosts": ["a", "you@b:7"], "username": "me", "port": 2222, "private_key_file": "/k"}
    first, second = hosts_of(TargetRecord("t", "ssh", 2, 1, 0, options))
    assert (first.label, second.label) == ("me@a:2222", "you@b:7")
    assert first.folder == "~/.trainmaster"


def test_v1_machine():
    options = {"address": "10.0.0.7", "username": "me", "ssh_port": 22, "secret": "ssh-box"}
    (host,) = hosts_of(TargetRecord("box", "ssh", 1, 1, 0, options))
    assert (host.label, host.port, host.secret) == ("me@10.0.0.7", None, "ssh-box")


def test_host_keys_are_always_checked():
    for host in (SshHost("a"), SshHost("a", secret="s"), SshHost("a", "me", 2222, "/key", "/config")):
        words = command(host)
        assert "StrictHostKeyChecking=yes" in words
        assert not any("StrictHostKeyChecking=" in word for word in words if word != "StrictHostKeyChecking=yes")


def test_only_with_a_secret_may_ssh_ask():
    assert "BatchMode=yes" in command(SshHost("a"))
    assert "BatchMode=no" in command(SshHost("a", secret="s"))


def test_a_name_is_never_an_option():
    words = command(SshHost("-oProxyCommand=x"))
    assert words[words.index("--") + 1] == "-oProxyCommand=x"


def test_silence_is_noticed_in_time():
    words = command(SshHost("a"), silence=60)
    values = dict(word.split("=") for word in words if word.startswith(("ServerAlive", "ConnectTimeout")))
    assert int(values["ServerAliveInterval"]) * int(values["ServerAliveCountMax"]) <= 60
    assert int(values["ConnectTimeout"]) <= 60


@pytest.mark.parametrize(
    ("code", "said", "headline", "comes_back"),
    [
        (255, "ssh: connect to host a port 22: Connection timed out", "cannot be reached", True),
        (255, "ssh: connect to host a port 22: Connection refused", "cannot be reached", True),
        (255, "ssh: connect to host a port 22: No route to host", "cannot be reached", True),
        (255, "kex_exchange_identification: Connection closed by remote host", "cannot be reached", True),
        (255, "Timeout, server a not responding.", "cannot be reached", True),
        (255, "ssh: Could not resolve hostname a: Name or service not known", "name of host a is unknown", True),
        (255, "No ED25519 host key is known for a and you have requested strict checking.\r\nHost key verification "
              "failed.", "the key of host a is unknown", False),
        (255, "@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@\r\nHost key verification "
              "failed.", "the key of host a has changed", False),
        (255, "me@a: Permission denied (publickey,password).", "refuses the login", False),
        (255, "Received disconnect from a: Too many authentication failures", "refuses the login", False),
        (127, "bash: line 1: exec: python3: not found", "has no 'python3'", False),
        (127, "", "has no 'python3'", False),
        (1, "SyntaxError: invalid syntax", "the Python of host a cannot be used", False),
        (255, "", "was lost", True),
        (None, "something new", "was lost", True),
    ],
)  # fmt: skip
def test_explain(code, said, headline, comes_back):
    error = explain(SshHost("a"), code, said)
    assert headline in error.message.splitlines()[0]
    assert isinstance(error, Unreachable) is comes_back
    assert "@@" not in error.message


def test_hint_for_a_changed_key_names_the_port():
    said = "REMOTE HOST IDENTIFICATION HAS CHANGED!"
    assert "ssh-keygen -R [a]:2222" in explain(SshHost("a", port=2222), 255, said).message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hosts": []}, "hosts are missing"),
        ({"hosts": ["a", ""]}, "hosts are missing"),
        ({"hosts": ["a", "a"]}, "named twice"),
        ({"hosts": ["-oProxyCommand=x"]}, "cannot be the name"),
        ({"hosts": ["a;reboot"]}, "cannot be the name"),
        ({"hosts": ["a"], "python": "python3 -c 'x'"}, "cannot be the name"),
        ({"hosts": ["a"], "port": 0}, "port"),
        ({"hosts": ["a"], "private_key_file": "/no/such"}, "does not exist"),
        ({"hosts": ["a"], "shared_folder": "relative"}, "absolute"),
        ({"hosts": ["a"], "lost_after_seconds": 0.5}, "lost_after_seconds"),
    ],
)
def test_invalid_configurations(settings, message):
    with pytest.raises(ComputeTargetException, match=message):
        SshCompute.configuration(**settings)

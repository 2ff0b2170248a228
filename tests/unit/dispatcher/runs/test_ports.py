"""Ports for runs to meet at."""

from __future__ import annotations

import socket

from trainmaster.dispatcher.runs.ports import Ports


def test_no_two_runs_share_a_port():
    ports = Ports()
    taken = [ports.take(f"run-{number}", 50) for number in range(40)]
    every = [port for run in taken for port in run]
    assert len(set(every)) == len(every) == 2000


def test_a_port_in_use_is_not_given(monkeypatch):
    with socket.socket() as other:
        other.bind(("", 0))
        used = other.getsockname()[1]
        monkeypatch.setattr("trainmaster.dispatcher.runs.ports._FIRST", used)
        monkeypatch.setattr("trainmaster.dispatcher.runs.ports._LAST", used + 1)
        assert Ports().take("run", 1) == ()


def test_ports_come_back():
    ports = Ports()
    ports.note("old", tuple(range(20000, 32000)))
    assert ports.take("new", 1) == ()
    ports.release("old")
    assert len(ports.take("new", 1)) == 1

"""Colours and JSON."""

from __future__ import annotations

import io
import json
import math

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display import screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert screen.paint("x", "bold red", Terminal()) == "\x1b[1;31mx\x1b[0m"
    assert screen.paint("x", "bold red", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert screen.paint("x", "bold red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert screen.paint("x", "bold red", Terminal()) == "x"


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    screen.say_json([math.nan, math.inf, (1, 2.5), {"a": -math.inf}, True, None])

    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found == ["NaN", "Infinity", [1, 2.5], {"a": "-Infinity"}, True, None]


def test_an_error_says_what_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_error(UserErrorException("what", cause="why\nand more", hint="do this"))
    printed = capsys.readouterr()
    assert printed.err == "error: what\n  why\n  and more\n  do this\n"
    assert printed.out == ""

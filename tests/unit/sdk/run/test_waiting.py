"""Showing what logs gain."""

from __future__ import annotations

import io

import pytest

from trainmaster.sdk.run.waiting import show_now


def test_a_terminal_without_the_letter_shows_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    show_now("99 % \u2588 done\n")
    assert raw.getvalue() == b"99 % \\u2588 done\n"

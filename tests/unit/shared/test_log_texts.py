"""Reading a log on from where the last part ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmaster.shared.log_texts import LogPlace, read_last, read_text


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def append(log: Path, data: bytes) -> None:
    with open(log, "ab") as file:
        file.write(data)


def test_every_character_comes_once(log: Path) -> None:
    text, place = "", LogPlace()
    # Some characters have several bytes, and the parts end within them.
    data = "aä€😀\n".encode() * 3
    for position in range(len(data)):
        append(log, data[position : position + 1])
        part = read_text(log, place)
        text, place = text + part.text, part.next
    assert text == data.decode()
    assert read_text(log, place) == read_text(log, read_text(log, place).next)


def test_a_file_that_replaced_the_log_is_read_from_its_beginning(log: Path) -> None:
    append(log, b"old\n")
    place = read_text(log, LogPlace()).next
    log.rename(log.with_name("kept"))
    append(log, b"new and longer\n")
    assert read_text(log, place).text == "new and longer\n"


def test_a_log_that_was_cut_is_read_from_its_beginning(log: Path) -> None:
    append(log, b"old and long\n")
    place = read_text(log, LogPlace()).next
    os.truncate(log, 0)
    append(log, b"new\n")
    assert read_text(log, place).text == "new\n"


@pytest.mark.parametrize("place", [LogPlace("1", -5), LogPlace("1", 10**18), LogPlace("x", 3)])
def test_a_place_that_is_not_in_the_log(log: Path, place: LogPlace) -> None:
    append(log, b"text")
    assert read_text(log, place).text == "text"


def test_a_missing_log_is_empty(log: Path) -> None:
    assert read_text(log, LogPlace("1", 2)).next == LogPlace("1", 2)
    assert read_last(log, 10).text == ""
    assert read_text(log / "below", LogPlace()).text == ""


@pytest.mark.parametrize(("count", "text"), [(0, ""), (1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")])
def test_the_last_lines(log: Path, count: int, text: str) -> None:
    append(log, b"a\nb\nc\n")
    found = read_last(log, count)
    assert found.text == text
    append(log, b"d\n")
    assert read_text(log, found.next).text == "d\n"

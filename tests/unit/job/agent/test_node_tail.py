"""The last lines of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.job.agent.tail import BYTES, LINES, last_lines, tail


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        (b"\n", ""),
        (b"one", "one"),
        (b"one\ntwo\n", "one\ntwo"),
        (b"one\n\ntwo\n\n", "one\n\ntwo\n"),
        (b"windows\r\nlines\r\n", "windows\nlines"),
        (b" 10%\r 50%\r100%\ndone\n", "100%\ndone"),
        (b"caf\xc3\xa9 \xff\n", "café \ufffd"),
        (b"zero\0byte", "zero\ufffdbyte"),
    ],
)
def test_what_is_shown(data: bytes, shown: str) -> None:
    assert last_lines(data, cut=False) == shown


def test_no_more_than_forty_lines() -> None:
    lines = [str(number) for number in range(100)]
    for end in ("", "\n"):
        assert last_lines(("\n".join(lines) + end).encode(), cut=False).split("\n") == lines[-LINES:]


def test_no_more_than_eight_kilobytes_and_whole_lines() -> None:
    shown = last_lines(b"\n".join(b"%02d" % number + b"x" * 1000 for number in range(40)), cut=False)
    assert len(shown.encode()) <= BYTES
    assert [line[:2] for line in shown.split("\n")] == ["32", "33", "34", "35", "36", "37", "38", "39"]
    # What is not text at all becomes three times as long when it is made text.
    assert len(last_lines(b"\xff" * 60000, cut=True).encode()) <= BYTES
    assert len(last_lines("é".encode() * 30000, cut=False).encode()) <= BYTES


def test_a_line_that_was_cut_is_left_out() -> None:
    assert last_lines(b"f a line\nwhole\n", cut=True) == "whole"
    assert last_lines(b"only the end of a long line", cut=True) == "only the end of a long line"


def test_a_sparse_terabyte(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with open(path, "wb") as file:
        try:
            file.truncate(1 << 40)
        except OSError:
            file.truncate(1 << 30)
    with open(path, "ab") as file:
        file.write(b"\nthe end\n")
    assert tail(str(path)) == "the end"


def test_no_log_at_all(tmp_path: Path) -> None:
    assert tail(str(tmp_path / "none")) == ""

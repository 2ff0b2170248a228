"""Searching a log on the server: in parts, with line numbers, whatever the blocks it is read in."""

from __future__ import annotations

import pytest

from trainmaster.server.files import log_search
from trainmaster.server.files.log_search import LogMatches, search_log


def search(data: bytes, text: str, start: int = 0, limit: int = 100) -> LogMatches:
    return search_log(lambda at, size: data[at : at + size], "7", len(data), text, start, limit)


def test_lines_are_found_with_their_offsets_and_numbers() -> None:
    data = b"one\nLoss: 1\ntwo loss, loss\nthree\nlast LOSS"
    found = search(data, "loss")
    assert [(match.offset, match.line, match.text) for match in found.matches] == [
        (4, 1, "Loss: 1"),
        (12, 2, "two loss, loss"),
        (33, 4, "last LOSS"),
    ]
    assert (found.next, found.lines) == (None, 4)


def test_a_search_continues_where_the_limit_has_ended_it() -> None:
    data = b"".join(b"line %d\n" % number for number in range(100))
    first = search(data, "line", limit=30)
    assert (len(first.matches), first.lines) == (30, 30)
    assert first.next is not None
    rest = search(data, "line", first.next)
    assert [match.text for match in (*first.matches, *rest.matches)] == [f"line {number}" for number in range(100)]
    assert rest.matches[0].line == 0


def test_blocks_and_parts_tear_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "_BLOCK", 7)
    monkeypatch.setattr(log_search, "MOST_BYTES", 50)
    monkeypatch.setattr(log_search, "_LONGEST_LINE", 40)
    data = "".join(f"größe {number}\n" for number in range(50)).encode()
    found, lines = [], 0
    start: int | None = 0
    while start is not None:
        part = search(data, "größe", start)
        found += [(lines + match.line, match.text) for match in part.matches]
        lines += part.lines
        start = part.next
    assert found == [(number, f"größe {number}") for number in range(50)]


def test_colours_within_a_word_and_overwritten_texts_do_not_disturb() -> None:
    data = b"a\n\x1b[31mlo\x1b[0mss\n10%\r100% loss\nx\n"
    assert [(match.offset, match.line, match.text) for match in search(data, "loss").matches] == [
        (2, 1, "loss"),
        (16, 2, "100% loss"),
    ]


def test_a_line_without_an_end_is_searched_too() -> None:
    data = b"\0" * 200_000 + b"needle" + b"\0" * 200_000
    assert len(search(data, "needle").matches) == 1

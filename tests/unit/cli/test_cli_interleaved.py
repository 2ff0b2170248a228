"""Lines of several ranks in one text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.cli.interleaved import Interleaved
from trainmaster.dispatcher.runs.attempts import set_logs_apart
from trainmaster.sdk.backend.local.run_files import LocalRunFiles
from trainmaster.sdk.run.logs import LogReader, RunTexts, driver_logs, rank_logs
from trainmaster.shared.folders import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.logs.mkdir(parents=True)
    return made


def write(folder: RunFolder, rank: int, text: str) -> None:
    with open(folder.logs / f"70_driver_log_{rank}.txt", "a", newline="") as file:
        file.write(text)


class Screen:
    """What an `Interleaved` has shown since it was last asked."""

    def __init__(self, folder: RunFolder, *names: str) -> None:
        self.reader = Interleaved(LocalRunFiles(folder), names)

    def new(self) -> str:
        parts: list[str] = []
        self.reader.show(parts.append)
        return "".join(parts)

    def last(self) -> str:
        parts: list[str] = []
        self.reader.finish(parts.append)
        return "".join(parts)


def test_lines_are_never_cut(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0", "rank 1")
    write(folder, 0, "one\ntw")
    write(folder, 1, "ei")
    assert screen.new() == "[rank 0] one\n"
    write(folder, 0, "o\n\nfour")
    write(folder, 1, "ns\n")
    assert screen.new() == "[rank 0] two\n[rank 0] \n[rank 1] eins\n"
    assert screen.new() == ""
    assert screen.last() == "[rank 0] four\n"
    assert screen.last() == ""


def test_a_rank_may_come_late(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0", "rank 1")
    write(folder, 0, "first\n")
    assert screen.new() == "[rank 0] first\n"
    write(folder, 1, "late\n")
    assert screen.new() == "[rank 1] late\n"


def test_a_run_that_has_printed_nothing(tmp_path: Path) -> None:
    screen = Screen(RunFolder(tmp_path / "none"), "rank 0")
    assert screen.new() == screen.last() == ""


def test_names_are_aligned(folder: RunFolder) -> None:
    screen = Screen(folder, "worker 0", "worker 10", "ps 0")
    for rank in range(4):
        write(folder, rank, f"{rank}\n")
    assert screen.new() == "[worker  0] 0\n[worker 10] 1\n[ps      0] 2\n[rank    3] 3\n"


def test_ranks_are_in_the_order_of_their_numbers(folder: RunFolder) -> None:
    for rank in (10, 2, 0):
        write(folder, rank, f"{rank}\n")
    assert list(driver_logs(LocalRunFiles(folder).logs())) == [0, 2, 10]


def test_a_line_written_over_again_is_shown_as_it_ended(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0")
    write(folder, 0, "10%\r50%\r")
    assert screen.new() == ""
    write(folder, 0, "100%\ndone\r\n")
    assert screen.new() == "[rank 0] 100%\n[rank 0] done\n"


def test_letters_are_not_cut(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0")
    path = folder.logs / "70_driver_log_0.txt"
    path.write_bytes("größe\n".encode()[:3])
    assert screen.new() == ""
    path.write_bytes("größe\n".encode())
    assert screen.new() == "[rank 0] größe\n"


def test_a_line_without_end_does_not_fill_the_memory(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0")
    write(folder, 0, "x" * (3 << 20))
    shown = screen.new()
    assert len(shown) > 1 << 20 and shown.startswith("[rank 0] x") and shown.endswith("x\n")


def test_a_large_log_comes_whole_and_in_order(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0")
    lines = [f"{number} {'y' * 500}" for number in range(10_000)]
    write(folder, 0, "\n".join(lines))
    assert screen.last() == "".join(f"[rank 0] {line}\n" for line in lines)


def test_colours_only_where_they_are_wanted(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    write(folder, 0, "zero\n")
    write(folder, 1, "one\n")
    parts: list[str] = []
    Interleaved(LocalRunFiles(folder), ("rank 0", "rank 1"), Terminal()).show(parts.append)  # type: ignore[arg-type]
    assert parts == ["\x1b[36m[rank 0]\x1b[0m zero\n", "\x1b[33m[rank 1]\x1b[0m one\n"]


def test_a_log_that_was_emptied_is_read_from_its_beginning(folder: RunFolder) -> None:
    write(folder, 0, "the first text, longer\n")
    parts: list[str] = []
    reader = LogReader(LocalRunFiles(folder), 0, headings=False)
    reader.show(parts.append)
    (folder.logs / "70_driver_log_0.txt").write_text("short\n")
    reader.show(parts.append)
    assert parts == ["the first text, longer\n", "short\n"]


def test_another_attempt_does_not_go_on_in_the_line_of_the_one_before(folder: RunFolder) -> None:
    screen = Screen(folder, "rank 0")
    write(folder, 0, "it fails in the mid")
    assert screen.new() == ""
    set_logs_apart(folder, "attempt 1 of 2 failed")
    write(folder, 0, "once more\n")
    lines = ["it fails in the mid", "attempt 1 of 2 failed", "once more"]
    assert screen.new() == "".join(f"[rank 0] {line}\n" for line in lines)


def test_the_rest_of_a_failed_attempt_is_not_missed(folder: RunFolder) -> None:
    write(folder, 1, "begins\n")
    parts: list[str] = []
    reader = LogReader(LocalRunFiles(folder), 1, headings=False)
    reader.show(parts.append)
    write(folder, 1, "last words")
    set_logs_apart(folder, "attempt 1 of 3 failed")
    write(folder, 1, "never seen while it lasted\n")
    set_logs_apart(replace(folder, attempt=2), "attempt 2 of 3 failed")
    write(folder, 1, "works\n")
    reader.finish(parts.append)
    lines = ["begins", "last words", "attempt 1 of 3 failed", "never seen while it lasted", "attempt 2 of 3 failed"]
    assert "".join(parts).splitlines() == [*lines, "works"]
    again: list[str] = []
    LogReader(LocalRunFiles(folder), 1, headings=False).show(again.append)
    assert "".join(again) == "".join(parts)
    assert {rank: log.name for rank, log in driver_logs(LocalRunFiles(folder).logs()).items()} == {
        1: "70_driver_log_1.txt"
    }


def test_one_rank_is_read_as_before(folder: RunFolder) -> None:
    write(folder, 0, "zero")
    write(folder, 1, "one")
    parts: list[str] = []
    reader = LogReader(LocalRunFiles(folder), 1, headings=False)
    reader.show(parts.append)
    write(folder, 1, " and more")
    reader.finish(parts.append)
    assert parts == ["one", " and more"]


def test_a_log_that_moves_while_the_logs_are_listed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt has begun before the list is gone through: its text comes behind that of the first."""
    write(folder, 0, "the first\n")
    list_names = LocalRunFiles._log_names

    def list_and_move(files: LocalRunFiles) -> list[str]:
        monkeypatch.setattr(LocalRunFiles, "_log_names", list_names)
        found = list_names(files)
        set_logs_apart(folder, "attempt 1 of 2 failed")
        write(folder, 0, "the second\n")
        return found

    parts: list[str] = []
    monkeypatch.setattr(LocalRunFiles, "_log_names", list_and_move)
    reader = LogReader(LocalRunFiles(folder), 0, headings=False)
    for _ in range(2):
        reader.show(parts.append)
    assert "".join(parts) == "the first\nattempt 1 of 2 failed\nthe second\n"


def test_a_log_that_moves_just_before_it_is_read(folder: RunFolder) -> None:
    write(folder, 0, "the first\n")
    ((log, text),) = RunTexts(LocalRunFiles(folder)).find(rank_logs)
    set_logs_apart(folder, "attempt 1 of 2 failed")
    write(folder, 0, "the second\n")
    assert "".join(text.read_new(log)) == ""

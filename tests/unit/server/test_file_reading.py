"""Ranges, masked logs, growing files and feeds: what the routes of files are made of."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from trainmaster.sdk.backend.backend import JOURNALS, LOGS, RunNews
from trainmaster.server.feeds.run_feeds import Patience, RunFeeds
from trainmaster.server.files.log_text import cut_text, list_logs, list_sequence, read_masked
from trainmaster.server.files.opening import NotBeneathError, split_name, split_new_name
from trainmaster.server.files.previews import choose_kind, show_rows
from trainmaster.server.files.ranges import Span, UnsatisfiableRangeError, parse_content_range, parse_range
from trainmaster.server.files.run_place import AppendConflictError, AppendGapError, RunPlace, append_at
from trainmaster.server.files.sending import Event, EventStream, FileAnswer, FileFacts, send_in_time
from trainmaster.server.routes.logs import _Follower
from trainmaster.server.stopping import Stopping
from trainmaster.shared.redaction import Mask


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None),
        ("", None),
        ("bytes=0-0", Span(0, 1)),
        ("bytes=0-", Span(0, 100)),
        ("bytes=99-", Span(99, 100)),
        ("bytes=0-1000", Span(0, 100)),
        ("bytes=-1", Span(99, 100)),
        ("bytes=-1000", Span(0, 100)),
        ("Bytes=5-6", Span(5, 7)),
        (" bytes=5-6 ", Span(5, 7)),
        ("bytes=6-5", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("bytes=1-2,3-4", None),
        ("items=0-1", None),
        ("bytes=٣-٤", Span(3, 5)),
        ("bytes=9999999999999999999999-", None),
    ],
)
def test_ranges(header: str | None, found: Span | None) -> None:
    assert parse_range(header, 100) == found


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_ranges_behind_the_end(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_range(header, 100)


@pytest.mark.parametrize("header", ["", "bytes 0-0", "bytes 5-4/10", "bytes 0-10/10", "bytes */10", "bytes 0-9/*"])
def test_parts_of_uploads_that_make_no_sense(header: str) -> None:
    assert parse_content_range(header) is None


def test_a_part_of_another_state_of_a_file_is_not_sent() -> None:
    facts = FileFacts("a", 10, 1.0, "7")

    def status(**headers: str) -> int:
        found = {name.replace("_", "-"): value for name, value in headers.items()}
        return FileAnswer(facts, lambda start, size: b"", lambda: None, found).status_code

    assert status(range="bytes=1-2", if_match=facts.etag) == 206
    assert status(range="bytes=1-2", if_match='"other"') == 412
    assert status(range="bytes=1-2", if_range='"other"') == 200
    # A log only grows, so a client may go on with it.
    assert FileFacts("a", 10, 1.0, "7", grows=True).etag == FileFacts("a", 20, 2.0, "7", grows=True).etag


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "a/../b", "a\0b", "x" * 300, "\udcff"]
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(NotBeneathError):
        split_name(name)


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\x7f", "\r"])
def test_names_that_no_new_file_gets(name: str) -> None:
    split_name(name)
    with pytest.raises(NotBeneathError):
        split_new_name(name)


@given(st.text(), st.lists(st.integers(1, 20)))
def test_a_text_in_pieces_has_the_same_characters(text: str, sizes: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass")
    whole, start, sent = data.decode("utf-8", "replace"), 0, ""
    for size in [*sizes, len(data) + 1]:
        piece = data[start : start + size]
        cut = cut_text(piece, is_last=start + len(piece) == len(data))
        sent += cut.decode("utf-8", "replace")
        start += len(cut)
    if start == len(data):
        assert sent == whole


@given(st.lists(st.sampled_from(["hunter22", "hunt", "er22", "x", "\n", "22"])), st.integers(1, 9), st.integers(0, 40))
def test_a_masked_log_is_the_same_whatever_parts_are_read(words: list[str], size: int, start: int) -> None:
    mask = Mask(["hunter22"])
    data = "".join([*words, "....."]).encode()
    handle = os.memfd_create("log")
    try:
        os.write(handle, data)
        read = b""
        while part := read_masked(handle, start + len(read), size, lambda: mask):
            read += part
        assert read == mask.hide(data)[start:]
    finally:
        os.close(handle)


def test_the_beginning_of_a_secret_at_the_end_of_a_log_is_hidden() -> None:
    handle = os.memfd_create("log")
    try:
        os.write(handle, b"it is hunter")
        assert read_masked(handle, 0, 100, lambda: Mask(["hunter22"])) == b"it is ******"
    finally:
        os.close(handle)


@given(st.binary(max_size=200), st.data())
def test_a_file_grows_exactly_whatever_is_repeated_or_lost(content: bytes, data: Any) -> None:
    """Clients repeat what they do not know to have arrived; a killed server leaves any part of a write."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        handle = os.open(folder, os.O_RDONLY)
        path, known = Path(folder, "journal"), 0
        try:
            while known < len(content):
                end = data.draw(st.integers(known + 1, len(content)))
                start = data.draw(st.integers(0, known))
                if data.draw(st.booleans()):
                    # Killed in the middle: a part of it is there, and nobody got an answer.
                    size = path.stat().st_size if path.exists() else 0
                    torn = data.draw(st.integers(0, max(0, end - size)))
                    with open(path, "ab") as file:
                        file.write(content[size : size + torn])
                known = append_at(handle, "journal", start, content[start:end])
                assert path.read_bytes() == content[:known]
            with pytest.raises(AppendGapError):
                append_at(handle, "journal", len(content) + 1, b"x")
            if content:
                with pytest.raises(AppendConflictError):
                    append_at(handle, "journal", 0, bytes([content[0] ^ 1]))
        finally:
            os.close(handle)


# Following


@pytest.fixture
def place(tmp_path: Path) -> RunPlace:
    found = RunPlace(os.path.realpath(tmp_path), "run")
    (Path(found.path) / "files" / "azureml-logs").mkdir(parents=True)
    return found


def drain(follower: _Follower, has_ended: bool) -> list[Any]:
    async def read() -> list[Any]:
        return [event async for event in follower.read_new(has_ended)]

    return asyncio.run(read())


def test_a_log_is_followed_while_it_grows_moves_and_clients_reconnect(place: RunPlace) -> None:
    logs = Path(place.path) / "files" / "azureml-logs"
    current = logs / "70_driver_log.txt"
    follower = _Follower(place, "70_driver_log.txt", None, None)
    text, last_id, expected = "", "", ""
    # No log yet.
    assert drain(follower, has_ended=False) == []
    for attempt in (1, 2, 3):
        for step in range(4):
            with open(current, "a", encoding="utf-8") as file:
                file.write(f"attempt {attempt} step {step} äöü€\n")
            expected += f"attempt {attempt} step {step} äöü€\n"
            if step == 2:
                # A part of a character is there: the client gets it when it is whole.
                with open(current, "ab") as half:
                    half.write("ß".encode()[:1])
            events = drain(follower, has_ended=False)
            text += "".join(event.data["text"] for event in events if event.kind == "text")
            last_id = events[-1].id if events else last_id
            if step == 2:
                with open(current, "ab") as half:
                    half.write("ß".encode()[1:])
                expected += "ß"
            if step % 2:
                identity, _, offset = last_id.partition(":")
                follower = _Follower(place, "70_driver_log.txt", (identity, int(offset)), None)
        (logs / f"attempt_{attempt}").mkdir()
        current.rename(logs / f"attempt_{attempt}" / current.name)
    events = drain(follower, has_ended=True)
    text += "".join(event.data["text"] for event in events if event.kind == "text")
    assert text == expected
    assert drain(follower, has_ended=True) == []
    whole = drain(_Follower(place, "70_driver_log.txt", None, None), has_ended=True)
    assert "".join(event.data["text"] for event in whole if event.kind == "text") == expected
    assert [event.data["attempt"] for event in whole if event.kind == "log"] == [1, 2, 3]


def test_logs_of_one_name_follow_each_other(place: RunPlace) -> None:
    logs = Path(place.path) / "files" / "azureml-logs"
    for name in ("70_driver_log_1.txt", "attempt_10/70_driver_log_1.txt", "attempt_9/70_driver_log_1.txt", "55_x.txt"):
        (logs / name).parent.mkdir(exist_ok=True)
        (logs / name).write_text(name)
    found = list_logs(place)
    assert [log.name for log in list_sequence(found, "70_driver_log_1.txt")] == [
        "attempt_9/70_driver_log_1.txt",
        "attempt_10/70_driver_log_1.txt",
        "70_driver_log_1.txt",
    ]
    assert [log.rank for log in found] == [None, 1, 1, 1]
    alone = list_sequence(found, "attempt_9/70_driver_log_1.txt")
    assert [log.name for log in alone] == ["attempt_9/70_driver_log_1.txt"]


class OneRun:
    """States that a test gives."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[RunNews] = asyncio.Queue()
        self.watched = 0

    async def watch(self, run_id: str) -> AsyncIterator[RunNews]:
        self.watched += 1
        while True:
            news = await self.queue.get()
            yield news
            if news["ended"]:
                return


def test_all_who_follow_a_run_share_its_watch(place: RunPlace) -> None:
    async def follow() -> None:
        states, feeds, stopping = OneRun(), RunFeeds(), Stopping()
        with feeds.follow(place.folder, states) as first, feeds.follow(place.folder, states) as second:
            assert first is second
            patience = Patience(stopping, 60.0)
            await states.queue.put({"run_id": "run", "status": "Running", "ended": False})
            assert await first.wait(lambda: bool(first.states_since(0)[0]), patience)
            kinds = frozenset({LOGS, JOURNALS})
            seen = first.version(kinds)
            (place.folder.logs / "new.txt").write_text("x")
            assert await first.wait(lambda: first.version(kinds) != seen, patience)
            # A folder that appears later is watched too.
            seen = first.version(kinds)
            place.folder.journals.mkdir()
            (place.folder.journals / "a.jsonl").write_text("x")
            assert await first.wait(lambda: first.version(kinds) != seen, patience)
            await states.queue.put({"run_id": "run", "status": "Completed", "ended": True})
            assert await first.wait(lambda: first.has_ended, patience)
            # The end of the server ends every wait.
            stopping.announce()
            assert not await first.wait(lambda: False, patience)
        assert (states.watched, len(feeds)) == (1, 0)
        feeds.close()

    asyncio.run(follow())


def test_a_watch_that_fails_says_so_to_its_clients(place: RunPlace) -> None:
    class Broken:
        async def watch(self, run_id: str) -> AsyncIterator[RunNews]:
            raise LookupError("no such run")
            yield

    async def follow() -> None:
        feeds = RunFeeds()
        with feeds.follow(place.folder, Broken()) as feed, pytest.raises(LookupError):
            await feed.wait(lambda: False, Patience(Stopping(), 60.0))
        feeds.close()

    asyncio.run(follow())


# Sending


async def nothing_comes() -> AsyncGenerator[Event]:
    await asyncio.Event().wait()
    yield Event("never", None)


async def stay_connected() -> Any:
    await asyncio.Event().wait()


def test_a_silent_stream_says_that_it_is_there() -> None:
    async def run() -> None:
        sent: asyncio.Queue[Any] = asyncio.Queue()
        stream = EventStream(nothing_comes(), heartbeat_seconds=0.01)
        task = asyncio.create_task(stream({"type": "http", "method": "GET"}, stay_connected, sent.put))
        assert (await sent.get())["type"] == "http.response.start"
        for _ in range(3):
            assert (await sent.get())["body"].startswith(b": ")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_a_client_that_takes_nothing_is_dropped() -> None:
    async def take_nothing(message: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        with pytest.raises(ClientDisconnect):
            await send_in_time(take_nothing, {"type": "http.response.body", "body": b"x"}, seconds=0.01)

    asyncio.run(run())


def test_a_stream_ends_with_the_client() -> None:
    async def leave() -> Any:
        return {"type": "http.disconnect"}

    async def take(message: Any) -> None:
        return None

    # Returns, although no event ever comes.
    asyncio.run(EventStream(nothing_comes())({"type": "http", "method": "GET"}, leave, take))


# Previews


def test_previews() -> None:
    assert choose_kind("a.csv", b"x,y\n") == "csv"
    assert choose_kind("a.CSV", b"\0\1") == "none"
    assert choose_kind("a.txt", b"GIF89a") == "image"
    assert choose_kind("a.svg", b"<svg/>") == "text"
    shown = show_rows("a.tsv", b"x\ty\n1\t2\n3\t", 1000, 10)
    assert (shown["rows"], shown["is_all"]) == ([["x", "y"], ["1", "2"]], False)
    assert show_rows("a.csv", b'x,"' + b"y" * 200_000, 300_000, 10)["kind"] == "csv"

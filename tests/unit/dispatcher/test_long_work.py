"""Work that clients start and follow by one request: it runs once, its log is whole, and its result is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.activity import Activity
from trainmaster.dispatcher.long_work import LongWork
from trainmaster.job.errors import EnvironmentException, UserErrorException
from trainmaster.shared.log_texts import LogPlace

BEGINNING = LogPlace()


class Work:
    """Work that writes lines to a log when it is told to."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.starts = 0
        self.may_end = asyncio.Event()
        self.fails = False

    async def __call__(self) -> str:
        self.starts += 1
        self.say("began\n")
        await self.may_end.wait()
        self.say("ended\n")
        if self.fails:
            raise EnvironmentException("it cannot be built")
        return "done"

    def say(self, text: str) -> None:
        with open(self.log, "ab") as file:
            file.write(text.encode())


def run(tmp_path: Path, test: Callable[[LongWork, Work], Awaitable[None]]) -> None:
    async def go() -> None:
        work = LongWork(Activity())
        try:
            async with asyncio.timeout(30):
                await test(work, Work(tmp_path / "log"))
        finally:
            await work.close()

    asyncio.run(go())


async def follow(work: LongWork, one: Work, place: LogPlace = BEGINNING, seconds: float = 20.0) -> Any:
    return await work.follow("key", one, one.log, place, seconds)


def test_the_log_comes_as_it_grows_and_then_the_result(tmp_path: Path) -> None:
    async def test(work: LongWork, one: Work) -> None:
        first = await follow(work, one)
        assert (first.done, first.log.text) == (False, "began\n")
        one.may_end.set()
        second = await follow(work, one, first.log.next)
        assert (second.done, second.log.text) == (False, "ended\n")
        for _ in range(2):
            # A client whose connection was lost asks again.
            last = await follow(work, one, second.log.next)
            assert (last.done, last.result, last.error) == (True, "done", None)
        assert one.starts == 1

    run(tmp_path, test)


def test_without_news_it_answers_in_time(tmp_path: Path) -> None:
    async def test(work: LongWork, one: Work) -> None:
        place = (await follow(work, one)).log.next
        assert not (await follow(work, one, place, seconds=0.0)).done

    run(tmp_path, test)


def test_an_error_comes_after_the_whole_log(tmp_path: Path) -> None:
    async def test(work: LongWork, one: Work) -> None:
        one.fails = True
        one.may_end.set()
        text, place = "", LogPlace()
        while not (news := await follow(work, one, place)).done:
            text, place = text + news.log.text, news.log.next
        assert text == "began\nended\n"
        assert news.error is not None and news.error["headline"] == "it cannot be built"

    run(tmp_path, test)


def test_two_clients_follow_the_same_work(tmp_path: Path) -> None:
    async def test(work: LongWork, one: Work) -> None:
        first, second = await asyncio.gather(follow(work, one), follow(work, one))
        assert first.log.text == second.log.text == "began\n"
        assert one.starts == 1

    run(tmp_path, test)


@pytest.mark.parametrize("key", ["", "x" * 65])
def test_a_key_is_needed(tmp_path: Path, key: str) -> None:
    async def test(work: LongWork, one: Work) -> None:
        with pytest.raises(UserErrorException, match="needs a key"):
            await work.follow(key, one, one.log, LogPlace(), 1.0)

    run(tmp_path, test)


def test_work_keeps_the_dispatcher_busy(tmp_path: Path) -> None:
    async def test(work: LongWork, one: Work) -> None:
        place = (await follow(work, one)).log.next
        assert work._activity.is_busy
        one.may_end.set()
        await follow(work, one, place)
        assert not work._activity.is_busy

    run(tmp_path, test)

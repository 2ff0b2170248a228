"""Retrying with growing pauses."""

from __future__ import annotations

import asyncio

import pytest

from trainmaster.shared.retry import Backoff, retry


class Work:
    """Fails as often as told, then returns its number of calls."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


def brief() -> Backoff:
    return Backoff(first=0.001, longest=0.002)


def test_work_is_repeated_until_it_succeeds_and_each_error_is_reported() -> None:
    heard: list[str] = []
    work = Work(OSError("one"), OSError("two"))
    result = asyncio.run(retry(work, OSError, backoff=brief(), on_error=lambda error: heard.append(str(error))))
    assert (result, heard) == (3, ["one", "two"])


def test_another_error_is_raised_at_once() -> None:
    work = Work(OSError("passes"), ValueError("stays"))
    with pytest.raises(ValueError, match="stays"):
        asyncio.run(retry(work, OSError, backoff=brief()))
    assert work.calls == 2


def test_the_caller_can_decide_by_the_error() -> None:
    work = Work(OSError(11, "passes"), OSError(5, "stays"))
    with pytest.raises(OSError, match="stays"):
        asyncio.run(retry(work, OSError, backoff=brief(), should_retry=lambda error: error.errno == 11))
    assert work.calls == 2


def test_when_the_time_is_up_the_last_error_is_raised() -> None:
    work = Work(OSError("once"), OSError("twice"))
    with pytest.raises(OSError, match="once"):
        asyncio.run(retry(work, OSError, backoff=brief(), seconds=-1.0))
    assert work.calls == 1


def test_a_factor_of_its_own() -> None:
    backoff = Backoff(first=1.0, longest=3.0, factor=1.5)
    assert [backoff.next_pause() for _ in range(4)] == [1.0, 1.5, 2.25, 3.0]

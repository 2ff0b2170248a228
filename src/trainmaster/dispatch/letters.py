"""Letters: what scripts on other machines ask, whose processes cannot reach the socket (docs/on-disk.md).

An engine passes each on as it finds it, as often as it finds it: operations may be repeated, and one that is being
answered is not begun again. A letter speaks for its run alone, and may ask only what jobs ask.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trainmaster.engines import Letter
from trainmaster.errors import AzureMLException, UserErrorException

log = logging.getLogger("trainmaster.dispatch")

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]

_ALLOWED = frozenset(
    {
        "secrets.fetch",
        "datasets.locate",
        "models.delete",
        "models.get",
        "models.keep",
        "models.list",
        "models.locate",
        "models.refer",
        "models.relabel",
        "models.update",
    }
)


class Letters:
    """Answers letters, each once at a time."""

    def __init__(self) -> None:
        self._call: Call = _nobody
        self._error_of: Callable[[Exception], dict[str, Any]] = lambda error: {}
        self._answering: dict[tuple[str, str], asyncio.Task[None]] = {}

    def answer_with(self, call: Call, error_of: Callable[[Exception], dict[str, Any]]) -> None:
        """From here on `call` does what is asked, and `error_of` says how it is told what went wrong."""
        self._call, self._error_of = call, error_of

    def received(self, letter: Letter) -> None:
        """Begins to answer, unless it does so already."""
        key = letter.run_id, letter.name
        if key in self._answering:
            return
        task = self._answering[key] = asyncio.get_running_loop().create_task(self._answer(letter))
        task.add_done_callback(lambda _: self._answering.pop(key, None))

    async def close(self) -> None:
        """The next dispatcher is asked again."""
        tasks = list(self._answering.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, letter: Letter) -> None:
        try:
            reply: dict[str, Any] = {"result": await self._result(letter)}
        except Exception as error:
            if not isinstance(error, AzureMLException):
                # Not what was asked: there may be a secret in it.
                log.exception("a letter of run %s", letter.run_id)
            reply = {"error": self._error_of(error)}
        try:
            await letter.answer(json.dumps(reply).encode("ascii"))
        except (AzureMLException, OSError) as error:
            # The letter is still there, and is passed on again.
            log.warning("run %s: an answer did not arrive: %s", letter.run_id, error)

    async def _result(self, letter: Letter) -> Any:
        op, args = _read(letter)
        if op == "secrets.fetch":
            args = {**args, "run_id": letter.run_id}
        return await self._call(op, args)


async def _nobody(op: str, args: Mapping[str, Any]) -> Any:
    raise AssertionError("a letter before there is a service to ask")


def _read(letter: Letter) -> tuple[str, dict[str, Any]]:
    """What a letter asks, if jobs may ask it."""
    try:
        request = json.loads(letter.text)
        op, args = request["op"], dict(request["args"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserErrorException("the letter cannot be read", cause=str(error)) from None
    if op not in _ALLOWED:
        raise UserErrorException(f"a job on another machine cannot ask for {str(op)[:60]!r}")
    return op, args

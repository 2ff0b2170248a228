"""In which thread `run` is called, and when a batch is full.

v1 called `init` and `run` in one thread, one request after the other, and scripts rely on that. While `run` is slow,
the script has the main thread and the event loop runs in another one. While `run` is fast, both share the main thread,
because passing each request to another thread would take longer than the model.
"""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Awaitable, Callable, List, Optional, Tuple

from .answering import Answer, Request
from .pace import Pace

Call = Callable[[Callable[[Any], Any], Any], Any]
_Task = Tuple["asyncio.Future[Any]", Callable[[Any], Any], Any]


class Threads:
    """Calls functions in `count` threads."""

    now: Optional[Call] = None

    def __init__(self, count: int) -> None:
        self._queue: "SimpleQueue[_Task]" = SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._work, name="run-{}".format(number), daemon=True).start()

    def submit(self, function: Callable[[Any], Any], argument: Any) -> "asyncio.Future[Any]":
        """Schedule a call; return a future of the running event loop."""
        future: "asyncio.Future[Any]" = asyncio.get_running_loop().create_future()
        self._queue.put((future, function, argument))
        return future

    def _work(self) -> None:
        while True:
            _do(self._queue.get())


class MainThread:
    """Calls functions only in the main thread, which runs `serve`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: "SimpleQueue[Optional[_Task]]" = SimpleQueue()
        self._pace = Pace()
        self._ended = False
        self.now: Optional[Call] = None
        """Calls directly, without `submit`; set only while the event loop runs in the main thread."""

    def serve(self) -> None:
        """Run the event loop, in parallel with the calls or between them, until `end`."""
        while not self._ended:
            if self._pace.is_direct:
                self._loop_between_calls()
            else:
                self._loop_beside_calls()

    def end(self) -> None:
        """Make `serve` return. Must be called in the event loop."""
        self._ended = True
        self._queue.put(None)
        if self.now is not None:
            self._loop.stop()

    def submit(self, function: Callable[[Any], Any], argument: Any) -> "asyncio.Future[Any]":
        """Schedule a call; return a future."""
        future: "asyncio.Future[Any]" = self._loop.create_future()
        self._queue.put((future, function, argument))
        return future

    def _loop_between_calls(self) -> None:
        self.now = self._call
        try:
            self._loop.run_forever()
        finally:
            self.now = None

    def _call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        began = perf_counter()
        result = function(argument)
        seconds = perf_counter() - began
        if seconds >= Pace.SLOW or self._pace.has_debt:
            self._note(seconds)
        return result

    def _note(self, seconds: float) -> None:
        self._pace.note(seconds)
        if not self._pace.is_direct:
            self.now = None
            self._loop.stop()

    def _loop_beside_calls(self) -> None:
        beside = threading.Thread(target=self._loop.run_forever, name="event loop")
        beside.start()
        while not self._ended and not self._pace.is_direct:
            task = self._queue.get()
            if task is not None:
                self._pace.note(_do(task))
        self._loop.call_soon_threadsafe(self._loop.stop)
        beside.join()
        # Run calls that were scheduled meanwhile: they would wait while the event loop has this thread.
        while not self._queue.empty():
            task = self._queue.get()
            if task is not None:
                _do(task)


def _do(task: _Task) -> float:
    """Run one task; return its duration in seconds."""
    future, function, argument = task
    if future.done():
        return 0.0  # its time limit passed before it started
    began = perf_counter()
    try:
        result = function(argument)
    except BaseException as error:  # noqa: BLE001 (it is raised where the result is awaited)
        future.get_loop().call_soon_threadsafe(_fail, future, error)
    else:
        future.get_loop().call_soon_threadsafe(_resolve, future, result)
    return perf_counter() - began


def _resolve(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


class Batches:
    """Collects requests into batches. A batch starts when it is full, or when its first request waited long enough."""

    def __init__(
        self,
        size: int,
        seconds: float,
        send: Callable[[List[Request]], Awaitable[List[Answer]]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._size = size
        self._seconds = seconds
        self._send = send
        self._loop = loop
        self._waiting: List[Tuple[Request, "asyncio.Future[Answer]"]] = []
        self._timer: Optional[asyncio.TimerHandle] = None
        self._under_way: "set[asyncio.Task[None]]" = set()

    def add(self, request: Request) -> "asyncio.Future[Answer]":
        """Add a request; return a future of its answer."""
        future: "asyncio.Future[Answer]" = self._loop.create_future()
        self._waiting.append((request, future))
        if len(self._waiting) >= self._size:
            self._off()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._off)
        return future

    def _off(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Requests that timed out meanwhile need no answer.
        batch = [pair for pair in self._waiting if not pair[1].done()]
        self._waiting = []
        if batch:
            task = self._loop.create_task(self._answer(batch))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _answer(self, batch: List[Tuple[Request, "asyncio.Future[Answer]"]]) -> None:
        answers = await self._send([request for request, _ in batch])
        for (_, future), answer in zip(batch, answers):
            _resolve(future, answer)

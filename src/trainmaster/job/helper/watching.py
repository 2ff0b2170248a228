"""Watches one node of a run on this host until its agent has ended."""

import os
import signal
import time

from . import job_requests
from .agents import claim, end, start
from .connection import Disconnected
from .files import mark, read_json, write_whole
from .reporting import Reporter, small_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from .agents import Kit
    from .connection import Connection, Header

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 0.5
_CLAIM_SECONDS = 10.0
_MOST_STARTS = 3


class NodeWatch(object):
    """Reports on one node of a run: the files that are written, and when its agent has ended."""

    def __init__(self, connection: "Connection", kit: "Kit", run: str, folder: str, order: "Header") -> None:
        self._connection = connection
        self._kit = kit
        self._run = run
        self._folder = folder
        self._patience = order["patience"]
        self._heard = time.monotonic()
        self._began = time.monotonic()
        self._starts = 0
        self._reporter = Reporter(connection.send, lambda: self._listen(0), run, order)

    def run(self) -> None:
        """Returns when the agent has ended. Raises Disconnected."""
        pause = _PAUSE_SECONDS
        sent = 0.0
        while True:
            has_ended = not self._is_agent_expected()
            found_news = self._reporter.report([self._folder], self._small_files(), has_ended)
            if has_ended:
                self._connection.send({"ended": True})
                return
            if time.monotonic() - sent > self._patience / 4:
                sent = time.monotonic()
                self._connection.send({"alive": True})
            pause = _PAUSE_SECONDS if found_news else min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            self._listen(pause)

    def _is_agent_expected(self) -> bool:
        """Whether the agent is alive, or may still start."""
        found = read_json(self._folder + "/agent.json")
        if found is None:
            found = read_json(self._folder + "/spawned.json")
            if found is None:
                # No agent was started; perhaps one is just being started.
                return time.monotonic() - self._began < _CLAIM_SECONDS
            if not self._is_alive(found):
                # It may have claimed its plan just now. If not, no agent has the plan, and another one may start.
                found = read_json(self._folder + "/agent.json") or self._start_again() or found
        if found.get("cancelled"):
            return False
        return self._is_alive(found)

    def _is_alive(self, found: "dict[str, Any]") -> bool:
        return bool(self._kit.process.is_alive(found["pid"], found["start_time"], found["boot_id"]))

    def _start_again(self) -> "dict[str, Any] | None":
        """Replaces an agent that ended before it claimed its plan; None if that happens too often."""
        if self._starts == _MOST_STARTS:
            return None
        self._starts += 1
        return start(self._folder, self._kit)

    def _small_files(self) -> "Iterator[str]":
        ranks = os.path.join(os.path.dirname(self._folder), "0", "ranks")
        launch = os.path.join(self._folder, "launch")
        for folder in (self._folder, ranks, launch):
            for path in small_files(folder):
                yield path

    def _listen(self, seconds: float) -> None:
        """Handles what the other side sends within `seconds`; raises Disconnected if it has been silent too long."""
        if not self._connection.has_input(seconds):
            if time.monotonic() - self._heard > self._patience:
                raise Disconnected()
            return
        while self._connection.has_input(0):
            self._handle(self._connection.header())

    def _handle(self, header: "Header") -> None:
        self._heard = time.monotonic()
        op = header["op"]
        if op == "stop":
            claim(self._folder, self._kit)
            if mark(self._folder + "/stopped"):
                end(self._folder, self._kit, signal.SIGTERM)
        elif op == "kill":
            end(self._folder, self._kit, signal.SIGKILL)
        elif op == "put":
            write_whole(os.path.join(self._run, header["path"]), self._connection.payload())
        elif op == "answer":
            job_requests.answer(self._run, header["name"], self._connection.payload())

"""Watching one node of a run on this host, until its agent has ended."""

import os
import signal
import time

from . import job_requests as requests
from .agents import claim, end, start
from .connection import Disconnected
from .files import mark, read_json, write_whole
from .reporting import Reporter, small_files

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 0.5
_CLAIM_SECONDS = 10.0
_MOST_STARTS = 3


class Watch(object):
    """Tells all that becomes of one node of a run: what is written, and when its agent has ended."""

    def __init__(self, line, kit, run, folder, order):
        self._line = line
        self._kit = kit
        self._run = run
        self._folder = folder
        self._patience = order["patience"]
        self._heard = time.monotonic()
        self._began = time.monotonic()
        self._starts = 0
        self._reporter = Reporter(line.send, lambda: self._listen(0), run, order)

    def until_ended(self):
        pause = _PAUSE_SECONDS
        told = 0.0
        while True:
            ended = not self._drivers()
            some = self._reporter.look([self._folder], self._small(), ended)
            if ended:
                self._line.send({"ended": True})
                return
            if time.monotonic() - told > self._patience / 4:
                told = time.monotonic()
                self._line.send({"alive": True})
            pause = _PAUSE_SECONDS if some else min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            self._listen(pause)

    def _drivers(self):
        found = read_json(self._folder + "/agent.json")
        if found is None:
            found = read_json(self._folder + "/spawned.json")
            if found is None:
                # Nobody began; perhaps somebody is just about to.
                return time.monotonic() - self._began < _CLAIM_SECONDS
            if not self._is_alive(found):
                # It may have claimed its plan just now. If not, nobody has begun, and another may.
                found = read_json(self._folder + "/agent.json") or self._start_again() or found
        if found.get("cancelled"):
            return False
        return self._is_alive(found)

    def _is_alive(self, found):
        return self._kit.process.is_alive(found["pid"], found["start_time"], found["boot_id"])

    def _start_again(self):
        """Another agent in the place of one that ended before it claimed its plan; None if that happens too often."""
        if self._starts == _MOST_STARTS:
            return None
        self._starts += 1
        return start(self._folder, self._kit)

    def _small(self):
        ranks = os.path.join(os.path.dirname(self._folder), "0", "ranks")
        launch = os.path.join(self._folder, "launch")
        for folder in (self._folder, ranks, launch):
            for path in small_files(folder):
                yield path

    def _listen(self, seconds):
        """Takes what the other side says, for so long at most; ends with it if it has fallen silent."""
        if not self._line.waits(seconds):
            if time.monotonic() - self._heard > self._patience:
                raise Disconnected()
            return
        while self._line.waits(0):
            self._take(self._line.header())

    def _take(self, header):
        self._heard = time.monotonic()
        op = header["op"]
        if op == "stop":
            claim(self._folder, self._kit)
            if mark(self._folder + "/stopped"):
                end(self._folder, self._kit, signal.SIGTERM)
        elif op == "kill":
            end(self._folder, self._kit, signal.SIGKILL)
        elif op == "put":
            write_whole(os.path.join(self._run, header["path"]), self._line.payload())
        elif op == "answer":
            requests.answer(self._run, header["name"], self._line.payload())

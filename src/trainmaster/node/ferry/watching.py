"""Watching one node of a run, until its agent has ended."""

import hashlib
import os
import signal
import time

from .agents import claim, end
from .files import PLACED, changed, files_in, inside, mark, names, read_json, write_whole
from .line import PIECE, Gone

# A file that changes and is larger than this is sent only when it has been left alone for a while.
_LARGE = 64 * 1024 * 1024
_QUIET_SECONDS = 5.0
# Written to so shortly before it was looked at that it may change again within the clock's tick.
_TICK_SECONDS = 0.05
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 0.5
_CLAIM_SECONDS = 10.0


class Watch(object):
    """Tells all that becomes of one node of a run: what is written, and when its agent has ended."""

    def __init__(self, line, kit, run, folder, order):
        self._line = line
        self._kit = kit
        self._run = run
        self._folder = folder
        self._patience = order["patience"]
        self._heard = time.time()
        self._began = time.time()
        self._sizes = order["sizes"]
        self._common = order["common"]
        self._back = order["back"]
        self._states = {name: tuple(state) for name, state in order["states"].items()}
        self._digests = {}
        self._stamps = {}
        self._work_at = 0.0

    def until_ended(self):
        pause = _PAUSE_SECONDS
        told = 0.0
        while True:
            ended = not self._lives()
            some = self._tell_small()
            some = self._tell_grown() or some
            if ended or time.time() >= self._work_at:
                began = time.time()
                some = self._tell_work(ended) or some
                self._work_at = time.time() + max(1.0, 10 * (time.time() - began))
            if ended:
                self._line.send({"ended": True})
                return
            if time.time() - told > self._patience / 4:
                told = time.time()
                self._line.send({"alive": True})
            pause = _PAUSE_SECONDS if some else min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            self._listen(pause)

    def _lives(self):
        process = self._kit.process
        found = read_json(self._folder + "/agent.json")
        if found is None:
            found = read_json(self._folder + "/spawned.json")
            if found is None:
                # Nobody began; perhaps somebody is just about to.
                return time.time() - self._began < _CLAIM_SECONDS
        if found.get("cancelled"):
            return False
        return process.is_alive(found["pid"], found["start_time"], found["boot_id"])

    def _listen(self, seconds):
        """Takes what the other side says, for so long at most; ends with it if it has fallen silent."""
        if not self._line.waits(seconds):
            if time.time() - self._heard > self._patience:
                raise Gone()
            return
        while self._line.waits(0):
            self._take(self._line.header())

    def _take(self, header):
        self._heard = time.time()
        op = header["op"]
        if op == "stop":
            claim(self._folder, self._kit)
            if mark(self._folder + "/stopped"):
                end(self._folder, self._kit, signal.SIGTERM)
        elif op == "kill":
            end(self._folder, self._kit, signal.SIGKILL)
        elif op == "put":
            write_whole(os.path.join(self._run, header["path"]), self._line.payload())

    # Small files that are written whole: claims, results, notes of ranks

    def _tell_small(self):
        some = False
        for path in self._small():
            try:
                found = os.stat(path)
                stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
                if self._stamps.get(path) == stamp:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            self._stamps[path] = stamp
            self._line.send({"small": os.path.relpath(path, self._run)}, data)
            some = True
        return some

    def _small(self):
        ranks = os.path.join(os.path.dirname(self._folder), "0", "ranks")
        launch = os.path.join(self._folder, "launch")
        for folder in (self._folder, ranks, launch):
            for name in names(folder):
                if name.endswith(".json") and name not in ("plan.json", "ranks.json", "spawned.json"):
                    yield os.path.join(folder, name)

    # Files that only grow: logs and journals

    def _tell_grown(self):
        some = False
        for path in self._growing():
            name = os.path.relpath(path, self._run)
            start = self._sizes.get(name, 0)
            try:
                if os.stat(path).st_size <= start:
                    continue
                some = self._send_rest(path, name, start) or some
            except OSError:
                continue
        return some

    def _growing(self):
        if self._common:
            for folder in ("files/azureml-logs", "journals"):
                for name in names(os.path.join(self._run, folder)):
                    path = os.path.join(self._run, folder, name)
                    if not name.startswith(".") and os.path.isfile(path):
                        yield path
        for name in names(self._folder):
            if name.endswith(".log"):
                yield os.path.join(self._folder, name)

    def _send_rest(self, path, name, start):
        with open(path, "rb") as file:
            file.seek(start)
            while True:
                piece = file.read(PIECE)
                if not piece:
                    return True
                self._line.send({"grown": name, "offset": start}, piece)
                start += len(piece)
                self._sizes[name] = start
                self._listen(0)

    # What the script leaves in its working folder: outputs/ and logs/

    def _tell_work(self, ended):
        some = False
        for path in self._work():
            name = os.path.relpath(path, self._run)
            try:
                some = self._tell_file(path, name, ended) or some
            except OSError:
                # It has just gone, or cannot be read.
                continue
        return some

    def _work(self):
        if not self._common:
            return
        for name in ["code/outputs", "code/logs", *self._back]:
            top = os.path.join(self._run, name)
            # A file of data was brought in a folder of its own.
            since = max(changed(top + PLACED), changed(os.path.dirname(top) + PLACED))
            for path in files_in(top):
                if os.path.isfile(path) and inside(path, self._run) and changed(path) > since:
                    yield path

    def _tell_file(self, path, name, ended):
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._states.get(name) == state:
                return False
            age = time.time() - found.st_mtime
            if not ended and found.st_size > _LARGE and age < _QUIET_SECONDS:
                return False
            start = self._same_beginning(file, name, found.st_size)
            digest = self._digests[name][1] if start else hashlib.sha1()
            file.seek(start)
            self._send_file(file, name, start, found, digest)
        settled = ended or age > _TICK_SECONDS
        if settled:
            self._states[name] = state
            self._line.send({"state": name, "is": state})
        return True

    def _same_beginning(self, file, name, size):
        """How much of what was sent before is still how the file begins: all of it, or nothing."""
        length, digest = self._digests.get(name, (0, None))
        if not length or size < length:
            return 0
        found = hashlib.sha1()
        rest = length
        while rest:
            piece = file.read(min(rest, PIECE))
            if not piece:
                return 0
            found.update(piece)
            rest -= len(piece)
        return length if found.digest() == digest.digest() else 0

    def _send_file(self, file, name, start, found, digest):
        """The bytes from `start` to the size it had: what is written meanwhile is seen the next time."""
        offset, size = start, found.st_size
        while True:
            piece = file.read(min(PIECE, size - offset)) if size > offset else b""
            last = offset + len(piece) >= size or not piece
            digest.update(piece)
            mode = found.st_mode & 0o777
            self._line.send({"work": name, "offset": offset, "start": start, "last": last, "mode": mode}, piece)
            offset += len(piece)
            self._listen(0)
            if last:
                self._digests[name] = (offset, digest)
                return

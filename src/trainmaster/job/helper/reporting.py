"""Telling what is written to the folder of a run: every byte once, while it is written and after."""

import hashlib
import os
import time

from . import job_requests as requests
from .connection import PIECE
from .files import PLACED, changed, files_in, inside, names

# A file that changes and is larger than this is sent only when it has been left alone for a while.
_LARGE = 64 * 1024 * 1024
_QUIET_SECONDS = 5.0
# Written to so shortly before it was looked at that it may change again within the clock's tick.
_TICK_SECONDS = 0.05
_NOT_TOLD = ("plan.json", "ranks.json", "spawned.json")


class Reporter(object):
    """Knows what was told already, and tells the rest."""

    def __init__(self, send, listen, run, order):
        """`send` takes a frame; `listen` is called between two pieces of a large file."""
        self._send = send
        self._listen = listen
        self._run = run
        self._sizes = order["sizes"]
        self._common = order["common"]
        self._back = order["back"]
        self._states = {name: tuple(state) for name, state in order["states"].items()}
        self._digests = {}
        self._stamps = {}
        self._letters = set()
        self._work_at = 0.0

    def look(self, folders, small, last):
        """Tells what is new in the run's folder and in the `folders` of its nodes, and the files `small`.

        `last`: nothing is put off till later. Returns whether there was anything.
        """
        some = self._tell_small(small)
        some = self._tell_grown(folders, last) or some
        some = self._tell_letters(folders) or some
        if last or time.monotonic() >= self._work_at:
            began = time.monotonic()
            some = self._tell_work(last) or some
            self._work_at = time.monotonic() + max(1.0, 10 * (time.monotonic() - began))
        return some

    # Small files that are written whole: claims, results, notes of ranks

    def _tell_small(self, paths):
        some = False
        for path in paths:
            some = self.tell_whole(path) or some
        return some

    def tell_whole(self, path):
        """A small file, if it is another than the one that was told."""
        try:
            found = os.stat(path)
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._stamps.get(path) == stamp:
                return False
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return False
        self._stamps[path] = stamp
        self._send({"small": os.path.relpath(path, self._run)}, data)
        return True

    # Files that only grow: logs and journals

    def _tell_grown(self, folders, last):
        some = False
        for path in self._growing(folders):
            name = os.path.relpath(path, self._run)
            start = self._sizes.get(name, 0)
            try:
                # What another machine wrote may not be seen in the size before the file is opened.
                if not last and os.stat(path).st_size <= start:
                    continue
                some = self._send_rest(path, name, start) or some
            except OSError:
                continue
        return some

    def _growing(self, folders):
        if self._common:
            for folder in ("files/azureml-logs", "journals"):
                for name in names(os.path.join(self._run, folder)):
                    path = os.path.join(self._run, folder, name)
                    if not name.startswith(".") and os.path.isfile(path):
                        yield path
        for folder in folders:
            for name in names(folder):
                if name.endswith(".log"):
                    yield os.path.join(folder, name)

    def _send_rest(self, path, name, start):
        with open(path, "rb") as file:
            file.seek(start)
            some = False
            while True:
                piece = file.read(PIECE)
                if not piece:
                    return some
                some = True
                self._send({"grown": name, "offset": start}, piece)
                start += len(piece)
                self._sizes[name] = start
                self._listen()

    # What the script asks its workspace

    def _tell_letters(self, folders):
        waiting = requests.pending(self._run) if self._common else []
        new = [name for name in waiting if name not in self._letters]
        self._letters = set(waiting)
        for name in new:
            text = requests.read(self._run, name)
            if text is not None:
                # A letter may be about what was written before it, which has to be there first.
                self._tell_grown(folders, True)
                if requests.is_about_files(text):
                    self._tell_work(False, at_once=True)
                self._send({"letter": name}, text)
        return bool(new)

    # What the script leaves in its working folder (outputs/ and logs/), and the files that it gave to the run

    def _tell_work(self, last, at_once=False):
        some = False
        for path in self._work():
            name = os.path.relpath(path, self._run)
            try:
                some = self._tell_file(path, name, last, last or at_once) or some
            except OSError:
                # It has just gone, or cannot be read.
                continue
        return some

    def _work(self):
        if not self._common:
            return
        for name in ["code/outputs", "code/logs", "children", requests.FILES, *self._given(), *self._back]:
            top = os.path.join(self._run, name)
            # A file of data was brought in a folder of its own.
            since = max(changed(top + PLACED), changed(os.path.dirname(top) + PLACED))
            for path in files_in(top):
                if os.path.isfile(path) and inside(path, self._run) and changed(path) > since and _is_whole(path):
                    yield path

    def _given(self):
        """What the script uploaded; outputs/ and logs/ are links to those of the working folder."""
        for name in names(os.path.join(self._run, "files")):
            if name != "azureml-logs" and not os.path.islink(os.path.join(self._run, "files", name)):
                yield "files/" + name

    def _tell_file(self, path, name, last, at_once):
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._states.get(name) == state:
                return False
            age = time.time() - found.st_mtime
            if not at_once and found.st_size > _LARGE and age < _QUIET_SECONDS:
                return False
            start = self._same_beginning(file, name, found.st_size)
            digest = self._digests[name][1] if start else hashlib.sha1()
            file.seek(start)
            self._send_file(file, name, start, found, digest)
        settled = last or age > _TICK_SECONDS
        if settled:
            self._states[name] = state
            self._send({"state": name, "is": state})
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
            self._send({"work": name, "offset": offset, "start": start, "last": last, "mode": mode}, piece)
            offset += len(piece)
            self._listen()
            if last:
                self._digests[name] = (offset, digest)
                return


def _is_whole(path):
    """Whether it is none that is still being copied to its place (`job/script/files.py`)."""
    return not os.path.basename(path).startswith(".partial-")


def small_files(folder):
    """The files of a node by which others know how it goes."""
    for name in names(folder):
        if name.endswith(".json") and name not in _NOT_TOLD:
            yield os.path.join(folder, name)

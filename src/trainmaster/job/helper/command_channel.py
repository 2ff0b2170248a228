"""At a cluster's login node: commands are carried out, and many runs are watched at once, over one connection.

Unlike on a host, the agents are on other machines: all that is known of them is what they write to the shared folder.
Requests have an `id`, which their answer has too; what becomes of a run comes with its name, as `of`.
"""

import os
import subprocess
import threading
import time

from . import job_requests as requests
from .agents import Kit, claim, node_folders
from .connection import Disconnected
from .files import names, write_whole
from .machine import equipped
from .reporting import Reporter, small_files

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0


class CommandChannel(object):
    """Serves until the connection ends."""

    def __init__(self, line, path, order):
        """`path` makes one in the workspace's folder of the name of one."""
        self._line = line
        self._path = path
        self._patience = order["patience"]
        self._variables = equipped(order["program"], order["variables"], order["beginnings"])
        self._watched = {}
        self._later = []
        self._carried_out = []
        self._woken, self._wakes = os.pipe()
        self._heard = self._told = time.monotonic()

    def serve(self):
        while True:
            self._listen(self._pause())
            later, self._later = self._later, []
            for header, payload in later:
                self._line.send(dict(self._answered(header, payload), id=header["id"]))
            self._look()

    def _pause(self):
        due = min([each.due for each in self._watched.values()] + [time.monotonic() + _LONGEST_PAUSE_SECONDS])
        return 0 if self._later else max(0.0, due - time.monotonic())

    def _look(self):
        for name, each in list(self._watched.items()):
            if each.due <= time.monotonic():
                each.look(False)
            if each.is_over:
                del self._watched[name]

    def _listen(self, seconds=0):
        """Takes what the other side says, for so long at most, and tells what commands said meanwhile."""
        while self._line.waits(seconds, self._woken):
            self._heard = time.monotonic()
            self._take(self._line.header(), self._line.payload())
            seconds = 0
        while self._carried_out:
            os.read(self._woken, 1)
            self._line.send(*self._carried_out.pop(0))
        now = time.monotonic()
        if now - self._heard > self._patience:
            raise Disconnected()
        if now - self._told > self._patience / 4:
            self._told = now
            self._line.send({"alive": True})

    def _take(self, header, payload):
        if header["op"] == "run":
            threading.Thread(target=self._carry_out, args=(header, payload), daemon=True).start()
        elif header["op"] != "ping":
            self._later.append((header, payload))

    def _carry_out(self, header, given):
        """A command, in a thread of its own."""
        answer, said = carried_out(header["argv"], given, self._variables, header["seconds"])
        self._carried_out.append((dict(answer, id=header["id"]), said))
        os.write(self._wakes, b".")

    def _answered(self, header, payload):
        try:
            return getattr(self, "on_" + header["op"])(header, payload) or {"ok": True}
        except OSError as error:
            return {"error": "{}: {}".format(error.filename or "", error.strerror or error)}

    def on_watch(self, header, payload):
        run = self._path("runs/" + header["run"])
        nodes = self._path(header["folder"])
        name = header["of"]

        def send(frame, data=b""):
            self._line.send(dict(frame, of=name), data)

        self._watched[name] = JobWatch(send, self._listen, run, nodes, header)

    def on_look(self, header, payload):
        """All that is there now is told before this is answered."""
        watched = self._watched.get(header["of"])
        if watched is not None:
            watched.look(True)

    def on_leave(self, header, payload):
        self._watched.pop(header["of"], None)

    def on_put(self, header, payload):
        write_whole(self._path(header["path"]), payload)

    def on_answer(self, header, payload):
        """Answers what a script asked."""
        requests.answer(self._path("runs/" + header["run"]), header["name"], payload)

    def on_claim(self, header, payload):
        """Takes the claims that no agent has yet."""
        kit = Kit(self._path(header["kit"]))
        for folder in node_folders(self._path("runs/" + header["run"])):
            claim(folder, kit)


class JobWatch(object):
    """Tells all that becomes of one attempt of a run, on all of its nodes."""

    def __init__(self, send, listen, run, nodes, order):
        self._nodes = nodes
        self._count = order["count"]
        self._reporter = Reporter(send, listen, run, order)
        self._results = set()
        self._pause = _PAUSE_SECONDS
        self.due = 0.0

    @property
    def is_over(self):
        """Whether all of its agents have said how it ended."""
        return len(self._results) == self._count

    def look(self, last):
        # First: an agent writes its result when it has written everything else.
        results = [path for path in self._result_files() if path not in self._results and os.path.exists(path)]
        some = self._reporter.look(self._folders(), self._small(), last or bool(results))
        for path in results:
            self._results.add(path)
            self._reporter.tell_whole(path)
        self._pause = _PAUSE_SECONDS if some else min(self._pause * 1.5, _LONGEST_PAUSE_SECONDS)
        self.due = time.monotonic() + self._pause

    def _result_files(self):
        return [os.path.join(self._nodes, str(number), "result.json") for number in range(self._count)]

    def _folders(self):
        return [self._nodes] + [os.path.join(self._nodes, name) for name in names(self._nodes) if name.isdigit()]

    def _small(self):
        results = self._result_files()
        yield os.path.join(self._nodes, "gang.json")
        for folder in [*self._folders()[1:], os.path.join(self._nodes, "0", "ranks")]:
            for path in small_files(folder):
                if path not in results:
                    yield path


def carried_out(argv, given, variables, seconds):
    """What a command said: a header, and the bytes of its output and, behind them, of its errors."""
    try:
        process = subprocess.Popen(
            argv,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
        )
    except OSError as error:
        return {"missing": str(error)}, b""
    try:
        out, errors = process.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"late": True}, b""
    return {"code": process.returncode, "out": len(out)}, out + errors

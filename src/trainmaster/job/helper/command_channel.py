"""The command channel at a cluster's login node: runs commands and watches many runs at once, over one connection.

Unlike on a host, the agents are on other machines: only the files that they write to the shared folder are known of
them. Requests have an `id`, which is repeated in the answer. Reports on a run have its name, as `of`.
"""

import os
import subprocess
import threading
import time

from . import job_requests, messages
from .agents import Kit, claim, node_folders
from .connection import Disconnected
from .files import names, write_whole
from .machine import variables_for
from .reporting import Reporter, small_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, Mapping

    from .connection import Connection, Header
    from .reporting import Send

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0


class CommandChannel(object):
    """Serves until the connection ends."""

    def __init__(self, connection: "Connection", path: "Callable[[str], str]", order: "Header") -> None:
        """`path` returns the path of a name in the workspace's folder here."""
        self._connection = connection
        self._path = path
        self._patience = order["patience"]
        self._variables = variables_for(order["program"], order["variables"], order["beginnings"])
        self._watches: "dict[str, JobWatch]" = {}
        self._requests: "list[tuple[Header, bytes]]" = []
        self._finished: "list[tuple[Header, bytes]]" = []
        self._woken, self._wakes = os.pipe()
        self._heard = self._sent = time.monotonic()

    def serve(self) -> None:
        while True:
            self._listen(self._pause())
            requests, self._requests = self._requests, []
            for header, payload in requests:
                self._connection.send(dict(self._answer(header, payload), id=header["id"]))
            self._look()

    def _pause(self) -> float:
        due = min([each.due for each in self._watches.values()] + [time.monotonic() + _LONGEST_PAUSE_SECONDS])
        return 0 if self._requests else max(0.0, due - time.monotonic())

    def _look(self) -> None:
        for name, each in list(self._watches.items()):
            if each.due <= time.monotonic():
                each.look(False)
            if each.is_over:
                del self._watches[name]

    def _listen(self, seconds: float = 0) -> None:
        """Handles what the other side sends within `seconds`, and sends the results of finished commands."""
        while self._connection.has_input(seconds, self._woken):
            self._heard = time.monotonic()
            self._handle(self._connection.header(), self._connection.payload())
            seconds = 0
        while self._finished:
            os.read(self._woken, 1)
            self._connection.send(*self._finished.pop(0))
        now = time.monotonic()
        if now - self._heard > self._patience:
            raise Disconnected()
        if now - self._sent > self._patience / 4:
            self._sent = now
            self._connection.send({"alive": True})

    def _handle(self, header: "Header", payload: bytes) -> None:
        if header["op"] == "run":
            threading.Thread(target=self._run_command, args=(header, payload), daemon=True).start()
        elif header["op"] != "ping":
            self._requests.append((header, payload))

    def _run_command(self, header: "Header", text: bytes) -> None:
        """Runs a command, in a separate thread."""
        answer, output = run_command(header["argv"], text, self._variables, header["seconds"])
        self._finished.append((dict(answer, id=header["id"]), output))
        os.write(self._wakes, b".")

    def _answer(self, header: "Header", payload: bytes) -> "Header":
        try:
            return getattr(self, "on_" + header["op"])(header, payload) or {"ok": True}
        except OSError as error:
            return messages.failure("{}: {}".format(error.filename or "", error.strerror or error), header)

    def on_watch(self, header: "Header", payload: bytes) -> None:
        run = self._path("runs/" + header["run"])
        nodes = self._path(header["folder"])
        name = header["of"]

        def send(header: "Header", payload: bytes = b"") -> None:
            self._connection.send(dict(header, of=name), payload)

        self._watches[name] = JobWatch(send, self._listen, run, nodes, header)

    def on_look(self, header: "Header", payload: bytes) -> None:
        """Reports everything that exists now before it answers."""
        watch = self._watches.get(header["of"])
        if watch is not None:
            watch.look(True)

    def on_leave(self, header: "Header", payload: bytes) -> None:
        self._watches.pop(header["of"], None)

    def on_put(self, header: "Header", payload: bytes) -> None:
        write_whole(self._path(header["path"]), payload)

    def on_answer(self, header: "Header", payload: bytes) -> None:
        """Answers the request of a script."""
        job_requests.answer(self._path("runs/" + header["run"]), header["name"], payload)

    def on_claim(self, header: "Header", payload: bytes) -> None:
        """Claims the plans that no agent has claimed yet."""
        kit = Kit(self._path(header["kit"]))
        for folder in node_folders(self._path("runs/" + header["run"])):
            claim(folder, kit)


class JobWatch(object):
    """Reports on one attempt of a run, on all of its nodes."""

    def __init__(self, send: "Send", listen: "Callable[[], None]", run: str, nodes: str, order: "Header") -> None:
        self._nodes = nodes
        self._count: int = order["count"]
        self._reporter = Reporter(send, listen, run, order)
        self._results: "set[str]" = set()
        self._pause = _PAUSE_SECONDS
        self.due = 0.0

    @property
    def is_over(self) -> bool:
        """Whether all of its agents have written their results."""
        return len(self._results) == self._count

    def look(self, is_last: bool) -> None:
        # First: an agent writes its result after everything else.
        results = [path for path in self._result_files() if path not in self._results and os.path.exists(path)]
        found = self._reporter.report(self._folders(), self._small_files(), is_last or bool(results))
        for path in results:
            self._results.add(path)
            self._reporter.report_small_file(path)
        self._pause = _PAUSE_SECONDS if found else min(self._pause * 1.5, _LONGEST_PAUSE_SECONDS)
        self.due = time.monotonic() + self._pause

    def _result_files(self) -> "list[str]":
        return [os.path.join(self._nodes, str(number), "result.json") for number in range(self._count)]

    def _folders(self) -> "list[str]":
        return [self._nodes] + [os.path.join(self._nodes, name) for name in names(self._nodes) if name.isdigit()]

    def _small_files(self) -> "Iterator[str]":
        results = self._result_files()
        yield os.path.join(self._nodes, "gang.json")
        for folder in [*self._folders()[1:], os.path.join(self._nodes, "0", "ranks")]:
            for path in small_files(folder):
                if path not in results:
                    yield path


def run_command(
    argv: "list[str]", text: bytes, variables: "Mapping[str, str]", seconds: float
) -> "tuple[Header, bytes]":
    """Runs a command with `text` as its input; returns a header, and its output followed by its errors."""
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
        output, errors = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"late": True}, b""
    return {"code": process.returncode, "out": len(output)}, output + errors

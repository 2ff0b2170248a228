"""The connection of a program to its workspace's dispatcher. It starts a dispatcher if none is running.

Requests and answers are lines of JSON over a unix socket: `{"id", "op", "args"}` and `{"id", "result"}` or
`{"id", "error"}`. Every operation may be repeated without harm. So if a dispatcher dies between request and answer, the
request is sent again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Self, TypeVar

from trainmaster import __version__
from trainmaster.job.errors import ServiceException, from_wire
from trainmaster.job.helper import messages
from trainmaster.sdk.backend.backend import RunNews
from trainmaster.shared.dispatcher_socket import Line, dispatcher_command, try_line
from trainmaster.shared.folders import WorkspaceFolder

# Generous: a busy machine may take seconds to start a Python that imports SQLAlchemy.
_START_LIMIT_SECONDS = 60.0
_STOP_LIMIT_SECONDS = 30.0
_ATTEMPTS = 8
_READY = 3
"""The file descriptor on which a dispatcher says that it listens."""
_MARKS = ("TRAINMASTER_RUN_ID", "TRAINMASTER_AGENT")
# Jupyter's kernels set these. uv would write colour codes, which would end up in its lock files.
_COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "PY_COLORS")


class LocalConnection:
    """Calls the dispatcher of one workspace; safe to share between threads and across a fork."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self.folder = folder
        self._guard = threading.Lock()
        self._line: Line | None = None
        self._owner = 0

    def call(self, op: str, **args: Any) -> Any:
        """The result of operation `op`. An error of the operation is raised."""
        with self._guard:
            return self._answer(op, args)

    def _answer(self, op: str, args: dict[str, Any]) -> Any:
        for attempt in range(_ATTEMPTS):
            try:
                line = self._connect()
                line.send(messages.request(op, args))
                reply = line.receive()
            except (ConnectionError, EOFError) as lost:
                self._drop()
                if attempt == _ATTEMPTS - 1:
                    raise ServiceException(
                        f"the dispatcher of {self.folder.path} repeatedly ended before it answered",
                        cause=str(lost),
                        hint=f"See {self.folder.log}.",
                    ) from None
                continue
            except BaseException:
                # Interrupted: the answer may still arrive, and must not be read as the answer to the next request.
                self._drop()
                raise
            return messages.result_of(reply, from_wire)
        raise AssertionError("unreachable")

    def watch(self, run_id: str) -> Watch:
        """The states of one run, from now to its end."""
        return Watch(self.folder, run_id)

    def _connect(self) -> Line:
        # A forked child must not use its parent's connection.
        if self._line is None or self._owner != os.getpid():
            self._line = open_line(self.folder)
            self._owner = os.getpid()
        return self._line

    def _drop(self) -> None:
        if self._line is not None and self._owner == os.getpid():
            self._line.close()
        self._line = None

    def close(self) -> None:
        """Closes the connection; the next call opens another."""
        with self._guard:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def call_once(folder: WorkspaceFolder, op: str, **args: Any) -> Any:
    """Calls one operation over a new connection."""
    client = LocalConnection(folder)
    try:
        return client.call(op, **args)
    finally:
        client.close()


News = TypeVar("News")


class Subscription(Generic[News]):
    """The answers to one request, as they arrive on a separate connection. It can be passed to select."""

    def __init__(self, folder: WorkspaceFolder, op: str, args: Mapping[str, Any]) -> None:
        self._folder = folder
        self._op = op
        self._args = args
        self._line: Line | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of the request when it is sent."""
        return dict(self._args)

    def fileno(self) -> int:
        """The file descriptor that becomes readable when an answer arrives."""
        return self._connect().fileno()

    def next(self) -> News:
        """The next answer. If the dispatcher died, the request is sent to another one."""
        while True:
            try:
                reply = self._connect().receive()
            except (ConnectionError, EOFError):
                self.close()
                continue
            news: News = messages.result_of(reply, from_wire)
            return news

    def _connect(self) -> Line:
        while self._line is None:
            line = open_line(self._folder)
            try:
                line.send(messages.request(self._op, self.arguments()))
            except ConnectionError:
                line.close()
                continue
            self._line = line
        return self._line

    def close(self) -> None:
        """Closes the connection."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Watch(Subscription[RunNews]):
    """The state of one run now and at each change. A new dispatcher sends the current state again."""

    def __init__(self, folder: WorkspaceFolder, run_id: str) -> None:
        super().__init__(folder, "runs.watch", {"run_id": run_id})

    def __iter__(self) -> Iterator[RunNews]:
        """The states until the run has ended."""
        while True:
            news = self.next()
            yield news
            if news["ended"]:
                return


def open_line(folder: WorkspaceFolder) -> Line:
    """A connection to a running dispatcher of this version, which is started if necessary."""
    deadline = time.monotonic() + _START_LIMIT_SECONDS
    killed = 0
    while True:
        line = try_line(folder)
        if line is None:
            killed += not start_dispatcher(folder, deadline)
            line = try_line(folder)
        if line is not None:
            if _greet(line, folder):
                return line
            line.close()
        if killed == _ATTEMPTS or time.monotonic() > deadline:
            raise ServiceException(f"the dispatcher of {folder.path} could not be reached", hint=f"See {folder.log}.")


def _greet(line: Line, folder: WorkspaceFolder) -> bool:
    """Whether this dispatcher has our version and runs the code that is installed. If not, and if it is not newer,
    it is stopped; its runs continue.
    """
    try:
        line.send(messages.request("hello", {"version": __version__}))
        answer = messages.result_of(line.receive(), from_wire)
        theirs = answer["version"]
        if theirs == __version__ and not answer.get("outdated"):
            return True
        if _as_numbers(theirs) > _as_numbers(__version__):
            raise ServiceException(
                f"{folder.path} is served by Trainmaster {theirs}, which is newer than this one ({__version__})",
                hint="Use that Trainmaster, or stop it with its own 'trainmaster down'.",
            )
        line.send(messages.request("shutdown", {}))
        line.receive()
        # The workspace is free once the dispatcher has ended, not once it has answered.
        line.receive()
    except (ConnectionError, EOFError):
        pass
    return False


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def start_dispatcher(folder: WorkspaceFolder, deadline: float) -> bool:
    """Starts a detached dispatcher. True once it (or another one) listens, false if it was killed before that."""
    # Only the dispatcher gets its end: if another one that is started meanwhile got it too, this would wait for that.
    ready, theirs = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    words = _open_log(folder, null)
    try:
        os.posix_spawn(
            sys.executable,
            [*dispatcher_command(folder), "--ready-fd", str(_READY)],
            # A dispatcher with the variables of a job would be killed at the end of that job.
            {name: value for name, value in os.environ.items() if name not in (*_MARKS, *_COLOURS)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, words, 1),
                (os.POSIX_SPAWN_DUP2, words, 2),
                (os.POSIX_SPAWN_DUP2, theirs, _READY),
            ],
            setsid=True,
        )
    finally:
        for handle in {theirs, null, words}:
            os.close(handle)
    with open(ready, "rb") as pipe:
        _await_word(pipe.fileno(), deadline, folder)
        word = pipe.read()
    if not word:
        return False
    answer = json.loads(word)
    if "error" in answer:
        raise from_wire(answer["error"])
    return True


def stop_dispatcher(folder: WorkspaceFolder, pid: int) -> None:
    """Stops a dispatcher. Returns when its process has ended: until then it may write to the workspace."""
    import select

    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        line = try_line(folder)
        if line is not None:
            with contextlib.suppress(ConnectionError):
                line.send(messages.request("shutdown", {}))
            line.close()
        if not select.select([process], [], [], _STOP_LIMIT_SECONDS)[0]:
            raise ServiceException(
                f"dispatcher {pid} did not end within {_STOP_LIMIT_SECONDS:.0f} s", hint=f"See {folder.log}."
            )
    finally:
        os.close(process)


def _open_log(folder: WorkspaceFolder, null: int) -> int:
    """The log, for a dispatcher that fails to start."""
    try:
        return os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:
        return null


def _await_word(pipe: int, deadline: float, folder: WorkspaceFolder) -> None:
    import select

    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise ServiceException(
            f"the dispatcher of {folder.path} did not start within {_START_LIMIT_SECONDS:.0f} s",
            hint=f"See {folder.log}.",
        )

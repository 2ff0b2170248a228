"""A process of a supervisor that answers requests: it shares the listening socket and receives commands.

The channel is one end of a socket pair. The replica sends `{"ready": true}` or `{"error": {...}}`, one line. The
supervisor sends `o` (accept connections), `d` (drain: accept no more, answer requests on open connections and close
them) or `s` (the same, and close idle connections at once). When the supervisor ends, the replica ends too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import sys
from time import monotonic
from typing import Any, Dict, Union

from .application import Application
from .calling import MainThread, Threads
from .health_fallback import HealthFallback
from .log import Log, Printed, request_id
from .numbers import Numbers
from .script import Script, ScriptError, load
from .settings import Settings, read

BROKEN = 3
"""The exit code of a replica whose script cannot be used."""
_LOOK_SECONDS = 0.05


def check(path: str) -> Dict[str, Any]:
    """Import the script of `server.json` and call its `init`; return the error if that fails."""
    try:
        load(read(path))
    except ScriptError as error:
        return {"error": _describe(error)}
    return {"ready": True}


def serve(path: str, listening: int, channel: int, counters: str, slot: int, drain_seconds: float) -> int:
    """Serve until told to end; return the exit code."""
    log = Log(1)
    sys.stdout = Printed(log, sys.stdout)
    sys.stderr = Printed(log, sys.stderr)
    connection = socket.socket(fileno=channel)
    settings = read(path)
    try:
        script = load(settings)
        loop = _new_loop()
        replica = _Replica(settings, script, loop, Numbers(counters, slot), log, drain_seconds)
        replica.start(socket.socket(fileno=listening), connection)
    except ScriptError as error:
        log.message(error.headline + "\n" + error.details)
        connection.sendall(_line({"error": _describe(error)}))
        return BROKEN
    connection.sendall(_line({"ready": True}))
    replica.serve()
    replica.application.settle()
    request_id.set("-")  # not that of the last request
    log.message("this replica has ended")
    return 0


class _Replica:
    def __init__(
        self,
        settings: Settings,
        script: Script,
        loop: asyncio.AbstractEventLoop,
        numbers: Numbers,
        log: Log,
        drain_seconds: float,
    ) -> None:
        self._loop = loop
        self._drain_seconds = drain_seconds
        self._main = MainThread(loop)
        self.application = Application(settings, numbers, log)
        # With several threads configured, the script supports being called from other threads.
        caller: Union[MainThread, Threads] = self._main if settings.threads == 1 else Threads(settings.threads)
        self.application.use(script, caller, loop)

    def start(self, listening: socket.socket, channel: socket.socket) -> None:
        acceptor = _load_acceptor()
        self._acceptor = acceptor.Acceptor(self.application, listening, self._loop)
        listening.setblocking(False)
        channel.setblocking(False)
        self._channel = channel
        self._loop.add_reader(channel, self._handle_commands)
        HealthFallback(self.application, listening, self._acceptor.take_connection).start()
        # These objects stay forever, so the garbage collector need not visit them again.
        gc.collect()
        gc.freeze()

    def serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        # The event loop must not wait 5 ms for its turn while `run` works in another thread.
        sys.setswitchinterval(0.001)
        self._main.serve()

    def _handle_commands(self) -> None:
        try:
            commands = self._channel.recv(16)
        except BlockingIOError:
            return
        except OSError:
            commands = b""
        if not commands:
            os._exit(0)
        if b"o" in commands:
            self._acceptor.open()
        if commands == b"o":
            return
        if not self.application.draining:
            self._drain()
        if b"s" in commands:
            self._acceptor.close_connections()

    def _drain(self) -> None:
        self.application.draining = True
        self._acceptor.close()
        self._end = monotonic() + self._drain_seconds
        self._look()

    def _look(self) -> None:
        if self._acceptor.is_empty or monotonic() > self._end:
            self._main.end()
        else:
            self._loop.call_later(_LOOK_SECONDS, self._look)


def _load_acceptor() -> Any:
    """Import uvicorn only here, so that a broken script is reported even if uvicorn is missing."""
    try:
        from . import acceptor
    except ModuleNotFoundError as error:
        raise ScriptError(
            "{} is missing in the environment of the service".format(error.name),
            hint="Add uvicorn to the environment, ideally with httptools, uvloop and orjson.",
        ) from None
    return acceptor


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _line(data: Dict[str, Any]) -> bytes:
    return json.dumps(data).encode("ascii") + b"\n"


def _describe(error: ScriptError) -> Dict[str, str]:
    return {"headline": error.headline, "cause": error.details, "hint": error.hint}

"""A server without a supervisor, as the first process of a container: it binds its port and ends on SIGTERM.

`order.json` says what to serve. The code is copied, so that scripts can write to their working folder and containers
that share a volume do not disturb each other. On SIGTERM it serves on for `linger_seconds`, while the cluster stops
sending connections here, then it answers what is open, and ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from typing import Any, Dict

from . import numbers, replica

MESSAGE = "/dev/termination-log"
"""What is written there, Kubernetes shows as the reason why the container has ended."""
_LONGEST_MESSAGE = 4000


def serve(path: str) -> int:
    """Serve until SIGTERM; return the exit code."""
    ended = _notice_sigterm()
    with open(path, "rb") as file:
        order: Dict[str, Any] = json.loads(file.read().decode("utf-8"))
    os.environ.update(order["variables"])
    folder = tempfile.mkdtemp(prefix="service-")
    settings = _lay_out(order, folder)
    counters = os.path.join(folder, "numbers")
    numbers.make(counters)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((order["host"], order["port"]))
    listening.listen(1024)
    ours, theirs = socket.socketpair()
    control = _Control(ours, ended, order["linger_seconds"])
    control.start()
    code = replica.serve(settings, listening.detach(), theirs.detach(), counters, 0, float(order["drain_seconds"]))
    if code == replica.BROKEN:
        control.join()
        _explain(control.error)
    return code


class _Control(threading.Thread):
    """What a supervisor would do: opens the replica when it is ready, and drains it at the end."""

    def __init__(self, channel: socket.socket, ended: int, linger_seconds: float) -> None:
        super().__init__(name="control", daemon=True)
        self.error: Dict[str, str] = {}
        self._channel = channel
        self._ended = ended
        self._linger_seconds = linger_seconds

    def run(self) -> None:
        answer = json.loads(self._channel.makefile("rb").readline().decode("utf-8") or "{}")
        if "ready" not in answer:
            self.error = answer.get("error", {})
            return
        self._channel.sendall(b"o")
        os.read(self._ended, 1)
        time.sleep(self._linger_seconds)
        self._channel.sendall(b"d")


def _notice_sigterm() -> int:
    """A descriptor that can be read once SIGTERM has arrived."""
    reading, writing = os.pipe()
    # The first process of a container gets no signal that it does not ask for.
    signal.signal(signal.SIGTERM, lambda number, frame: os.write(writing, b"t") and None)
    return reading


def _lay_out(order: Dict[str, Any], folder: str) -> str:
    """Copy the code, link the models, write the settings of the server; return their file."""
    working = os.path.join(folder, "code")
    shutil.copytree(order["code"], working, symlinks=True)
    if order["models"]:
        os.symlink(order["models"], os.path.join(working, "azureml-models"))
    code = os.path.join(working, order["code_folder"])
    scoring = dict(order["scoring"], working=working, code=code, log_probes=False)
    settings = os.path.join(folder, "server.json")
    with open(settings, "w") as file:
        json.dump(scoring, file)
    os.chdir(working)
    return settings


def _explain(error: Dict[str, str]) -> None:
    """Leave the error where the cluster finds it, whole lines from its end."""
    text = json.dumps(error)
    if len(text) > _LONGEST_MESSAGE:
        rest = dict(error, cause="")
        room = _LONGEST_MESSAGE - len(json.dumps(rest)) - 200
        text = json.dumps(dict(rest, cause=error.get("cause", "")[-max(room // 2, 0) :]))
    try:
        with open(MESSAGE, "w") as file:
            file.write(text)
    except OSError:
        return  # not in a container of Kubernetes

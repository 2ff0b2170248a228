"""Asking the dispatcher from inside a job, over its socket: for what lies in no file and in no variable of the job."""

import errno
import json
import os
import socket
import time

from trainmaster.errors import RunEnvironmentException, ServiceException, from_wire

# A dispatcher that was killed is replaced by the next client.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 60.0
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE)


def ask(op, args, what, hint, seconds=_ANSWER_SECONDS):
    """The result of operation `op`; `what` is asked for, and `hint` says what to do where nobody can be asked."""
    path = os.environ.get("TRAINMASTER_SOCKET", "")
    if not path:
        raise RunEnvironmentException(
            "{} cannot be had here".format(what),
            cause="the variable TRAINMASTER_SOCKET is not set",
            hint="Hand the variables TRAINMASTER_* on to the processes the script starts.",
        )
    request = {"id": 1, "op": op, "args": args}
    deadline = time.time() + _PATIENCE_SECONDS
    while True:
        try:
            return _answer(path, request, seconds)
        except OSError as error:
            failure = error
        if failure.errno not in _NOBODY or time.time() > deadline:
            raise ServiceException(
                "{} of the workspace cannot be asked for".format(what),
                cause="{}: {}".format(path, failure.strerror or failure),
                hint=hint,
            )
        time.sleep(_PAUSE_SECONDS)


def _answer(path, request, seconds):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(json.dumps(request).encode("ascii") + b"\n")
        with connection.makefile("rb") as reader:
            line = reader.readline()
    finally:
        connection.close()
    if not line.endswith(b"\n"):
        raise OSError(errno.ECONNRESET, "the dispatcher ended before it answered")
    reply = json.loads(line.decode("utf-8"))
    if "error" in reply:
        raise from_wire(reply["error"])
    return reply["result"]

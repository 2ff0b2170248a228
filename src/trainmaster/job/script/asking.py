"""Asking the dispatcher from inside a job, for what lies in no file and in no variable of the job.

On the dispatcher's own machine it is asked over its socket, from a container too, whose files it does not see but for
those of the run; elsewhere by a letter, which the engine passes on.
"""

import errno
import json
import os
import socket
import time

from trainmaster.job.agent.peer import is_trusted
from trainmaster.job.errors import RunEnvironmentException, ServiceException, from_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

# A dispatcher that was killed is replaced by the next client.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 60.0
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE)


def ask(op: str, args: "Mapping[str, Any]", what: str, hint: str, seconds: float = _ANSWER_SECONDS) -> "Any":
    """The result of operation `op`; `what` is asked for, and `hint` says what to do where nobody can be asked."""
    request = {"id": 1, "op": op, "args": args}
    if is_elsewhere():
        from trainmaster.job.script.requests import JobRequest

        with JobRequest(os.environ["TRAINMASTER_LETTERS"], what, hint) as letter:
            reply = letter.exchange(letter.with_files(request), seconds)
    elif os.environ.get("TRAINMASTER_CONTAINER"):
        from trainmaster.job.script.requests import JobRequest

        with JobRequest(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "letters"), what, hint) as letter:
            reply = _over_socket(letter.with_files_at_hand(request), what, hint, seconds)
    else:
        reply = _over_socket(request, what, hint, seconds)
    if "error" in reply:
        raise from_wire(reply["error"])
    return reply["result"]


def is_elsewhere() -> bool:
    """Whether this is another machine than the dispatcher's: paths of this one mean nothing there."""
    return bool(os.environ.get("TRAINMASTER_LETTERS"))


def can_ask() -> bool:
    """Whether there is a workspace to ask: this is a job."""
    return is_elsewhere() or bool(os.environ.get("TRAINMASTER_SOCKET"))


def _over_socket(request: "Mapping[str, Any]", what: str, hint: str, seconds: float) -> "Any":
    path = os.environ.get("TRAINMASTER_SOCKET", "")
    if not path:
        raise RunEnvironmentException(
            "{} cannot be had here".format(what),
            cause="the variable TRAINMASTER_SOCKET is not set",
            hint="Hand the variables TRAINMASTER_* on to the processes the script starts.",
        )
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


def _answer(path: str, request: "Mapping[str, Any]", seconds: float) -> "Any":
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
        if not is_trusted(connection, os.environ.get("TRAINMASTER_RUN_FOLDER", "")):
            raise OSError(errno.EPERM, "another user listens there, in the place of the dispatcher")
        connection.sendall(json.dumps(request).encode("ascii") + b"\n")
        with connection.makefile("rb") as reader:
            line = reader.readline()
    finally:
        connection.close()
    if not line.endswith(b"\n"):
        raise OSError(errno.ECONNRESET, "the dispatcher ended before it answered")
    return json.loads(line.decode("utf-8"))

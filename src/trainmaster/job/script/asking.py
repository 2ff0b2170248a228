"""Asks the dispatcher from inside a job, for what is neither in a file nor in a variable of the job.

On the dispatcher's own machine the request goes over its socket, from a container too; the dispatcher sees the files of
the run there, and no other files of the container. On other machines the request is a file, which the engine passes on.
"""

import errno
import os
import socket
import time

from trainmaster.job.agent.peer import is_trusted
from trainmaster.job.errors import RunEnvironmentException, ServiceException, from_wire
from trainmaster.job.helper import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

# The next client starts a new dispatcher if the old one was killed.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 60.0
_NO_DISPATCHER = (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE)


def ask(op: str, args: "Mapping[str, Any]", what: str, hint: str, seconds: float = _ANSWER_SECONDS) -> "Any":
    """The result of operation `op`; errors name `what` and give `hint` if the dispatcher cannot be reached."""
    request = messages.request(op, args)
    if is_elsewhere():
        from trainmaster.job.script.requests import JobRequest

        with JobRequest(os.environ["TRAINMASTER_LETTERS"], what, hint) as job_request:
            reply = job_request.exchange(job_request.with_files(request), seconds)
    elif os.environ.get("TRAINMASTER_CONTAINER"):
        from trainmaster.job.script.requests import JobRequest

        with JobRequest(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "letters"), what, hint) as job_request:
            reply = _ask_socket(job_request.with_visible_files(request), what, hint, seconds)
    else:
        reply = _ask_socket(request, what, hint, seconds)
    return messages.result_of(reply, from_wire)


def is_elsewhere() -> bool:
    """Whether this is not the dispatcher's machine: paths of this machine mean nothing there."""
    return bool(os.environ.get("TRAINMASTER_LETTERS"))


def can_ask() -> bool:
    """Whether this is a job, which has a workspace to ask."""
    return is_elsewhere() or bool(os.environ.get("TRAINMASTER_SOCKET"))


def _ask_socket(request: "Mapping[str, Any]", what: str, hint: str, seconds: float) -> "Any":
    path = os.environ.get("TRAINMASTER_SOCKET", "")
    if not path:
        raise RunEnvironmentException(
            "{} are not available here".format(what),
            cause="the variable TRAINMASTER_SOCKET is not set",
            hint="Pass the variables TRAINMASTER_* to the processes that the script starts.",
        )
    deadline = time.time() + _PATIENCE_SECONDS
    while True:
        try:
            return _answer(path, request, seconds)
        except OSError as error:
            failure = error
        if failure.errno not in _NO_DISPATCHER or time.time() > deadline:
            raise ServiceException(
                "the workspace cannot be asked for its {}".format(what),
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
            raise OSError(errno.EPERM, "the socket belongs to another user, not to the dispatcher")
        connection.sendall(messages.encode(request) + b"\n")
        with connection.makefile("rb") as reader:
            line = reader.readline()
    finally:
        connection.close()
    if not line.endswith(b"\n"):
        raise OSError(errno.ECONNRESET, "the dispatcher ended before it answered")
    return messages.decode(line)

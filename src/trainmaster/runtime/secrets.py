"""Secrets of the workspace, over the dispatcher's socket: they lie in no file and in no variable of the job."""

import errno
import json
import os
import socket
import time

from trainmaster.errors import RunEnvironmentException, ServiceException, UserErrorException, from_wire

# A dispatcher that was killed is replaced by the next client.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 60.0
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE)


def get_secrets(run_id, names):
    """Name to value; None, with a warning, for a name that the workspace does not have."""
    if not isinstance(names, (list, tuple, set)) or not all(isinstance(name, str) for name in names):
        raise UserErrorException("names of secrets must be a list of texts")
    found = _ask({"id": 1, "op": "secrets.fetch", "args": {"run_id": run_id, "names": list(names)}})
    for name in sorted(name for name, value in found.items() if value is None):
        import warnings

        warnings.warn("there is no secret {!r} in this workspace".format(name), stacklevel=3)
    return found


def _ask(request):
    path = os.environ.get("TRAINMASTER_SOCKET", "")
    if not path:
        raise RunEnvironmentException(
            "secrets cannot be had here",
            cause="the variable TRAINMASTER_SOCKET is not set",
            hint="Hand the variables TRAINMASTER_* on to the processes the script starts.",
        )
    deadline = time.time() + _PATIENCE_SECONDS
    while True:
        try:
            return _answer(path, request)
        except OSError as error:
            failure = error
        if failure.errno not in _NOBODY or time.time() > deadline:
            raise ServiceException(
                "the secrets of the workspace cannot be asked for",
                cause="{}: {}".format(path, failure.strerror or failure),
                hint="'trainmaster up' starts the dispatcher. In a container secrets cannot be had.",
            )
        time.sleep(_PAUSE_SECONDS)


def _answer(path, request):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_ANSWER_SECONDS)
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

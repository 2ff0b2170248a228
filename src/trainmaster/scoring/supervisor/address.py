"""The address of a service: chosen once, stored in its folder, and used again after every restart."""

from __future__ import annotations

import errno
import random
import socket
import time
from pathlib import Path

from trainmaster.job.agent import jsonfile
from trainmaster.job.errors import WebserviceException

_BACKLOG = 2048
# Below the range of ports for outgoing connections, so that none of them takes a service's port.
_FIRST, _LAST = 20000, 32000
# Replicas of a killed supervisor hold the address until they have ended.
_PATIENCE_SECONDS = 10.0


def listen(kept: Path, host: str, port: int) -> socket.socket:
    """Open the listening socket; without a requested port, on the port stored in `kept` or a free one."""
    noted = _read_port(kept, host)
    wanted = port or noted
    found = _bind_wanted(host, wanted, patient=wanted == noted) if wanted else _bind_any(host)
    jsonfile.write(str(kept), {"host": host, "port": found.getsockname()[1]})
    return found


def _read_port(kept: Path, host: str) -> int:
    try:
        noted = jsonfile.read(str(kept))
        return int(noted["port"]) if noted["host"] == host else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _bind_wanted(host: str, port: int, patient: bool) -> socket.socket:
    end = time.monotonic() + (_PATIENCE_SECONDS if patient else 0.0)
    while True:
        try:
            return _bind(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= end:
                raise WebserviceException(
                    f"the service cannot use the address {host}:{port}",
                    cause=error.strerror or str(error),
                    hint="Stop the program that uses this port, or deploy the service with another port.",
                ) from None
        time.sleep(0.05)


def _bind_any(host: str) -> socket.socket:
    for port in random.sample(range(_FIRST, _LAST), _LAST - _FIRST):
        try:
            return _bind(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise WebserviceException(
                    f"the service cannot listen on {host}", cause=error.strerror or str(error)
                ) from None
    raise WebserviceException(f"no port from {_FIRST} to {_LAST} is free on {host}")


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    made.setblocking(False)
    made.set_inheritable(True)
    return made

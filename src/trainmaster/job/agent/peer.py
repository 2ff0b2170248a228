"""Who is at the other end of a unix socket. Python 3.6, standard library."""

import _socket
import os


class Credentials(object):
    """Process id, user id and group id of a process."""

    __slots__ = ("group", "pid", "user")

    def __init__(self, pid: int, user: int, group: int) -> None:
        self.pid = pid
        self.user = user
        self.group = group


def credentials(connection: _socket.socket) -> Credentials:
    """The credentials of the process at the other end, according to the kernel."""
    import _struct

    form = "iII"
    known = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _struct.calcsize(form))
    return Credentials(*_struct.unpack(form, known))


def is_trusted(connection: _socket.socket, folder: "str | os.PathLike[str]" = "") -> bool:
    """Whether the process at the other end belongs to this user, to root, or to the owner of `folder`."""
    user = credentials(connection).user
    return user in (0, os.geteuid()) or (bool(folder) and user == _owner(folder))


def _owner(folder: "str | os.PathLike[str]") -> int:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return -1

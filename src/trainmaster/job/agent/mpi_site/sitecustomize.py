"""On the path of MPI ranks only: an uncaught exception ends the run, as it does without MPI.

A rank with mpi4py that raises an exception, or calls sys.exit with an error, would wait for the others in MPI_Finalize
while they wait for its messages: for ever. mpi4py's own solution is `python -m mpi4py`; with this module the script
starts unchanged.
"""

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

_MAIN = (os.getpid(), _thread.get_ident())


def _install() -> None:
    show = sys.excepthook

    def show_and_abort(kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None") -> None:
        show(kind, error, trace)
        _abort(1)

    def leave(status: object = None) -> "NoReturn":
        raise (_Exit if status and _is_main() else SystemExit)(status)

    sys.excepthook = show_and_abort
    sys.exit = leave


def _is_main() -> bool:
    """Whether this is the main thread, and not a thread, which ends alone, or a forked child, which is not a rank."""
    return (os.getpid(), _thread.get_ident()) == _MAIN


class _Exit(SystemExit):
    """A SystemExit that notices when Python itself reads its code, because it was not caught."""

    @property  # type: ignore[override]
    def code(self) -> object:
        status = _CODE.__get__(self)
        # Code that caught the exception would be in a frame.
        if sys._getframe().f_back is None and _is_main():
            _exit(status)
        return status

    @code.setter
    def code(self, status: object) -> None:
        _CODE.__set__(self, status)


_CODE = SystemExit.__dict__["code"]
_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
_Exit.__module__ = "builtins"


def _exit(status: object) -> None:
    """Exits as Python does: a number is the exit code, anything else is printed."""
    if not _has_peers():
        return
    if not isinstance(status, int):
        sys.stderr.write("{}\n".format(status))
    _abort(status & 0xFF if isinstance(status, int) else 1)


def _abort(code: int) -> None:
    if not _is_main() or not code or not _has_peers():
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # The stream does not exist or is closed.
            continue
    sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(code)


def _has_peers() -> bool:
    """Whether other ranks could wait for this one."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    return bool(mpi.COMM_WORLD.Get_size() > 1)


def _load_next() -> None:
    """Removes the folder of this file from the path and loads the sitecustomize of the environment."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        sys.modules[__name__] = own
        if error.name != __name__:
            raise


_install()
_load_next()

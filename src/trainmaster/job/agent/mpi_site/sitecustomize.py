"""On the path of MPI ranks only: an exception that nobody catches ends the run, as it does without MPI.

A rank with mpi4py that raises, or leaves by sys.exit with an error, would wait for the others in MPI_Finalize, while
they wait for what it owes them: for ever. mpi4py's own way out is `python -m mpi4py`; with this the script is started
as it is.
"""

import _thread
import os
import sys

_MAIN = (os.getpid(), _thread.get_ident())


def _arm():
    shown = sys.excepthook

    def show_and_end(kind, error, trace):
        shown(kind, error, trace)
        _abort(1)

    def leave(status=None):
        raise (_Exit if status and _is_main() else SystemExit)(status)

    sys.excepthook = show_and_end
    sys.exit = leave


def _is_main():
    """Not a thread, which ends alone, nor a forked child, which is no rank."""
    return (os.getpid(), _thread.get_ident()) == _MAIN


class _Exit(SystemExit):
    """A SystemExit that notices when it is Python itself that asks for its code, since nobody caught it."""

    @property
    def code(self):
        status = _CODE.__get__(self)
        # Whoever caught it would be there.
        if sys._getframe().f_back is None and _is_main():
            _leave(status)
        return status

    @code.setter
    def code(self, status):
        _CODE.__set__(self, status)


_CODE = SystemExit.__dict__["code"]
_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
_Exit.__module__ = "builtins"


def _leave(status):
    """As Python leaves: a number is the exit code, anything else is shown."""
    if not _is_among_others():
        return
    if not isinstance(status, int):
        sys.stderr.write("{}\n".format(status))
    _abort(status & 0xFF if isinstance(status, int) else 1)


def _abort(code):
    if not _is_main() or not code or not _is_among_others():
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # There is none, or it is closed: nothing to lose.
            continue
    sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(code)


def _is_among_others():
    """Whether the others could wait for this rank."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    return mpi.COMM_WORLD.Get_size() > 1


def _make_way():
    """As if this file were not there: the path without its folder, and the sitecustomize of the environment loaded."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        sys.modules[__name__] = own
        if error.name != __name__:
            raise


_arm()
_make_way()

"""On the path of MPI ranks only: an exception that nobody catches ends the run, as it does without MPI.

A rank with mpi4py that raises would wait for the others in MPI_Finalize, while they wait for what it owes them: for
ever. mpi4py's own way out is `python -m mpi4py`; with this the script is started as it is.
"""

import os
import sys


def _arm():
    shown, pid = sys.excepthook, os.getpid()

    def show_and_end(kind, error, trace):
        shown(kind, error, trace)
        # A forked child is no rank.
        if os.getpid() == pid:
            _abort()

    sys.excepthook = show_and_end


def _abort():
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.Get_size() == 1:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # There is none, or it is closed: nothing to lose.
            continue
    mpi.COMM_WORLD.Abort(1)


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

"""The time on machines whose clocks may differ, and waiting for a condition."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

# Network time synchronization leaves smaller differences, and file systems round times.
_MAX_DIFFERENCE = 2.0


def now(folder: "str | bytes") -> float:
    """The current time: by the clock of the folder's file system where this machine's clock is wrong.

    Nodes that share a folder compare these times to find out which of them failed first.
    """
    here = time.time()
    try:
        os.utime(folder)
        there = os.stat(folder).st_mtime
    except OSError:
        return here
    return there if abs(there - here) > _MAX_DIFFERENCE else here


def wait_until(condition: "Callable[[], bool]", seconds: float, pause: float = 0.05) -> bool:
    """Waits until `condition()` holds, for at most `seconds`; returns whether it held.

    For what no event announces: files that other processes write, and processes that are not children.
    """
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
    return True

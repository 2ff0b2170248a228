"""What time it is, for machines whose clocks may differ."""

import os
import time

# Less than this is what network time leaves, and what file systems round to.
_OFF_SECONDS = 2.0


def moment(folder):
    """Now; by the clock of the folder's file system where that of this machine is off.

    Nodes that share a folder are compared by such moments: which of them failed first?
    """
    now = time.time()
    try:
        os.utime(folder)
        there = os.stat(folder).st_mtime
    except OSError:
        return now
    return there if abs(there - now) > _OFF_SECONDS else now

"""result.json: the agent's last word, which must get onto the disk even when the disk is full."""

import os
import time

from trainmaster.job.agent import jsonfile

NAME = "result.json"
PART = NAME + ".part"
_RESERVED = 32768
_PATIENCE_SECONDS = 5.0


def reserve(folder):
    """Takes the room for the result now: a script that fills the disk must not silence its own failure."""
    try:
        jsonfile.write_new(os.path.join(folder, PART), " " * _RESERVED)
    except OSError:
        # Perhaps there is room at the end.
        pass


def write(folder, result):
    """Writes the result; the minimum of it if no more fits. False if nothing could be written."""
    minimum = dict(result, error=_shortened(result["error"]))
    if result["first_failure"]:
        minimum["first_failure"] = dict(result["first_failure"], tail="")
    minimum["processes"] = [dict(one, stack="") if one.get("stack") else one for one in result["processes"]]
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for version in (result, minimum):
            if _written(folder, jsonfile.dumps(version)):
                return True
        if time.monotonic() > until:
            return False
        time.sleep(0.1)


def _written(folder, text):
    part = os.path.join(folder, PART)
    try:
        # Not truncated before: the blocks that were reserved are what there is.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            data = text.encode("ascii")
            done = 0
            while done < len(data):
                done += os.write(handle, data[done:])
            os.ftruncate(handle, len(data))
        finally:
            os.close(handle)
        os.rename(part, os.path.join(folder, NAME))
    except OSError:
        return False
    return True


def _shortened(error):
    return error and {name: text[:500] for name, text in error.items()}

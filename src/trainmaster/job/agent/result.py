"""result.json: the agent's result, which must reach the disk even if the disk is full."""

import os

from trainmaster.job.agent import jsonfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "result.json"
PART = NAME + ".part"
_RESERVED = 32768
_PATIENCE_SECONDS = 5.0


def reserve(folder: str) -> None:
    """Reserves disk space for the result now, so that a script that fills the disk cannot hide its failure."""
    try:
        jsonfile.write_new(os.path.join(folder, PART), " " * _RESERVED)
    except OSError:
        # There may be space at the end of the run.
        pass


def write(folder: str, result: "dict[str, Any]") -> bool:
    """Writes the result, without its long texts if it does not fit. False if nothing could be written."""
    from trainmaster.job.agent.clock import wait_until

    texts = [jsonfile.dumps(result), jsonfile.dumps(_shorten(result))]
    return wait_until(lambda: any(_try_write(folder, text) for text in texts), _PATIENCE_SECONDS, pause=0.1)


def _shorten(result: "dict[str, Any]") -> "dict[str, Any]":
    error = result["error"]
    short = dict(result, error=error and {name: text[:500] for name, text in error.items()})
    if result["first_failure"]:
        short["first_failure"] = dict(result["first_failure"], tail="")
    short["processes"] = [dict(one, stack="") if one.get("stack") else one for one in result["processes"]]
    return short


def _try_write(folder: str, text: str) -> bool:
    part = os.path.join(folder, PART)
    try:
        # Not truncated first: the reserved blocks may be the only free ones.
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

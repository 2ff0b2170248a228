"""Asking the dispatcher from another machine than its own: by a letter, a file in the run's folder (docs/on-disk.md).

`<id>.ask` appears whole in the folder of letters. Whoever brings `<id>.answer` there takes it away again. Both can be
read by their owner alone, and the answer is gone as soon as it was read: there may be a secret in it.
"""

import json
import os
import sys
import time

from trainmaster.errors import ServiceException
from trainmaster.runtime.identity import new_id

ASK, ANSWER = ".ask", ".answer"

# A host that was cut off is reached again, and a dispatcher that was killed is replaced by the next client.
_PATIENCE_SECONDS = 900.0
_TELL_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def exchange(folder, request, what, hint, seconds):
    """The reply to a request; `what` is asked for, and `hint` says what to do where no answer comes."""
    name = new_id()
    mine = [os.path.join(folder, name + ending) for ending in (ASK, ANSWER)]
    try:
        _write(mine[0], json.dumps(request).encode("ascii"))
        return _answered(folder, name, what, hint, max(seconds, _PATIENCE_SECONDS))
    except OSError as error:
        raise ServiceException(
            "{} of the workspace cannot be asked for".format(what), cause="{}: {}".format(folder, error), hint=hint
        ) from error
    finally:
        for path in mine:
            _remove(path)


def _answered(folder, name, what, hint, seconds):
    began = time.monotonic()
    pause = _FIRST_PAUSE
    told = False
    # The folder is listed, because a network's file system remembers for long that a file was not there.
    while name + ANSWER not in os.listdir(folder):
        waited = time.monotonic() - began
        if waited > seconds:
            raise ServiceException(
                "{} of the workspace cannot be asked for".format(what),
                cause="nobody answered for {:.0f} seconds".format(waited),
                hint=hint,
            )
        if waited > _TELL_SECONDS and not told:
            told = True
            sys.stderr.write("trainmaster: still waiting for the workspace to answer about its {}\n".format(what))
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    with open(os.path.join(folder, name + ANSWER), "rb") as file:
        return json.loads(file.read().decode("utf-8"))


def _write(path, data):
    """A file for its owner alone, which appears whole."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.rename(path + ".part", path)


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass

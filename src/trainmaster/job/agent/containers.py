"""Processes in containers: the containers of a run are taken away by their engine, which alone knows all of them."""

import os
import subprocess
import time

from trainmaster.job.agent import spawn

# An engine that hangs must not keep an agent from saying how its run went.
_SECONDS = 15.0


def remove(processes, seconds=_SECONDS):
    """Takes away the containers of planned processes, whatever goes on in them. Returns what engines complained of."""
    until = time.monotonic() + seconds
    started = [(one, _start(one)) for one in processes if one.remove]
    return [text for text in (_complaint(one, removal, until) for one, removal in started) if text]


def _start(process):
    try:
        with open(os.devnull) as null:
            return subprocess.Popen(
                [spawn.encode(word) for word in process.remove],
                env={spawn.encode(name): spawn.encode(value) for name, value in process.env.items()},
                stdin=null,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
    except OSError as error:
        return error


def _complaint(process, removal, until):
    if isinstance(removal, OSError):
        said = str(removal)
    else:
        try:
            said = removal.communicate(timeout=max(0.0, until - time.monotonic()))[0].decode("utf-8", "replace")
            if removal.returncode == 0:
                return ""
        except subprocess.TimeoutExpired:
            removal.kill()
            removal.communicate()
            said = "it took too long"
    return "the container of rank {} could not be removed: {}".format(process.rank, said.strip())

"""Lets mpirun start its daemons on the other hosts of a run without logging in: the agents there start them.

`remote_launch.py ask <folder> [options] <host> <command>...` replaces ssh: it writes the command to a file, which the
engine that watches this host brings to the other host. `remote_launch.py wait <file>` waits there for the file and
becomes the command in it.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_PAUSE_SECONDS = 0.02


def ask(folder: str, words: "list[str]") -> None:
    """Writes which command to start on which host; returns at once, as ssh does for a program in the background."""
    from trainmaster.job.agent import jsonfile

    while words and words[0].startswith("-"):
        words = words[1:]
    host, command = words[0], " ".join(words[1:])
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, host.replace("/", "_") + ".json")
    jsonfile.write(path, {"version": 1, "host": host, "command": command})


def wait(path: str) -> "NoReturn":
    """Waits for the file `path` and becomes the command in it."""
    from trainmaster.job.agent import jsonfile

    while not os.path.exists(path):
        time.sleep(_PAUSE_SECONDS)
    command = jsonfile.read(path)["command"]
    os.execv("/bin/sh", ["/bin/sh", "-c", command])


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask(sys.argv[2], sys.argv[3:])
    else:
        wait(sys.argv[2])

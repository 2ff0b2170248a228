"""How mpirun reaches the other hosts of a run without logging in to them: their agents wait for what it wants started.

`reach.py ask <folder> [options] <host> <command>...` stands in for ssh: it notes the command, and who watches this host
brings it to the other. `reach.py wait <file>` waits there until the file has come, and becomes the command in it.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

_PAUSE_SECONDS = 0.02


def ask(folder, words):
    """Notes what is to be started on which host; returns at once, as ssh does for a program that goes on by itself."""
    from trainmaster.job.agent import jsonfile

    while words and words[0].startswith("-"):
        words = words[1:]
    host, command = words[0], " ".join(words[1:])
    os.makedirs(folder, exist_ok=True)
    place = os.path.join(folder, host.replace("/", "_") + ".json")
    jsonfile.write(place, {"version": 1, "host": host, "command": command})


def wait(path):
    """Becomes the command that was asked for here."""
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

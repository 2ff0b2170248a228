"""The first process of a pod: python3 -c <this text> <folder> <seconds>.

The agent is started later, by our helper (`job/helper/`), and its files are fetched through that helper too. This
process takes over orphans, passes SIGTERM on to the agent, and ends the pod in one of three cases: everything was
fetched (the file FETCHED), the pod was told to end and its agent has ended, or nobody has been here for a long time.
"""

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

FETCHED = "fetched"
_LOOK_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


class FirstProcess(object):
    """Waits until the pod may end."""

    def __init__(self, folder: str, seconds: float) -> None:
        """`folder` is the workspace's folder in the pod; `seconds` is how long the pod waits if nobody is here."""
        self._folder = folder
        self._seconds = seconds
        self._is_told = False
        self._seen_at = time.monotonic()

    def run(self) -> None:
        """Returns when the pod may end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        while not self._may_end():
            found = signal.sigtimedwait(_SIGNALS, _LOOK_SECONDS)
            _reap()
            if found is not None and found.si_signo != signal.SIGCHLD:
                self._is_told = True
                for pid in list(self._agents()):
                    _kill(pid, signal.SIGTERM)

    def _may_end(self) -> bool:
        if os.path.exists(os.path.join(self._folder, FETCHED)):
            return True
        is_alone = not any(True for _ in _others())
        if not is_alone:
            self._seen_at = time.monotonic()
        if self._is_told:
            # While somebody is connected, what a finished agent has written may still be fetched.
            return is_alone or not any(True for _ in self._claims())
        return time.monotonic() - self._seen_at > self._seconds

    def _agents(self) -> "Iterator[int]":
        """The agents that are alive."""
        for path in self._claims():
            try:
                with open(path, "rb") as file:
                    claim = json.loads(file.read().decode("utf-8"))
                if not claim.get("cancelled") and _start_time(claim["pid"]) == claim["start_time"]:
                    yield int(claim["pid"])
            except (OSError, ValueError, KeyError):
                continue

    def _claims(self) -> "Iterator[str]":
        """The claims of all agents that have been here."""
        runs = os.path.join(self._folder, "runs")
        for run in _names(runs):
            tops = [os.path.join(runs, run)]
            attempts = os.path.join(tops[0], "attempts")
            tops += [os.path.join(attempts, attempt) for attempt in _names(attempts)]
            for top in tops:
                for node in _names(os.path.join(top, "nodes")):
                    path = os.path.join(top, "nodes", node, "agent.json")
                    if os.path.exists(path):
                        yield path


def _names(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _others() -> "Iterator[int]":
    """The other processes of the pod."""
    for name in _names("/proc"):
        if name.isdigit() and int(name) != os.getpid() and _start_time(int(name)) is not None:
            yield int(name)


def _start_time(pid: int) -> "int | None":
    """When a process started, in ticks since the boot; None if it is gone."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X", b"x") else int(fields[19])


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except OSError:
            return


if __name__ == "__main__":
    FirstProcess(sys.argv[1], float(sys.argv[2])).run()

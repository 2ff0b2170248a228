"""The agents of runs on the host."""

import os
import signal
import sys
import time

from .files import names, read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# If the host has no free process, try again after these pauses.
_FORK_PAUSES = (0.1, 0.5, 1.0, 2.0)


class Kit(object):
    """The modules of the kit that this program needs.

    The kit may come from an older Trainmaster: the names that are used here must stay in every release.
    """

    def __init__(self, folder: str) -> None:
        if folder not in sys.path:
            sys.path.insert(0, folder)
        from trainmaster.job.agent import claim, process, tree

        self.folder = folder
        self.claim = claim
        self.process = process
        self.tree = tree


def identify(pid: int, kit: Kit) -> "dict[str, Any]":
    """Identifies a process among all processes, also of later boots."""
    return {"pid": pid, "start_time": kit.process.start_time(pid), "boot_id": kit.process.boot_id()}


def claim(folder: str, kit: Kit) -> None:
    """Claims a plan that no agent has claimed yet, so that an agent that is just starting does not execute it."""
    data = dict(identify(os.getpid(), kit), version=1, cgroup=None, cancelled=True)
    kit.claim.take(os.path.join(folder, kit.claim.NAME), data)


def end(folder: str, kit: Kit, number: int) -> None:
    """Signals the agent if it is alive."""
    found = read_json(folder + "/agent.json")
    if found and not found.get("cancelled"):
        if kit.process.is_alive(found["pid"], found["start_time"], found["boot_id"]):
            try:
                os.kill(found["pid"], number)
            except OSError:
                pass


def node_folders(run: str) -> "list[str]":
    """The folders of the nodes, of all attempts."""
    tops = [run] + [os.path.join(run, "attempts", each) for each in names(os.path.join(run, "attempts"))]
    return [os.path.join(top, "nodes", each) for top in tops for each in names(os.path.join(top, "nodes"))]


def start(folder: str, kit: Kit) -> "dict[str, Any]":
    """Starts the agent for the plan in `folder`; it survives this connection. Returns what identifies its process."""
    program = kit.folder + "/trainmaster/job/agent/__main__.py"
    started = identify(_spawn([sys.executable, "-I", "-S", program, folder + "/plan.json"], folder), kit)
    write_json(os.path.join(folder, "spawned.json"), started)
    return started


def _spawn(argv: "list[str]", folder: str) -> int:
    reading, writing = os.pipe()
    child = _fork()
    if child:
        os.close(writing)
        os.waitpid(child, 0)
        pid = int(os.read(reading, 20))
        os.close(reading)
        return pid
    try:
        os.setsid()
        grandchild = _fork()
        if grandchild:
            os.write(writing, str(grandchild).encode("ascii"))
            os._exit(0)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(folder + "/agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 1024)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        os.execv(argv[0], argv)
    finally:
        os._exit(127)


def _fork() -> int:
    for pause in _FORK_PAUSES:
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(pause)
    return os.fork()

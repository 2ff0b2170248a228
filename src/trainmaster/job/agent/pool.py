"""The agent pool: one Python that has imported the agent, and forks an agent for each plan that it receives.

The dispatcher keeps it while it starts many agents. Paths of plans arrive on standard input, each with a connection to
the dispatcher. The new agent sends its process id over this connection and, if all went well, `ended`; then it takes
another plan from there. So a sweep of short trials has as many agents as concurrent trials. The pool ends when its
input is closed, and an agent without work ends when its connection is closed. Neither needs the dispatcher for work
that has begun.
"""

import _signal  # type: ignore[import-not-found]
import _socket

# Imported once here instead of in every agent.
import _struct  # noqa: F401
import gc
import os
import resource  # noqa: F401
import select  # noqa: F401
import sys

from trainmaster.job.agent import agent, cause, folders, layout, notify, process, result, spawn, tail, tree  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Sequence

_LONGEST_REASON = 300
_LONGEST_MESSAGE = 1 << 18


def main(names: "Sequence[str]") -> int:
    """Serves until its input is closed. With `names`, imports these modules first and forks scripts of this Python."""
    if names:
        _preload(names)
    # The kernel reaps the children: nothing here waits for them.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    if hasattr(gc, "freeze"):
        gc.freeze()
    orders = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, 0)
    while True:
        plan, sent, _, _ = orders.recvmsg(_LONGEST_MESSAGE, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        if not sent:
            return 0
        connection = int.from_bytes(sent[0][2], sys.byteorder)
        if os.fork() == 0:
            _become_agent(plan, connection)
        os.close(connection)


def _preload(names: "Sequence[str]") -> None:
    """Reads the command of this Python and the variables of agents, imports `names`, and answers "ready" or why not."""
    from trainmaster.job.agent import jsonfile, preloaded

    text = os.read(0, _LONGEST_MESSAGE)
    if not text:
        os._exit(0)
    settings = jsonfile.loads(text.decode("utf-8", "surrogateescape"))
    # What modules print at import must get neither into the answer nor into the buffer of every script.
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        # The first two entries are the folders of this program.
        preloaded.preload(settings["python"], names, sys.path[2:])
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - a module may raise anything at import
        reason = "{}: {}".format(type(error).__name__, error).replace("\n", " ")[:_LONGEST_REASON]
        os.write(answers, reason.encode("utf-8", "replace"))
        os._exit(1)
    os.dup2(answers, 1)
    os.close(answers)
    os.environ.clear()
    os.environ.update(settings["variables"])
    os.write(1, b"ready")


def _become_agent(plan: bytes, connection: int) -> "NoReturn":
    code = 3
    try:
        os.setsid()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        spawn.keep_from_scripts(connection)
        os.write(connection, b"%d" % os.getpid())
        is_reusable = True
        while plan and is_reusable:
            path = plan.decode("utf-8", "surrogateescape")
            _redirect(os.path.join(os.path.dirname(path), "agent.log"))
            code, is_reusable = agent.execute(path)
            if is_reusable:
                plan = _next_plan(connection)
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not continue as a pool
        agent.log("the agent failed: {!r}".format(error))
    finally:
        os._exit(code)


def _next_plan(connection: int) -> bytes:
    """The next plan from the dispatcher; empty if there is none, or no dispatcher any more."""
    try:
        os.write(connection, b"ended")
        return os.read(connection, _LONGEST_MESSAGE)
    except OSError:
        return b""


def _redirect(log: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(spawn.encode(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(output)

"""Agents by fork: one Python that has loaded the agent already, and becomes one for the plans it is told of.

The dispatcher keeps it while it starts many agents. From its standard input come paths of plans, each with a line to
the dispatcher, over which the new agent says its process id and, when all went well, `ended`: then it takes another
plan from there. So a sweep of brief trials has as many agents as trials that go at once. The nursery ends with its
input, an agent when it has nothing to do and its line is closed: neither needs the dispatcher for what it has begun.
"""

import _signal  # type: ignore[import-not-found]
import _socket

# Loaded now, once, instead of in every agent.
import _struct  # noqa: F401
import gc
import os
import select  # noqa: F401
import sys

from trainmaster.job.agent import agent, cause, folders, layout, notify, process, result, spawn, tail, tree  # noqa: F401

_WHY_LENGTH = 300
_LONGEST = 1 << 18


def main(names):
    """Serves until its input ends. With `names` it imports them first: scripts of this Python are then its forks."""
    if names:
        _warm_up(names)
    # Its children are waited for by nobody here; the kernel takes them away.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    if hasattr(gc, "freeze"):
        gc.freeze()
    orders = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, 0)
    while True:
        plan, sent, _, _ = orders.recvmsg(_LONGEST, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        if not sent:
            return 0
        line = int.from_bytes(sent[0][2], sys.byteorder)
        if os.fork() == 0:
            _become_agent(plan, line)
        os.close(line)


def _warm_up(names):
    """Says "ready" when it is, or why not; first it hears as which command it runs, and the variables of agents."""
    from trainmaster.job.agent import jsonfile, preloaded

    text = os.read(0, _LONGEST)
    if not text:
        os._exit(0)
    told = jsonfile.loads(text.decode("utf-8", "surrogateescape"))
    # What a module prints when it is imported is no answer; nor should every script have it in its buffer.
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        # The first two are the folders of this program.
        preloaded.ready(told["python"], names, sys.path[2:])
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - a module may end in any way when it is imported
        why = "{}: {}".format(type(error).__name__, error).replace("\n", " ")[:_WHY_LENGTH]
        os.write(answers, why.encode("utf-8", "replace"))
        os._exit(1)
    os.dup2(answers, 1)
    os.close(answers)
    os.environ.clear()
    os.environ.update(told["variables"])
    os.write(1, b"ready")


def _become_agent(plan, line):
    code = 3
    try:
        os.setsid()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        spawn.keep_from_scripts(line)
        os.write(line, b"%d" % os.getpid())
        goes_on = True
        while plan and goes_on:
            path = plan.decode("utf-8", "surrogateescape")
            _redirect(os.path.join(os.path.dirname(path), "agent.log"))
            code, goes_on = agent.carry_out(path)
            if goes_on:
                plan = _next_plan(line)
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as a nursery
        agent.say("the agent failed: {!r}".format(error))
    finally:
        os._exit(code)


def _next_plan(line):
    """What to do after a plan that was carried out; nothing, if there is no dispatcher any more."""
    try:
        os.write(line, b"ended")
        return os.read(line, _LONGEST)
    except OSError:
        return b""


def _redirect(log):
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(spawn.encode(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
        # Those three are inherited by nobody: the script gets its own.
    os.close(null)
    os.close(output)

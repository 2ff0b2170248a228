"""Agents by fork: one Python that has loaded the agent already, and becomes one for every plan it is told of.

The dispatcher keeps it while it starts many agents. It reads lines `<plan.json>` from its standard input and answers
each with the new process's id. It ends with its input; its agents need it no more than they need the dispatcher.
"""

import _signal  # type: ignore[import-not-found]

# Loaded now, once, instead of in every agent.
import _socket  # noqa: F401
import _struct  # noqa: F401
import gc
import os
import select  # noqa: F401
import sys

from trainmaster.node import agent, cause, folders, layout, notify, process, result, spawn, tail, tree  # noqa: F401

_WHY_LENGTH = 300


def main(names):
    """Serves until its input ends. With `names` it imports them first: scripts of this Python are then its forks."""
    if names:
        _warm_up(names)
    # Its children are waited for by nobody here; the kernel takes them away.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    if hasattr(gc, "freeze"):
        gc.freeze()
    rest = b""
    while True:
        text = os.read(0, 65536)
        if not text:
            return 0
        *lines, rest = (rest + text).split(b"\n")
        for line in lines:
            pid = os.fork()
            if pid == 0:
                _become_agent(line.decode("utf-8", "surrogateescape"))
            os.write(1, b"%d\n" % pid)


def _warm_up(names):
    """Says "ready" when it is, or why not; first it hears as which command it runs, and the variables of agents."""
    from trainmaster.node import jsonfile, warm

    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            os._exit(0)
        text += part
    told = jsonfile.loads(text.decode("utf-8", "surrogateescape"))
    # What a module prints when it is imported is no answer; nor should every script have it in its buffer.
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        # The first two are the folders of this program.
        warm.ready(told["python"], names, sys.path[2:])
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - a module may end in any way when it is imported
        why = "{}: {}".format(type(error).__name__, error).replace("\n", " ")[:_WHY_LENGTH]
        os.write(answers, why.encode("utf-8", "replace") + b"\n")
        os._exit(1)
    os.dup2(answers, 1)
    os.close(answers)
    os.environ.clear()
    os.environ.update(told["variables"])
    os.write(1, b"ready\n")


def _become_agent(plan):
    code = 3
    try:
        os.setsid()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        _redirect(os.path.join(os.path.dirname(plan), "agent.log"))
        code = agent.main([plan])
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as a nursery
        agent.say("the agent failed: {!r}".format(error))
    finally:
        os._exit(code)


def _redirect(log):
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(spawn.encode(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
        # Those three are inherited by nobody: the script gets its own.
    os.close(null)
    os.close(output)

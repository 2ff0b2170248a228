"""What the agent does with a run that has fallen silent: every rank writes where it stands before it is ended."""

import os
import time

from trainmaster.job.agent import jsonfile, process, stacks, tree

# A mpirun that has to reach every rank, and ranks that have to write, on a machine that may be busy.
_PATIENCE_SECONDS = 20.0
# Agents of other nodes see the silence at the same moment, give or take what keeps them busy.
_OTHERS_SECONDS = 5.0


def take_down(plan, folder, silence, ranks, whole_tree):
    """Notes the hang and has the stacks of all ranks of this node written into their logs."""
    silence.note()
    if plan.rank_count:
        _ask_launcher(plan, folder, ranks)
    else:
        paths = {one.rank: one.env.get("PATH", "") for one in plan.processes}
        left = {one.rank: one for one in ranks if not one.ended}
        places = [stacks.Place(one.rank, one.log, paths[one.rank]) for one in left.values()]
        for rank, text in stacks.dump(places, whole_tree, silence.seconds).items():
            left[rank].stack = text
    _wait_until(lambda: not silence.others(), _OTHERS_SECONDS)


def tree_of_agent(environ):
    """The processes of the agent that started the process with these variables."""
    return tree.Tree("{}={}".format(tree.NODE_VARIABLE, environ.get(tree.NODE_VARIABLE, "")))


def _ask_launcher(plan, folder, ranks):
    """SIGUSR1 is passed on by mpirun, to whatever machine; rank.py does the rest there, and notes it."""
    import _signal  # type: ignore[import-not-found]

    for one in ranks:
        launcher = process.look(one.pid)
        if launcher is not None and launcher.start_time == one.start_time:
            process.send(launcher, _signal.SIGUSR1)
    names = [os.path.join(folder, "ranks", "{}.json".format(rank)) for rank in range(plan.rank_count)]
    _wait_until(lambda: all(_has_told(_read(name)) for name in names), _PATIENCE_SECONDS)


def _has_told(note):
    return note is None or bool(note.get("stack") or note.get("ended_at"))


def _read(path):
    try:
        return jsonfile.read(path)
    except (OSError, ValueError):
        return None


def _wait_until(condition, seconds):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)

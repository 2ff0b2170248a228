"""Makes every rank of a silent run write its stack before the agent ends it."""

import os

from trainmaster.job.agent import jsonfile, process, stacks, tree
from trainmaster.job.agent.clock import wait_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from trainmaster.job.agent.plan import Plan
    from trainmaster.job.agent.ranks import Rank
    from trainmaster.job.agent.silence import Silence

# mpirun has to reach every rank, and the ranks have to write, on a machine that may be busy.
_LAUNCHER_SECONDS = 20.0
# The agents of the other nodes notice the silence at about the same moment.
_OTHER_NODES_SECONDS = 5.0


def write_stacks(
    plan: "Plan", folder: str, silence: "Silence", ranks: "Sequence[Rank]", whole_tree: "tree.Tree"
) -> None:
    """Notes the hang and has the stacks of all ranks of this node written to their logs."""
    silence.note()
    if plan.rank_count:
        _signal_launcher(plan, folder, ranks)
    else:
        paths = {one.rank: one.env.get("PATH", "") for one in plan.processes}
        running = {one.rank: one for one in ranks if not one.has_ended}
        targets = [stacks.Target(one.rank, one.log, paths[one.rank]) for one in running.values()]
        for rank, text in stacks.dump(targets, whole_tree, silence.seconds).items():
            running[rank].stack = text
    wait_until(lambda: not silence.nodes_without_note(), _OTHER_NODES_SECONDS)


def tree_of_agent(environment: "Mapping[str, str]") -> "tree.Tree":
    """The processes of the agent that started a process with these variables."""
    return tree.Tree("{}={}".format(tree.NODE_VARIABLE, environment.get(tree.NODE_VARIABLE, "")))


def _signal_launcher(plan: "Plan", folder: str, ranks: "Sequence[Rank]") -> None:
    """Sends SIGUSR1 to mpirun, which passes it on to every machine. There rank.py writes the stack and notes it."""
    import _signal  # type: ignore[import-not-found]

    for one in ranks:
        launcher = process.look(one.pid)
        if launcher is not None and launcher.start_time == one.start_time:
            process.send(launcher, _signal.SIGUSR1)
    paths = [os.path.join(folder, "ranks", "{}.json".format(rank)) for rank in range(plan.rank_count)]
    wait_until(lambda: all(_is_complete(jsonfile.read_if_valid(path)) for path in paths), _LAUNCHER_SECONDS)


def _is_complete(note: "dict[str, Any] | None") -> bool:
    return note is None or bool(note.get("stack") or note.get("ended_at"))

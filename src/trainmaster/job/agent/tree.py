"""All processes of a run: finds them in three ways, so that none is missed, and ends them.

    cgroup     everything that was forked, however often, unless it moved itself out
    descent    children of the agent: as the subreaper it inherits every orphan of its tree
    variable   what other programs started (`at`, a running tmux server) still has the run's variables

Never signals this process, its ancestors, excluded processes, or one that is not identified by id *and* start time.
"""

import _signal  # type: ignore[import-not-found]
import os
import time

from trainmaster.job.agent import cgroup as cgroups
from trainmaster.job.agent import clock, preloaded, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Sequence

    from trainmaster.job.agent.process import Process

RUN_VARIABLE = "TRAINMASTER_RUN_ID"
# The agents of two nodes may share a machine: this variable tells their processes apart.
NODE_VARIABLE = "TRAINMASTER_AGENT"
# The image of a process in a container; the programs of the container engine do not have it.
INSIDE_VARIABLE = "TRAINMASTER_CONTAINER"
# In `met`: stands for all processes that ended before they could be identified.
_UNSEEN = (0, 0)
_YOUNG_SECONDS = 2.0
_FEW = 64
# The second is the path of agents of the first release: the dispatcher adopts them too.
_AGENTS = (b"/trainmaster/job/agent/__main__.py", b"/trainmaster/node/__main__.py")


class Tree(object):
    """The processes of one run (or one node of it) on this machine, and what is needed to find them."""

    def __init__(
        self,
        marker: str,
        cgroup: "str | None" = None,
        root: "int | None" = None,
        since: int = 0,
        exclude: "Iterable[int]" = (),
        born: float = 0.0,
        newest: int = 0,
    ) -> None:
        """`root` is the id of this process, or None.

        `born` is when the tree began, by the monotonic clock, and `newest` the last process id assigned before that.
        """
        self.marker = marker
        self._marker = b"\0" + marker.encode("utf-8", "surrogateescape") + b"\0"
        self.cgroup = cgroup
        self._root = root
        self._since = since
        self._protected = {0, 1, os.getpid()} | set(exclude)
        self._born = born
        self._newest = newest
        self._asked: "set[tuple[int, int]]" = set()
        self._engine_pids: "set[int] | None" = None
        self.met: "set[tuple[int, int | None]]" = set()

    def protect(self, pid: int) -> None:
        """From now on this process and its descendants do not belong to the tree."""
        self._protected.add(pid)

    def set_engine_pids(self, pids: "Iterable[int]") -> None:
        """The processes are in containers that the programs `pids` of a container engine started.

        Then only processes inside are asked to end, and the engine's programs end by themselves: they might pass the
        signal on, so that processes would get it twice. While nothing is found inside, the programs are asked.
        """
        self._engine_pids = set(pids)

    def find(self) -> "list[Process]":
        """The living processes of the tree."""
        candidates = self._candidates()
        protected = self._protected | _ancestors(os.getpid(), candidates)
        inside = cgroups.pids(self.cgroup) if self.cgroup else []
        for pid in inside:
            # Started while the table was made.
            found = None if pid in candidates else process.look(pid)
            if found is not None:
                candidates[pid] = found
        marked = [one.pid for one in candidates.values() if self._is_marked(one)]
        table = {pid: one for pid, one in candidates.items() if pid not in protected}
        own = _with_descendants(table, [pid for pid in inside if pid in table] + marked, self._root)
        return [table[pid] for pid in sorted(own) if not table[pid].gone]

    def find_apart(self) -> "tuple[list[Process], list[Process]]":
        """Like `find`, in two lists: the script's processes, and the container engine's programs that relay output."""
        found = self.find()
        inside = {one.pid for one in found if self._engine_pids is None or _is_inside(one)}
        return [one for one in found if one.pid in inside], [one for one in found if one.pid not in inside]

    def _candidates(self) -> "dict[int, Process]":
        """The processes that may belong to the tree.

        Linux assigns ids in ascending order. So the ids of a young tree are larger than the newest id before it, unless
        the count restarted: then the newest id is smaller now, and all processes are candidates. The count does not
        wrap around completely within seconds.
        """
        if not self._newest or time.monotonic() - self._born > _YOUNG_SECONDS:
            return _all_processes()
        newest = process.newest()
        if 0 <= newest - self._newest <= _FEW:
            return _processes_between(self._newest + 1, newest)
        return _all_processes(self._newest + 1 if newest > self._newest else 0)

    def _is_marked(self, one: "Process") -> bool:
        # Only processes younger than the agent can belong to its run; children of 2 are kernel threads.
        if one.start_time < self._since or one.gone or one.parent == 2:
            return False
        variables = process.read("/proc/{}/environ".format(one.pid))
        return bool(variables) and self._marker in b"\0" + (variables or b"")

    def ask_to_end(self) -> "list[Process]":
        """Sends SIGTERM once to each process (to many programs a second one means "at once"). Returns the processes."""
        scripts, engine = self.find_apart()
        for one in scripts or [one for one in engine if one.pid in (self._engine_pids or ())]:
            if one.name not in self._asked:
                self._asked.add(one.name)
                process.send(one, _signal.SIGTERM)
                # A stopped process would not receive it.
                process.send(one, _signal.SIGCONT)
        return scripts + engine

    def kill(self) -> "list[Process]":
        """Sends SIGKILL to all processes. Returns those found; others may have been started in the meantime."""
        found = self.find()
        # Killing a cgroup spares no process, so it must not contain a protected one.
        if self.cgroup and not self._protected.intersection(cgroups.pids(self.cgroup)):
            cgroups.kill(self.cgroup)
        for one in found:
            process.send(one, _signal.SIGKILL)
        self._kill_children()
        return found

    def _kill_children(self) -> None:
        """Catches processes that fork and exit faster than /proc can be read: orphans become the root's children.

        Only the root itself reaps them, so their ids cannot belong to other processes.
        """
        for _ in range(200):
            children = self._children()
            if not children:
                return
            for pid in children:
                os.kill(pid, _signal.SIGKILL)

    def _children(self) -> "list[int]":
        """The root's children that may be ended, dead ones too: the kernel lists all of them at one moment."""
        if self._root != os.getpid():
            return []
        listing = process.read("/proc/{0}/task/{0}/children".format(self._root)) or b""
        return [pid for pid in map(int, listing.split()) if pid not in self._protected]

    def end(
        self,
        term_until: "Callable[[], float]",
        give_up_after: float = 10.0,
        wait: "Callable[[Sequence[Process], float], object] | None" = None,
        reap: "Callable[[], object] | None" = None,
    ) -> "list[Process]":
        """Ends every process of the tree: asks until the time `term_until()`, then kills until none is left.

        Times are of the monotonic clock. `wait(processes, seconds)` waits between two checks and may return early;
        `reap()` reaps ended children. Returns the processes that even SIGKILL did not end.
        """
        wait, reap = wait or wait_for_any, reap or _do_nothing
        found = self._remember(self.ask_to_end())
        pause = 0.005
        while found or not self._is_clear(reap):
            left = term_until() - time.monotonic()
            if left <= 0:
                break
            # If nothing is found although something is there, it hides by forking, and only killing catches it.
            wait(found, left if found else min(left, pause))
            pause = min(2 * pause, 0.2)
            found = _living(found) or self._remember(self.ask_to_end())
        give_up = time.monotonic() + give_up_after
        while (found or not self._is_clear(reap)) and time.monotonic() < give_up:
            if not found:
                self.met.add(_UNSEEN)
            found = self._remember(self.kill())
            wait(found, 0.01)
            found = _living(found) or self._remember(self.find())
        return found or [one for one in map(process.look, self._children()) if one is not None and not one.gone]

    def _is_clear(self, reap: "Callable[[], object]") -> bool:
        """Whether really no process is left. `find` misses processes that start while it looks; these checks do not."""
        reap()
        return not self._children() and not (self.cgroup and self._is_populated(self.cgroup))

    def _is_populated(self, cgroup: str) -> bool:
        return cgroups.is_populated(cgroup) and not self._protected.intersection(cgroups.pids(cgroup))

    def _remember(self, found: "list[Process]") -> "list[Process]":
        self.met.update(one.name for one in found)
        return found


def sweep(
    run_id: str,
    cgroup: "str | None" = None,
    exclude_pids: "Iterable[int]" = (),
    node: "int | None" = None,
    grace_seconds: float = 2.0,
    give_up_after: float = 10.0,
) -> "tuple[int, list[tuple[int, int, str]]]":
    """Ends all processes of a run whose agent is gone, and removes its cgroup.

    With `node`, only those of that node. Returns how many processes it ended, and those that it could not end as (pid,
    start_time, command).
    """
    tree = _tree_of(run_id, cgroup, exclude_pids, node)
    until = time.monotonic() + grace_seconds
    survivors = tree.end(lambda: until, give_up_after)
    if tree.cgroup:
        remove_cgroup(tree.cgroup)
    return len(tree.met) - len(survivors), [_describe(one) for one in survivors]


def processes_of(run_id: str, cgroup: "str | None" = None) -> "list[tuple[int, int, str]]":
    """The living processes of a run as (pid, start_time, command), without its agents."""
    return [_describe(one) for one in _tree_of(run_id, cgroup, (), None).find()]


def remove_cgroup(path: str, seconds: float = 1.0) -> None:
    """Removes a run's cgroup; for a moment after the end of its last process it is still in use."""
    clock.wait_until(lambda: cgroups.remove(path), seconds, pause=0.01)


def node_marker(run_id: str, node: int) -> str:
    """The value of NODE_VARIABLE for this node of the run."""
    return "{}/{}".format(run_id, node)


def wait_for_any(processes: "Sequence[Process]", seconds: float, wake: "Iterable[int]" = ()) -> None:
    """Returns when a process has ended or one of the handles `wake` is readable, at the latest after `seconds`."""
    seconds = min(max(0.0, seconds), 3600.0)
    handles = _handles(processes)
    if len(handles) < len(processes):
        # Without a handle for each process (Python before 3.9), polling is the only way.
        seconds = min(seconds, 0.02)
    import select

    try:
        poll = select.poll()
        for handle in handles + list(wake):
            poll.register(handle, select.POLLIN)
        poll.poll(int(seconds * 1000) + 1)
    finally:
        for handle in handles:
            os.close(handle)


def _handles(processes: "Sequence[Process]") -> "list[int]":
    handles: "list[int]" = []
    if hasattr(os, "pidfd_open"):
        # Few enough to stay below the limit on open files.
        for one in processes[:100]:
            try:
                handles.append(os.pidfd_open(one.pid))
            except OSError:
                break
    return handles


def _tree_of(run_id: str, cgroup: "str | None", exclude_pids: "Iterable[int]", node: "int | None") -> Tree:
    # A claim that was edited by hand must not end another cgroup.
    if cgroup and not os.path.basename(cgroup).startswith("trainmaster-{}-".format(run_id)):
        cgroup = None
    name, value = (RUN_VARIABLE, run_id) if node is None else (NODE_VARIABLE, node_marker(run_id, node))
    return Tree("{}={}".format(name, value), cgroup=cgroup, exclude=exclude_pids)


def _with_descendants(table: "dict[int, Process]", starts: "Iterable[int]", root: "int | None") -> "set[int]":
    """The process ids `starts` and all below them and below `root`.

    Never passes through a process that is not in the table, or through another agent: a script may have started the
    dispatcher that started that agent, which serves another run.
    """
    children: "dict[int | None, list[int]]" = {}
    for one in table.values():
        children.setdefault(one.parent, []).append(one.pid)
    own: "set[int]" = set()
    ready = list(starts) + children.get(root, [])
    while ready:
        pid = ready.pop()
        if pid in table and pid not in own and not _is_agent(table[pid]):
            own.add(pid)
            ready.extend(children.get(pid, ()))
    return own


def _is_inside(one: "Process") -> bool:
    variables = process.read("/proc/{}/environ".format(one.pid)) or b""
    return b"\0" + INSIDE_VARIABLE.encode("ascii") + b"=" in b"\0" + variables


def _is_agent(one: "Process") -> bool:
    if one.command == preloaded.NAME.decode("ascii"):
        return False
    arguments = (process.read("/proc/{}/cmdline".format(one.pid)) or b"").split(b"\0")
    return any(argument.endswith(_AGENTS) for argument in arguments[1:])


def _processes_between(first: int, last: int) -> "dict[int, Process]":
    """Cheaper than listing all processes if there are few ids. Threads have ids too, but are left out."""
    found = (process.look(pid) for pid in range(first, last + 1))
    return {one.pid: one for one in found if one is not None and not process.is_thread(one.pid)}


def _all_processes(least: int = 0) -> "dict[int, Process]":
    found = (process.look(name) for name in os.listdir("/proc") if name.isdigit() and int(name) >= least)
    return {one.pid: one for one in found if one is not None}


def _ancestors(pid: int, table: "dict[int, Process]") -> "set[int]":
    found: "set[int]" = set()
    while pid in table and table[pid].parent not in found:
        pid = table[pid].parent
        found.add(pid)
    return found


def _living(processes: "Iterable[Process]") -> "list[Process]":
    seen = [(one, process.look(one.pid)) for one in processes]
    return [one for one, now in seen if now is not None and now.name == one.name and not now.gone]


def _do_nothing() -> None:
    return None


def _describe(one: "Process") -> "tuple[int, int, str]":
    command = (process.read("/proc/{}/cmdline".format(one.pid)) or b"").replace(b"\0", b" ").strip()
    return one.pid, one.start_time, command.decode("utf-8", "replace") or one.command

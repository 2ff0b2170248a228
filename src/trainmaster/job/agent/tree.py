"""All processes of a run: found in three ways, so that none is missed, and ended.

    cgroup     whatever forked, however often, unless it moved itself out
    descent    children of the agent: as the subreaper it inherits every orphan of its tree
    variable   what others were asked to start (`at`, a running tmux server) still carries the run's variables

Never signals this process, its ancestors, those excluded, or what is not named by id *and* start time.
"""

import _signal  # type: ignore[import-not-found]
import os
import time

from trainmaster.job.agent import cgroup as cgroups
from trainmaster.job.agent import preloaded, process

RUN_VARIABLE = "TRAINMASTER_RUN_ID"
# The agents of two nodes may share a machine: this one tells their processes apart.
NODE_VARIABLE = "TRAINMASTER_AGENT"
# Which image a process is in; the programs of a container engine do not have it.
INSIDE_VARIABLE = "TRAINMASTER_CONTAINER"
# Stands among those met for all that were too quick to be named.
_UNSEEN = (0, 0)
_YOUNG_SECONDS = 2.0
_FEW = 64
# The second is where agents of the first release lie: they are adopted too.
_AGENTS = (b"/trainmaster/job/agent/__main__.py", b"/trainmaster/node/__main__.py")


class Tree(object):
    """What belongs to one run (or one node of it) on this machine, and what it takes to find it."""

    def __init__(self, marker, cgroup=None, root=None, since=0, exclude=(), born=None, newest=0):
        """`root` is this process or none.

        `born` is when the tree began, by the monotonic clock, and `newest` the last process id given out before.
        """
        self._marker = b"\0" + marker.encode("utf-8", "surrogateescape") + b"\0"
        self.cgroup = cgroup
        self._root = root
        self._since = since
        self._protected = {0, 1, os.getpid()} | set(exclude)
        self._born = born
        self._newest = newest
        self._told = set()
        self._engine_pids = None
        self.met = set()

    def protect(self, pid):
        """From now on this process and what it started are not of the tree."""
        self._protected.add(pid)

    def in_containers(self, pids):
        """Its processes are in containers, which were started by the programs `pids` of an engine.

        Only what is inside is asked to end, and the engine's programs then end by themselves; they might pass it on, so
        that it would be heard twice. While nothing is found inside, they are the ones to ask.
        """
        self._engine_pids = set(pids)

    def find(self):
        """The living processes of the tree."""
        table = self._candidates()
        protected = self._protected | _ancestors(os.getpid(), table)
        inside = cgroups.pids(self.cgroup) if self.cgroup else ()
        for pid in inside:
            # Born while the table was made.
            if pid not in table:
                table[pid] = process.look(pid)
        marked = [one.pid for one in table.values() if one is not None and self._is_marked(one)]
        table = {pid: one for pid, one in table.items() if one is not None and pid not in protected}
        own = _with_descendants(table, [pid for pid in inside if pid in table] + marked, self._root)
        return [table[pid] for pid in sorted(own) if not table[pid].gone]

    def find_apart(self):
        """The same in two lists: those of the script, and programs of a container engine, through which it prints."""
        found = self.find()
        inside = {one.pid for one in found if self._engine_pids is None or _is_inside(one)}
        return [one for one in found if one.pid in inside], [one for one in found if one.pid not in inside]

    def _candidates(self):
        """All processes among which those of the tree are.

        Ids are given out in turn, so that those of a young tree are larger than the newest was before, unless the
        count began anew meanwhile: then the newest is less, and all are looked at. Nothing goes round within seconds.
        """
        if not self._newest or time.monotonic() - self._born > _YOUNG_SECONDS:
            return _all_processes()
        newest = process.newest()
        if 0 <= newest - self._newest <= _FEW:
            return _processes_between(self._newest + 1, newest)
        return _all_processes(self._newest + 1 if newest > self._newest else 0)

    def _is_marked(self, one):
        # Only processes younger than the agent can be of its run; children of 2 are threads of the kernel.
        if one.start_time < self._since or one.gone or one.parent == 2:
            return False
        variables = process.read("/proc/{}/environ".format(one.pid))
        return bool(variables) and self._marker in b"\0" + variables

    def ask_to_end(self):
        """SIGTERM, once for each process (a second means "at once" to many programs). Returns those found."""
        scripts, engine = self.find_apart()
        for one in scripts or [one for one in engine if one.pid in (self._engine_pids or ())]:
            if one.name not in self._told:
                self._told.add(one.name)
                process.send(one, _signal.SIGTERM)
                # One that was stopped would never see it.
                process.send(one, _signal.SIGCONT)
        return scripts + engine

    def kill(self):
        """SIGKILL for all of it. Returns what was found; more may have been born meanwhile."""
        found = self.find()
        # Not if it holds somebody who may not be killed: it makes no exceptions.
        if self.cgroup and not self._protected.intersection(cgroups.pids(self.cgroup)):
            cgroups.kill(self.cgroup)
        for one in found:
            process.send(one, _signal.SIGKILL)
        self._kill_children()
        return found

    def _kill_children(self):
        """Catches what forks and exits faster than /proc can be read: as orphans its children become the root's.

        Only the root itself reaps them, so their ids cannot have passed to somebody else.
        """
        for _ in range(200):
            left = self._children()
            if not left:
                return
            for pid in left:
                os.kill(pid, _signal.SIGKILL)

    def _children(self):
        """The root's children that may be ended, dead ones too: the kernel lists them all at one moment."""
        if self._root != os.getpid():
            return []
        listed = process.read("/proc/{0}/task/{0}/children".format(self._root)) or b""
        return [pid for pid in map(int, listed.split()) if pid not in self._protected]

    def end(self, term_until, give_up_after=10.0, wait=None, reap=None):
        """Ends every process of the tree: asks until the time `term_until()`, then kills until none is left.

        Times are of the monotonic clock. `wait(processes, seconds)` passes the time between two looks and may
        return early; `reap()` takes away ended children. Returns those that even SIGKILL did not end.
        """
        wait, reap = wait or wait_for_any, reap or _nothing
        found = self._noted(self.ask_to_end())
        pause = 0.005
        while found or not self._is_clear(reap):
            left = term_until() - time.monotonic()
            if left <= 0:
                break
            # Nothing found though something is there: it hides by forking, and only killing catches it.
            wait(found, left if found else min(left, pause))
            pause = min(2 * pause, 0.2)
            found = _living(found) or self._noted(self.ask_to_end())
        give_up = time.monotonic() + give_up_after
        while (found or not self._is_clear(reap)) and time.monotonic() < give_up:
            if not found:
                self.met.add(_UNSEEN)
            found = self._noted(self.kill())
            wait(found, 0.01)
            found = _living(found) or self._noted(self.find())
        return found or [one for one in map(process.look, self._children()) if one is not None and not one.gone]

    def _is_clear(self, reap):
        """Whether an empty look can be believed: it misses what is born behind its back, these two do not."""
        reap()
        return not self._children() and not (self.cgroup and self._is_populated())

    def _is_populated(self):
        return cgroups.is_populated(self.cgroup) and not self._protected.intersection(cgroups.pids(self.cgroup))

    def _noted(self, found):
        self.met.update(one.name for one in found)
        return found


def sweep(run_id, cgroup=None, exclude_pids=(), node=None, grace_seconds=2.0, give_up_after=10.0):
    """Ends all processes of a run whose agent is gone and removes its cgroup.

    With `node`, only those of that node. Returns how many processes were ended, and those that could not be
    as (pid, start_time, command).
    """
    tree = _tree_of(run_id, cgroup, exclude_pids, node)
    until = time.monotonic() + grace_seconds
    survivors = tree.end(lambda: until, give_up_after)
    if tree.cgroup:
        remove_cgroup(tree.cgroup)
    return len(tree.met) - len(survivors), [_described(one) for one in survivors]


def processes_of(run_id, cgroup=None):
    """The living processes of a run as (pid, start_time, command), without its agents."""
    return [_described(one) for one in _tree_of(run_id, cgroup, (), None).find()]


def remove_cgroup(path, seconds=1.0):
    """Removes a run's cgroup; for a moment after its last process it is still in use."""
    until = time.monotonic() + seconds
    while not cgroups.remove(path) and time.monotonic() < until:
        time.sleep(0.01)


def node_marker(run_id, node):
    """The value of NODE_VARIABLE for this node of the run."""
    return "{}/{}".format(run_id, node)


def wait_for_any(processes, seconds, wake=()):
    """Returns when a process has ended or one of `wake` can be read, at the latest after `seconds`."""
    seconds = min(max(0.0, seconds), 3600.0)
    handles = _handles(processes)
    if len(handles) < len(processes):
        # Without handles on all of them (Python before 3.9), looking again now and then is all there is.
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


def _handles(processes):
    handles = []
    if hasattr(os, "pidfd_open"):
        # So few that the limit on open files is never met.
        for one in processes[:100]:
            try:
                handles.append(os.pidfd_open(one.pid))
            except OSError:
                break
    return handles


def _tree_of(run_id, cgroup, exclude_pids, node):
    # A claim that was edited by hand must not make us end some other cgroup.
    if cgroup and not os.path.basename(cgroup).startswith("trainmaster-{}-".format(run_id)):
        cgroup = None
    name, value = (RUN_VARIABLE, run_id) if node is None else (NODE_VARIABLE, node_marker(run_id, node))
    return Tree("{}={}".format(name, value), cgroup=cgroup, exclude=exclude_pids)


def _with_descendants(table, starts, root):
    """The process ids `starts` and all below them and below `root`.

    Never through what is not in the table, nor through another agent: a script may have started the
    dispatcher that started it, and it serves another run.
    """
    children = {}  # type: ignore[var-annotated]
    for one in table.values():
        children.setdefault(one.parent, []).append(one.pid)
    own = set()
    ready = list(starts) + children.get(root, [])
    while ready:
        pid = ready.pop()
        if pid in table and pid not in own and not _is_agent(table[pid]):
            own.add(pid)
            ready.extend(children.get(pid, ()))
    return own


def _is_inside(one):
    variables = process.read("/proc/{}/environ".format(one.pid)) or b""
    return b"\0" + INSIDE_VARIABLE.encode("ascii") + b"=" in b"\0" + variables


def _is_agent(one):
    if one.command == preloaded.NAME.decode("ascii"):
        return False
    arguments = (process.read("/proc/{}/cmdline".format(one.pid)) or b"").split(b"\0")
    return any(argument.endswith(_AGENTS) for argument in arguments[1:])


def _processes_between(first, last):
    """So few that asking for each costs less than the list of all. Threads have ids too, but are not listed."""
    found = (process.look(pid) for pid in range(first, last + 1))
    return {one.pid: one for one in found if one is not None and not process.is_thread(one.pid)}


def _all_processes(least=0):
    found = (process.look(name) for name in os.listdir("/proc") if name.isdigit() and int(name) >= least)
    return {one.pid: one for one in found if one is not None}


def _ancestors(pid, table):
    found = set()
    while pid in table and table[pid].parent not in found:
        pid = table[pid].parent
        found.add(pid)
    return found


def _living(processes):
    seen = [(one, process.look(one.pid)) for one in processes]
    return [one for one, now in seen if now is not None and now.name == one.name and not now.gone]


def _nothing():
    return None


def _described(one):
    command = (process.read("/proc/{}/cmdline".format(one.pid)) or b"").replace(b"\0", b" ").strip()
    return one.pid, one.start_time, command.decode("utf-8", "replace") or one.command

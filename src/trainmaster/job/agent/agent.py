"""The agent of one node: claims the plan, starts its processes, waits, ends all of them, and writes the result.

Exit codes: 0 the plan was executed (or another agent executes it), 2 the plan is invalid, 3 the result could not be
written.
"""

import os
import time

from trainmaster.job.agent import cgroup as cgroups
from trainmaster.job.agent import claim, folders, jsonfile, ranks, spawn
from trainmaster.job.agent.interrupts import Interrupted, Interrupts
from trainmaster.job.agent.plan import PlanError
from trainmaster.job.agent.plan import read as read_plan
from trainmaster.job.agent.process import newest as newest_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from trainmaster.job.agent.limits import Limits
    from trainmaster.job.agent.other_nodes import OtherNodes
    from trainmaster.job.agent.plan import Plan
    from trainmaster.job.agent.plan import Process as PlannedProcess
    from trainmaster.job.agent.process import Process
    from trainmaster.job.agent.silence import Silence
    from trainmaster.job.agent.tree import Tree
    from trainmaster.job.agent.use.sampler import Sampler

# How long to retry a start that fails because the machine lacks processes, file handles or memory.
_SHORTAGE_SECONDS = 600.0
# The grace period for processes that a failed script left behind.
_SHORT_GRACE = 2.0
# The age of a run from which on its use of the machine is measured: short runs pay nothing for it.
_MEASURED_AGE = 1.0


def main(arguments: "Sequence[str]") -> int:
    """Executes the plan in the file that the only argument names; returns the exit code."""
    if len(arguments) != 1:
        log("usage: python -I -S -E __main__.py <plan.json>")
        return 2
    return execute(os.path.abspath(arguments[0]))[0]


def execute(path: str) -> "tuple[int, bool]":
    """Executes the plan in the file `path`; returns the exit code and whether this process may execute another plan."""
    folder = os.path.dirname(path)
    try:
        plan = read_plan(path)
    except PlanError as error:
        return _refuse_plan(path, folder, str(error)), False
    interrupts = Interrupts()
    cgroup = cgroups.path_for(plan.run_id, plan.node)
    try:
        if not _claim_plan(folder, cgroup):
            return 0, False
    except OSError as error:
        log("the claim cannot be written: {}".format(error))
        return 3, False
    agent = Agent(plan, folder, cgroup, interrupts)
    code = agent.execute()
    interrupts.close()
    return code, code == 0 and agent.is_clean and not interrupts.stop_requests


def log(text: str) -> None:
    """Writes one line to the agent's log."""
    line = "{} {}\n".format(time.strftime("%Y-%m-%d %H:%M:%S"), text)
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        # The disk is full or the log is gone: there is no other place to report this.
        pass


def _claim_plan(folder: str, cgroup: "str | None") -> bool:
    if claim.make(folder, cgroup):
        return True
    log("another agent executes this plan")
    return False


def _refuse_plan(path: str, folder: str, cause: str) -> int:
    log("{}: {}".format(path, cause))
    try:
        if not _claim_plan(folder, None):
            return 0
    except OSError as error:
        log("the plan's folder cannot be written: {}".format(error))
        return 2
    from trainmaster.job.agent import result

    hint = "Submit the run again. The dispatcher writes the plan; do not edit it."
    problem = {"headline": "{}: invalid plan".format(path), "cause": cause, "hint": hint}
    result.write(folder, _result("error", None, [], None, 0, [], problem))
    return 2


class Agent(object):
    """Executes one plan."""

    def __init__(self, plan: "Plan", folder: str, cgroup: "str | None", interrupts: Interrupts) -> None:
        self.is_clean = False  # whether nothing happened that could affect the next run of this process
        self._plan = plan
        self._folder = folder
        self._interrupts = interrupts
        self._born = time.monotonic()
        self._newest = newest_process()
        self._cgroup = cgroup
        self._ranks: "list[ranks.Rank]" = []
        self._tree: "Tree | None" = None
        self._reason = "exited"
        self._error: "dict[str, str] | None" = None
        self._first_failure: "ranks.Rank | None" = None
        self._is_done = False  # only services are left
        self._memory_kills = 0
        self._not_limited: "list[str]" = []  # limits of the plan that no cgroup enforces
        self._cpus_before: "set[int] | None" = None  # if this process is held to some CPUs while the plan is executed
        self._other_nodes: "OtherNodes | None" = None  # where the dispatcher may be out of reach
        self._silence: "Silence | None" = None  # if the run has a limit on silence
        self._sampler: "Sampler | None" = None
        self._started_at: "float | None" = None
        self._started: "float | None" = None  # the same moment by the monotonic clock
        # Times of the monotonic clock:
        self._stop_at: "float | None" = None  # when to ask the other ranks to end, because one failed
        self._report_at: "float | None" = None  # when to report to the dispatcher that the processes run
        self._measure_at: "float | None" = None  # when to begin to measure what the processes use
        self._limit_at: "float | None" = None  # when the time limit of the run expires
        self._kill_at: "float | None" = None  # when the grace period ends; set once the processes were asked to end

    def execute(self) -> int:
        """Takes the claimed plan to its result; returns the exit code."""
        self._contain_processes()
        try:
            with self._interrupts.raise_on_stop():
                folders.prepare(self._plan)
            self._start()
            self._report_start()
            self._wait_for_ranks()
        except Interrupted:
            self._reason = "cancelled"
        except Exception as error:  # noqa: BLE001 - whatever it is, end the processes and report it
            self._note_error(error)
        self._stop_measuring()
        killed, survivors = self._clear_up()
        if self._cpus_before is not None:
            os.sched_setaffinity(0, self._cpus_before)
        self.is_clean = self._is_successful() and not killed and not survivors
        return self._finish(killed, survivors)

    def _contain_processes(self) -> None:
        """Makes sure that no process can escape."""
        _close_inherited()
        cgroups.leave()
        if not spawn.become_subreaper():
            log("this machine does not let the agent adopt orphans: it finds them by their variables only")
        if self._cgroup is not None and not cgroups.make(self._cgroup):
            self._cgroup = None
        if self._plan.limits is not None:
            self._set_limits(self._plan.limits)

    def _set_limits(self, wanted: "Limits") -> None:
        """Holds the processes to the limits of their node, as far as this machine can."""
        from trainmaster.job.agent import limits

        missing = wanted.controllers if self._cgroup is None else limits.set_limits(self._cgroup, wanted)
        if limits.CPU in missing and wanted.cpus is not None:
            self._cpus_before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, limits.choose_cpus(self._cpus_before, wanted.first_cpu, wanted.cpus))
        if missing:
            self._not_limited = missing
            log("no cgroup limits {} here".format(" and ".join(missing)))

    def _is_successful(self) -> bool:
        return self._reason == "exited" and self._first_failure is None

    # Starting

    def _start(self) -> None:
        self._memory_kills = ranks.memory_kills(self._cgroup)
        self._started_at, self._started = time.time(), time.monotonic()
        started = [self._start_rank(process) for process in self._plan.processes]
        if self._plan.time_limit_seconds is not None:
            self._limit_at = time.monotonic() + self._plan.time_limit_seconds
        if self._plan.hang_seconds is not None:
            from trainmaster.job.agent.silence import Silence

            self._silence = Silence(self._plan.folder, self._folder, self._plan.hang_seconds)
        if self._plan.sample_seconds != 0:
            self._measure_at = time.monotonic() + min(_MEASURED_AGE, self._plan.sample_seconds or _MEASURED_AGE)
        if self._plan.watched_nodes:
            from trainmaster.job.agent.other_nodes import OtherNodes

            self._other_nodes = OtherNodes(self._folder, self._plan.watched_nodes)
        for number, one in enumerate(started):
            self._confirm(number, one)

    def _start_rank(self, process: "PlannedProcess") -> spawn.Started:
        started = self._retry(lambda: spawn.start(process, self._environment(process), self._cgroup))
        self._ranks.append(ranks.Rank(process.rank, started.pid, process.log, process.service))
        return started

    def _confirm(self, number: int, started: spawn.Started) -> None:
        """Returns once the program runs. Starts it again if the machine lacked something in its first moments."""
        process = self._plan.processes[number]
        try:
            started.confirm()
        except spawn.StartError as error:
            if not error.is_temporary:
                raise
            again = self._retry(lambda: self._start_and_confirm(process))
            self._ranks[number] = ranks.Rank(process.rank, again.pid, process.log, process.service)

    def _start_and_confirm(self, process: "PlannedProcess") -> spawn.Started:
        started = spawn.start(process, self._environment(process), self._cgroup)
        started.confirm()
        return started

    def _retry(self, start: "Callable[[], spawn.Started]") -> spawn.Started:
        """Calls `start` again while the machine is short of processes, file handles or memory, for a limited time."""
        pause, until = 0.1, time.monotonic() + _SHORTAGE_SECONDS
        while True:
            try:
                return start()
            except spawn.StartError as error:
                if not error.is_temporary or time.monotonic() > until:
                    raise
                log("{}: {}; trying again".format(error.headline, error.cause))
            self._interrupts.wait(pause)
            if self._interrupts.stop_requests:
                raise Interrupted
            pause = min(2 * pause, 5.0)

    def _environment(self, process: "PlannedProcess") -> "dict[str, str]":
        """The variables of the plan, and the two that mark every process of the run."""
        inherited = {name: value for name, value in os.environ.items() if name.startswith(process.inherits)}
        environment = dict(inherited, **process.env)
        environment["TRAINMASTER_RUN_ID"] = self._plan.run_id
        environment["TRAINMASTER_AGENT"] = "{}/{}".format(self._plan.run_id, self._plan.node)
        return environment

    def _note_error(self, error: Exception) -> None:
        """Remembers why the plan cannot be executed."""
        self._reason = "error"
        headline = getattr(error, "headline", None)
        if headline is None:
            import traceback

            log(traceback.format_exc())
            headline = "the agent of node {} failed: {}".format(self._plan.node, error)
        self._error = {
            "headline": headline,
            "cause": getattr(error, "cause", type(error).__name__),
            "hint": getattr(error, "hint", "See agent.log beside the plan."),
        }
        log("gave up: {}".format(" | ".join(text for text in self._error.values() if text)))

    def _report_start(self) -> None:
        for rank in self._ranks:
            log("rank {} runs as process {}".format(rank.rank, rank.pid))
        self._report_at = time.monotonic() + self._plan.tell_after_seconds
        self._report_when_due()

    def _report_when_due(self) -> None:
        """Reports that the processes run: at once, except for runs that may be very short."""
        if self._report_at is None or time.monotonic() < self._report_at:
            return
        from trainmaster.job.agent import result

        self._report_at = None
        records = [rank.running_record() for rank in self._ranks]
        try:
            path = os.path.join(self._folder, "running.json")
            jsonfile.write(path, {"version": 1, "started_at": self._started_at, "processes": records})
        except OSError as error:
            log("running.json: {}".format(error.strerror))
        self._notify("running")
        result.reserve(self._folder)

    # Waiting

    def _wait_for_ranks(self) -> None:
        """Returns when all ranks have ended, or when the grace period is over."""
        while True:
            self._reap()
            self._look_at_other_nodes()
            if all(rank.has_ended for rank in self._ranks) or self._are_services_unneeded():
                self._note_cancel()
                return
            self._decide()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                return
            self._report_when_due()
            self._measure_when_due()
            at = self._next_decision_at()
            self._interrupts.wait(None if at is None else max(0.0, at - time.monotonic()))

    def _measure_when_due(self) -> None:
        """Starts the process that measures what this run uses of the machine."""
        if self._measure_at is None or self._started is None or time.monotonic() < self._measure_at:
            return
        self._measure_at = None
        from trainmaster.job.agent.use.sampler import Sampler

        tree = self._whole_tree()
        try:
            age = time.monotonic() - self._started
            self._sampler = Sampler.start(self._plan, self._ranks, tree.marker, age)
        except OSError as error:
            log("what the run uses is not measured: {}".format(error))
        else:
            tree.protect(self._sampler.pid)

    def _stop_measuring(self) -> None:
        if self._sampler is None:
            return
        self._sampler.stop()
        for rank in self._ranks:
            if rank.has_failed:
                rank.note_memory(self._sampler.find_peak(rank.rank), None)

    def _note_cancel(self) -> None:
        """The signal that stops this agent may also have reached its processes, which may have ended sooner."""
        stopped = any(rank.has_failed and rank.was_stopped and not rank.service for rank in self._ranks)
        if stopped and self._interrupts.stop_requests and self._is_successful():
            self._reason = "cancelled"

    def _look_at_other_nodes(self) -> None:
        if self._other_nodes is None or self._interrupts.stop_requests:
            return
        if self._other_nodes.is_stop_required():
            log("the files of the run say that it is over")
            self._interrupts.stop_requests = 1

    def _next_decision_at(self) -> "float | None":
        """The monotonic time of the next decision if no event comes first, or None."""
        if self._kill_at is not None:
            return self._kill_at
        times = [self._limit_at, self._report_at, self._stop_at, self._measure_at]
        times += [each.look_at for each in (self._silence, self._other_nodes) if each is not None]
        return min((at for at in times if at is not None), default=None)

    def _are_services_unneeded(self) -> bool:
        """Whether only services are left, and nothing needs them any more.

        Processes of other nodes may still need them. In that case the dispatcher sends SIGTERM when all are done.
        """
        users = [rank for rank in self._ranks if not rank.service]
        done = bool(users) and self._first_failure is None and all(rank.has_ended for rank in users)
        if not done or self._kill_at is not None:
            return False
        if not self._is_done:
            self._is_done = True
            self._report_done()
        return self._plan.alone or self._interrupts.stop_requests > 0

    def _report_done(self) -> None:
        """Reports that only services are left on this node."""
        try:
            jsonfile.write(os.path.join(self._folder, "done.json"), {"version": 1, "at": time.time()})
        except OSError as error:
            log("done.json: {}".format(error.strerror))
        self._notify("done")

    def _decide(self) -> None:
        if self._kill_at is not None:
            if self._is_urgent():
                self._kill_at = time.monotonic()
        elif self._silence is not None and self._is_hanging(self._silence):
            self._end_hang(self._silence)
        elif self._first_failure is not None:
            if self._interrupts.stop_requests or time.monotonic() >= (self._stop_at or 0.0):
                self._stop("a rank failed")
        elif self._interrupts.stop_requests and not self._is_done:
            # If only services are left, the request is the dispatcher's answer to that report: nothing is cancelled.
            self._reason = "cancelled"
            self._stop("the agent was asked to stop")
        elif self._limit_at is not None and time.monotonic() >= self._limit_at:
            self._reason = "timeout"
            self._stop("the time limit of {} seconds has expired".format(self._plan.time_limit_seconds))

    def _is_hanging(self, silence: "Silence") -> bool:
        if self._first_failure is not None or self._interrupts.stop_requests:
            return False
        due = time.monotonic() >= silence.look_at
        return silence.was_noted() or (due and silence.is_too_long())

    def _end_hang(self, silence: "Silence") -> None:
        from trainmaster.job.agent import hang

        self._reason = "hang"
        log("the run was silent for {} seconds".format(self._plan.hang_seconds))
        try:
            hang.write_stacks(self._plan, self._folder, silence, self._ranks, self._whole_tree())
        except OSError as error:
            log("the stacks of the ranks could not be written: {}".format(error))
        self._stop("the run hangs")

    def _is_urgent(self) -> bool:
        """Whether a second request to stop arrived: the first one cancels, the second one ends at once."""
        return self._interrupts.stop_requests >= (2 if self._reason == "cancelled" else 1)

    def _stop(self, why: str) -> None:
        log("{}: the processes have {} seconds to end".format(why, self._plan.grace_seconds))
        self._kill_at = time.monotonic() + self._plan.grace_seconds
        self._whole_tree().ask_to_end()

    def _reap(self) -> bool:
        """Notes every child that ended, ranks and adopted orphans. Returns whether any child is left."""
        while True:
            try:
                ended = ranks.reap()
            except ChildProcessError:
                return False
            if ended is None:
                return True
            if self._sampler is not None and self._sampler.pid == ended.pid:
                self._sampler.has_ended = True
            for rank in self._ranks:
                if rank.pid == ended.pid and not rank.has_ended:
                    rank.note_memory(ended.peak, None if self._uses_containers() else ended.limit)
                    self._note_end(rank, ended.status)

    def _note_end(self, rank: ranks.Rank, status: int) -> None:
        stopped = self._kill_at is not None or self._interrupts.stop_requests > 0
        stopped = stopped or self._reason != "exited" or self._is_done
        stopped = stopped or (self._silence is not None and self._silence.was_noted())
        # Only a failure needs an explanation.
        memory_ran_out = status != 0 and ranks.memory_kills(self._cgroup) > self._memory_kills
        rank.note_end(status, memory_ran_out, stopped)
        log("rank {} {}".format(rank.rank, rank.describe_end()))
        if rank.has_failed and not stopped:
            self._first_failure = self._first_failure or rank
            self._stop_at = min(self._stop_at or float("inf"), time.monotonic() + _patience_after(rank))

    def _find_cause(self) -> "dict[str, Any] | None":
        """The record of the rank that failed first, with its last lines; None if none failed by itself."""
        if self._first_failure is None:
            return None
        from trainmaster.job.agent import cause
        from trainmaster.job.agent.tail import tail

        record = cause.first_failure([rank.end_record() for rank in self._ranks])
        assert record is not None
        (rank,) = [rank for rank in self._ranks if rank.rank == record["rank"]]
        return dict(rank.failure_record(), tail=tail(spawn.encode(rank.log)))

    # Ending

    def _whole_tree(self) -> "Tree":
        if self._tree is None:
            from trainmaster.job.agent import process, tree

            marker = "{}={}".format(tree.NODE_VARIABLE, tree.node_marker(self._plan.run_id, self._plan.node))
            own = os.getpid()
            since = process.start_time(own) or 0
            self._tree = tree.Tree(marker, self._cgroup, root=own, since=since, born=self._born, newest=self._newest)
            if self._uses_containers():
                self._tree.set_engine_pids(rank.pid for rank in self._ranks)
        return self._tree

    def _clear_up(self) -> "tuple[int, list[Process]]":
        """Ends the rest of the tree. Returns how many processes it ended besides the ranks, and the survivors."""
        from trainmaster.job.agent import tree as trees

        tree = self._whole_tree()
        if self._uses_containers():
            self._remove_containers()
        survivors: "list[Process]" = []
        if self._reap() or tree.find():
            self._protect_dispatcher()
            until = self._grace_until()
            survivors = tree.end(
                lambda: 0.0 if self._is_urgent() else until,
                wait=lambda found, seconds: self._interrupts.wait(seconds, found),
                reap=self._reap,
            )
            self._reap()
        if self._cgroup is not None:
            trees.remove_cgroup(self._cgroup)
        if self._uses_containers():
            # The script did not leave these behind: the engine cleans up after the end of a container.
            return 0, survivors
        own = {(rank.pid, rank.start_time) for rank in self._ranks}
        ended = tree.met - own - {one.name for one in survivors}
        return len(ended), survivors

    def _uses_containers(self) -> bool:
        return any(process.remove for process in self._plan.processes)

    def _remove_containers(self) -> None:
        """Removes the containers, unless all ended by themselves: then their engine has removed them."""
        if not self._is_successful() or not all(rank.has_ended for rank in self._ranks):
            from trainmaster.job.agent import containers

            for problem in containers.remove(self._plan.processes):
                log(problem)

    def _protect_dispatcher(self) -> None:
        """A script may have started the dispatcher by submitting a run; the dispatcher must survive this run."""
        if self._plan.socket is not None:
            from trainmaster.job.agent import notify

            pid = notify.find_listener(self._plan.socket)
            if pid is not None:
                self._whole_tree().protect(pid)

    def _grace_until(self) -> float:
        """The monotonic time until which leftover processes are only asked to end."""
        grace = self._plan.grace_seconds
        if self._uses_containers():
            # The engine's programs end by themselves now; a killed one would not clean up.
            return time.monotonic() + grace
        if self._kill_at is not None:
            return self._kill_at
        return time.monotonic() + (grace if self._is_successful() else min(grace, _SHORT_GRACE))

    def _finish(self, killed: int, survivors: "list[Process]") -> int:
        from trainmaster.job.agent import result

        if killed:
            log("ended {} processes that were left behind".format(killed))
        described = [{"pid": one.pid, "start_time": one.start_time, "command": one.command} for one in survivors]
        for one in described:
            log("could not be ended: {}".format(one))
        data = self._make_result(killed, described)
        written = result.write(self._folder, data)
        if not written:
            log("the result could not be written: {}".format(jsonfile.dumps(data)))
        if not self._is_dispatcher_aware():
            self._start_dispatcher()
        return 0 if written else 3

    def _make_result(self, killed: int, survivors: "list[dict[str, Any]]") -> "dict[str, Any]":
        records = [rank.end_record() for rank in self._ranks]
        data = _result(self._reason, self._started_at, records, self._find_cause(), killed, survivors, self._error)
        if self._started is not None and self._started_at is not None:
            # Never before the start, even if the clock was set back in the meantime.
            data["ended_at"] = max(data["ended_at"], self._started_at + time.monotonic() - self._started)
        if self._not_limited:
            data["not_limited"] = self._not_limited
        if self._reason == "hang":
            data["silent_seconds"] = self._plan.hang_seconds
        leftovers = self._report_leftovers()
        if leftovers is not None:
            data["left"] = leftovers
        return data

    def _report_leftovers(self) -> "dict[str, Any] | None":
        """The files that the script left outside outputs/ and logs/, on the node that has the working folder."""
        if self._started_at is None or (self._plan.layout is None and self._plan.node != 0):
            return None
        from trainmaster.job.agent import leftover_files

        try:
            return leftover_files.report(self._plan.folder, self._plan.node, self._plan.layout, self._started_at)
        except OSError as error:
            log("the files that the script left could not be listed: {}".format(error))
            return None

    # The dispatcher

    def _is_dispatcher_aware(self) -> bool:
        """Whether a dispatcher is running that notices the end of this agent."""
        if self._plan.lock is None or self._plan.socket is None:
            return self._notify("ended")
        from trainmaster.job.agent import notify

        return notify.is_running(self._plan.lock, self._plan.socket) or self._notify("ended")

    def _notify(self, event: str) -> bool:
        if self._plan.socket is None:
            return True
        from trainmaster.job.agent import notify

        return notify.send(self._plan.socket, self._plan.run_id, self._plan.node, event)

    def _start_dispatcher(self) -> None:
        log("no dispatcher listens at {}: starting one".format(self._plan.socket))
        try:
            spawn.start_detached(self._plan.dispatcher or [])
        except spawn.StartError as error:
            log("the dispatcher could not be started: {} | {}".format(error.headline, error.cause))


def _close_inherited() -> None:
    """Closes what the parent process left open, so that the script does not inherit it.

    Python itself opens files that are closed at exec.
    """
    for name in os.listdir("/proc/self/fd"):
        handle = int(name)
        if handle > 2:
            try:
                if os.get_inheritable(handle):
                    os.close(handle)
            except OSError:
                continue  # the handle of this listing


def _result(
    reason: str,
    started_at: "float | None",
    processes: "list[dict[str, Any]]",
    first_failure: "dict[str, Any] | None",
    killed: int,
    survivors: "list[dict[str, Any]]",
    error: "dict[str, str] | None",
) -> "dict[str, Any]":
    return {
        "version": 1,
        "reason": reason,
        "started_at": started_at,
        "ended_at": time.time(),
        "processes": processes,
        "first_failure": first_failure,
        "killed": killed,
        "survivors": survivors,
        "error": error,
    }


def _patience_after(rank: ranks.Rank) -> float:
    """How long to wait for the actual cause after a rank that only lost a peer.

    The rank that failed first may still be closing down. If it were asked to end now, it would not look like the cause.
    """
    from trainmaster.job.agent import cause

    return cause.PATIENCE_SECONDS if rank.last_words.get("lost_peer") else 0.0

"""The life of one agent: claim the plan, start its processes, wait, end everything, say how it went.

Exit codes: 0 the plan was carried out (or is in other hands), 2 it is broken, 3 its result could not be kept.
"""

import os
import time

from trainmaster.job.agent import cgroup as cgroups
from trainmaster.job.agent import claim, folders, jsonfile, ranks, spawn
from trainmaster.job.agent.interrupts import Interrupted, Interrupts
from trainmaster.job.agent.plan import PlanError
from trainmaster.job.agent.plan import read as read_plan
from trainmaster.job.agent.process import newest as newest_process

# How long a shortage of the machine may keep a process from being started.
_SHORTAGE_SECONDS = 600.0
# How long what a failed script left behind may take to end.
_SHORT_GRACE = 2.0


def main(arguments):
    """Carries out the plan in the file named by the one argument; returns the exit code."""
    if len(arguments) != 1:
        say("usage: python -I -S -E __main__.py <plan.json>")
        return 2
    return carry_out(os.path.abspath(arguments[0]))[0]


def carry_out(path):
    """Carries out the plan in the file `path`; (the exit code, whether this process may carry out another)."""
    folder = os.path.dirname(path)
    try:
        plan = read_plan(path)
    except PlanError as error:
        return _refuse_plan(path, folder, str(error)), False
    interrupts = Interrupts()
    place = cgroups.path_for(plan.run_id, plan.node)
    try:
        if not _claimed(folder, place):
            return 0, False
    except OSError as error:
        say("the claim cannot be written: {}".format(error))
        return 3, False
    agent = Agent(plan, folder, place, interrupts)
    code = agent.carry_out()
    interrupts.close()
    return code, code == 0 and agent.all_went_well and not interrupts.asked


def say(text):
    """One line into the agent's own log."""
    line = "{} {}\n".format(time.strftime("%Y-%m-%d %H:%M:%S"), text)
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        # Nobody to tell and nothing to do about it: the disk is full or the log is gone.
        pass


def _claimed(folder, cgroup):
    if claim.make(folder, cgroup):
        return True
    say("another agent carries out this plan")
    return False


def _refuse_plan(path, folder, cause):
    say("{}: {}".format(path, cause))
    try:
        if not _claimed(folder, None):
            return 0
    except OSError as error:
        say("the plan's folder cannot be written: {}".format(error))
        return 2
    from trainmaster.job.agent import result

    hint = "Submit the run again; a plan is written by the dispatcher and not meant to be edited."
    problem = {"headline": "{}: broken plan".format(path), "cause": cause, "hint": hint}
    result.write(folder, _result("error", None, [], None, 0, [], problem))
    return 2


class Agent(object):
    """Carries out one plan."""

    def __init__(self, plan, folder, cgroup, interrupts):
        self.all_went_well = False  # then nothing has happened that this process might carry over to another run
        self._plan = plan
        self._folder = folder
        self._interrupts = interrupts
        self._born = time.monotonic()
        self._newest = newest_process()
        self._cgroup = cgroup
        self._ranks = []
        self._tree = None
        self._reason = "exited"
        self._error = None
        self._first_failure = None
        self._done = False
        self._memory_kills = 0
        self._watch = None  # what to see of the other nodes, where no dispatcher may be in reach
        self._silence = None  # how long the run may be silent, if it may not be silent for ever
        self._started_at = None
        self._started = None  # the same moment by the monotonic clock
        self._stop_at = None  # monotonic time at which the others are told to end, because a rank failed
        self._tell_at = None  # monotonic time at which the dispatcher is told that the processes run
        self._limit_at = None  # monotonic time at which the run has taken too long
        self._kill_at = None  # monotonic time at which patience ends; set once the processes were told to end

    def carry_out(self):
        """From the claimed plan to its result; returns the exit code."""
        self._become_keeper()
        try:
            with self._interrupts.raised():
                folders.prepare(self._plan)
            self._start()
            self._report_start()
            self._wait_for_ranks()
        except Interrupted:
            self._reason = "cancelled"
        except Exception as error:  # noqa: BLE001 - whatever it is, processes must not stay and the run must hear of it
            self._refuse(error)
        killed, survivors = self._clear_up()
        well = self._reason == "exited" and self._first_failure is None
        self.all_went_well = well and not killed and not survivors
        return self._finish(killed, survivors)

    def _become_keeper(self):
        """Sees to it that no process can get away."""
        _close_inherited()
        cgroups.leave()
        if not spawn.become_subreaper():
            say("orphans cannot be adopted on this machine; they are found by their variables only")
        if self._cgroup is not None and not cgroups.make(self._cgroup):
            self._cgroup = None

    def _start(self):
        self._memory_kills = ranks.memory_kills(self._cgroup)
        self._started_at, self._started = time.time(), time.monotonic()
        started = [self._start_rank(process) for process in self._plan.processes]
        if self._plan.time_limit_seconds is not None:
            self._limit_at = time.monotonic() + self._plan.time_limit_seconds
        if self._plan.hang_seconds is not None:
            from trainmaster.job.agent.silence import Silence

            self._silence = Silence(self._plan.folder, self._folder, self._plan.hang_seconds)
        if self._plan.watched_nodes:
            from trainmaster.job.agent.other_nodes import OtherNodes

            self._watch = OtherNodes(self._folder, self._plan.watched_nodes)
        for number, one in enumerate(started):
            self._confirm(number, one)

    def _start_rank(self, process):
        started = self._wait_out(lambda: spawn.start(process, self._environment(process), self._cgroup))
        self._ranks.append(ranks.Rank(process.rank, started.pid, process.log, process.service))
        return started

    def _confirm(self, number, started):
        """Returns once the program runs. Where something was short in its first moments, it is started again."""
        process = self._plan.processes[number]
        try:
            started.confirm()
        except spawn.StartError as error:
            if not error.passes:
                raise
            again = self._wait_out(lambda: self._run(process))
            self._ranks[number] = ranks.Rank(process.rank, again.pid, process.log, process.service)

    def _run(self, process):
        started = spawn.start(process, self._environment(process), self._cgroup)
        started.confirm()
        return started

    def _wait_out(self, work):
        """Does `work`, again and again while the machine is short of processes, handles or memory, within a time."""
        pause, until = 0.1, time.monotonic() + _SHORTAGE_SECONDS
        while True:
            try:
                return work()
            except spawn.StartError as error:
                if not error.passes or time.monotonic() > until:
                    raise
                say("{}: {}; trying again".format(error.headline, error.cause))
            self._interrupts.wait(pause)
            if self._interrupts.asked:
                raise Interrupted
            pause = min(2 * pause, 5.0)

    def _environment(self, process):
        """The variables of the plan, and the two by which the process is found wherever it hides."""
        inherited = {name: value for name, value in os.environ.items() if name.startswith(process.inherits)}
        environment = dict(inherited, **process.env)
        environment["TRAINMASTER_RUN_ID"] = self._plan.run_id
        environment["TRAINMASTER_AGENT"] = "{}/{}".format(self._plan.run_id, self._plan.node)
        return environment

    def _refuse(self, error):
        """The plan cannot be carried out: remembers why."""
        self._reason = "error"
        headline = getattr(error, "headline", None)
        if headline is None:
            import traceback

            say(traceback.format_exc())
            headline = "the agent of node {} failed: {}".format(self._plan.node, error)
        self._error = {
            "headline": headline,
            "cause": getattr(error, "cause", type(error).__name__),
            "hint": getattr(error, "hint", "See agent.log beside the plan."),
        }
        say("given up: {}".format(" | ".join(text for text in self._error.values() if text)))

    def _report_start(self):
        for rank in self._ranks:
            say("rank {} runs as process {}".format(rank.rank, rank.pid))
        self._tell_at = time.monotonic() + self._plan.tell_after_seconds
        self._tell_in_time()

    def _tell_in_time(self):
        """Keeps and tells that the processes run, once it is time to: at once, but for runs that may be very short."""
        if self._tell_at is None or time.monotonic() < self._tell_at:
            return
        from trainmaster.job.agent import result

        self._tell_at = None
        records = [rank.running_record() for rank in self._ranks]
        try:
            path = os.path.join(self._folder, "running.json")
            jsonfile.write(path, {"version": 1, "started_at": self._started_at, "processes": records})
        except OSError as error:
            say("running.json: {}".format(error.strerror))
        self._tell("running")
        result.reserve(self._folder)

    def _wait_for_ranks(self):
        """Returns when all ranks have ended, or when those that were told to have had their time."""
        while True:
            self._reap()
            self._look_around()
            if all(rank.ended for rank in self._ranks) or self._is_served():
                self._note_cancel()
                return
            self._decide()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                return
            self._tell_in_time()
            at = self._next_moment()
            self._interrupts.wait(None if at is None else max(0.0, at - time.monotonic()))

    def _note_cancel(self):
        """Whoever told this agent to stop may have told its processes too, and they may have been quicker."""
        told = any(rank.failed and rank.told and not rank.service for rank in self._ranks)
        if told and self._interrupts.asked and self._reason == "exited" and self._first_failure is None:
            self._reason = "cancelled"

    def _look_around(self):
        if self._watch is not None and not self._interrupts.asked and self._watch.says_stop():
            say("the files of the run say that it is over")
            self._interrupts.asked = 1

    def _next_moment(self):
        """The monotonic time of the next decision, if no event comes first; None if there is none."""
        if self._kill_at is not None:
            return self._kill_at
        moments = [self._limit_at, self._tell_at, self._stop_at] + [
            each.look_at for each in (self._silence, self._watch) if each is not None
        ]
        return min((at for at in moments if at is not None), default=None)

    def _is_served(self):
        """Whether all that is left are services that nobody needs any more.

        Processes of other nodes may need them still: then the dispatcher says when all are done, by SIGTERM.
        """
        users = [rank for rank in self._ranks if not rank.service]
        done = bool(users) and self._first_failure is None and all(rank.ended for rank in users)
        if not done or self._kill_at is not None:
            return False
        if not self._done:
            self._done = True
            self._report_done()
        return self._plan.alone or self._interrupts.asked > 0

    def _report_done(self):
        """Only services are left here."""
        try:
            jsonfile.write(os.path.join(self._folder, "done.json"), {"version": 1, "at": time.time()})
        except OSError as error:
            say("done.json: {}".format(error.strerror))
        self._tell("done")

    def _decide(self):
        if self._kill_at is not None:
            if self._is_hurried():
                self._kill_at = time.monotonic()
        elif self._is_hanging():
            self._take_down()
        elif self._first_failure is not None:
            if self._interrupts.asked or time.monotonic() >= (self._stop_at or 0.0):
                self._stop("a rank failed")
        elif self._interrupts.asked:
            self._reason = "cancelled"
            self._stop("told to stop")
        elif self._limit_at is not None and time.monotonic() >= self._limit_at:
            self._reason = "timeout"
            self._stop("the time limit of {} seconds has passed".format(self._plan.time_limit_seconds))

    def _is_hanging(self):
        if self._silence is None or self._first_failure is not None or self._interrupts.asked:
            return False
        due = time.monotonic() >= self._silence.look_at
        return self._silence.was_noted() or (due and self._silence.is_too_long())

    def _take_down(self):
        from trainmaster.job.agent import hang

        self._reason = "hang"
        say("nothing was heard of the run for {} seconds".format(self._plan.hang_seconds))
        try:
            hang.take_down(self._plan, self._folder, self._silence, self._ranks, self._whole_tree())
        except OSError as error:
            say("where the ranks stand could not be written: {}".format(error))
        self._stop("the run hangs")

    def _is_hurried(self):
        """Whether somebody asked again: once to cancel, and once more to do so at once."""
        return self._interrupts.asked >= (2 if self._reason == "cancelled" else 1)

    def _stop(self, why):
        say("{}: the processes have {} seconds to end".format(why, self._plan.grace_seconds))
        self._kill_at = time.monotonic() + self._plan.grace_seconds
        self._whole_tree().ask_to_end()

    def _reap(self):
        """Notes every child that ended, ranks and adopted orphans. Returns whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            for rank in self._ranks:
                if rank.pid == pid and not rank.ended:
                    self._note_end(rank, status)

    def _note_end(self, rank, status):
        told = self._kill_at is not None or self._interrupts.asked or self._reason != "exited" or self._done
        told = told or (self._silence is not None and self._silence.was_noted())
        # Only a failure has to be explained.
        rank.note_end(status, status != 0 and ranks.memory_kills(self._cgroup) > self._memory_kills, told)
        say("rank {} {}".format(rank.rank, rank.how()))
        if rank.failed and not told:
            self._first_failure = self._first_failure or rank
            self._stop_at = min(self._stop_at or float("inf"), time.monotonic() + _patience_after(rank))

    def _cause(self):
        """The record of the rank that failed first, with its last lines; None if none failed by itself."""
        if self._first_failure is None:
            return None
        from trainmaster.job.agent import cause
        from trainmaster.job.agent.tail import tail

        number = cause.first_failure([rank.end_record() for rank in self._ranks])["rank"]
        (rank,) = [rank for rank in self._ranks if rank.rank == number]
        return dict(rank.failure_record(), tail=tail(spawn.encode(rank.log)))

    def _whole_tree(self):
        if self._tree is None:
            from trainmaster.job.agent import process, tree

            marker = "{}={}".format(tree.NODE_VARIABLE, tree.node_marker(self._plan.run_id, self._plan.node))
            own = os.getpid()
            since = process.start_time(own) or 0
            self._tree = tree.Tree(marker, self._cgroup, root=own, since=since, born=self._born, newest=self._newest)
            if self._is_contained():
                self._tree.in_containers(rank.pid for rank in self._ranks)
        return self._tree

    def _clear_up(self):
        """Ends what is left of the tree. Returns how many there were besides the ranks, and the survivors."""
        from trainmaster.job.agent import tree as trees

        tree = self._whole_tree()
        if self._is_contained():
            self._remove_containers()
        if not self._reap() and not tree.find():
            survivors = []
        else:
            self._protect_dispatcher()
            until = self._patience()
            survivors = tree.end(
                lambda: 0.0 if self._is_hurried() else until,
                wait=lambda found, seconds: self._interrupts.wait(seconds, found),
                reap=self._reap,
            )
            self._reap()
        if self._cgroup is not None:
            trees.remove_cgroup(self._cgroup)
        if self._is_contained():
            # What an engine does after the end of a container is nothing that the script has left behind.
            return 0, survivors
        own = {(rank.pid, rank.start_time) for rank in self._ranks}
        gone = tree.met - own - {one.name for one in survivors}
        return len(gone), survivors

    def _is_contained(self):
        return any(process.remove for process in self._plan.processes)

    def _remove_containers(self):
        """Unless all of them ended by themselves: then their engine has done so."""
        if self._reason != "exited" or self._first_failure is not None or not all(rank.ended for rank in self._ranks):
            from trainmaster.job.agent import containers

            for complaint in containers.remove(self._plan.processes):
                say(complaint)

    def _protect_dispatcher(self):
        """A script may have started the dispatcher, by submitting a run; it must not end with this one."""
        if self._plan.socket is not None:
            from trainmaster.job.agent import notify

            pid = notify.listener(self._plan.socket)
            if pid is not None:
                self._whole_tree().protect(pid)

    def _patience(self):
        """The monotonic time until which leftovers are only asked to end."""
        if self._is_contained():
            # The engine's programs end by themselves now; those that are killed leave their own things undone.
            return time.monotonic() + self._plan.grace_seconds
        if self._kill_at is not None:
            return self._kill_at
        well = self._reason == "exited" and self._first_failure is None
        grace = self._plan.grace_seconds
        return time.monotonic() + (grace if well else min(grace, _SHORT_GRACE))

    def _finish(self, killed, survivors):
        from trainmaster.job.agent import result

        if killed:
            say("{} processes that were left behind were ended".format(killed))
        described = [{"pid": one.pid, "start_time": one.start_time, "command": one.command} for one in survivors]
        for one in described:
            say("could not be ended: {}".format(one))
        records = [rank.end_record() for rank in self._ranks]
        answer = _result(self._reason, self._started_at, records, self._cause(), killed, described, self._error)
        if self._started is not None and self._started_at is not None:
            # Not earlier than the start, even if the clock was set back meanwhile.
            answer["ended_at"] = max(answer["ended_at"], self._started_at + time.monotonic() - self._started)
        if self._reason == "hang":
            answer["silent_seconds"] = self._plan.hang_seconds
        left = self._left()
        if left is not None:
            answer["left"] = left
        written = result.write(self._folder, answer)
        if not written:
            say("the result could not be written: {}".format(jsonfile.dumps(answer)))
        if not self._is_seen():
            self._start_dispatcher()
        return 0 if written else 3

    def _left(self):
        """The files that the script left outside of outputs/ and logs/: of the node that has the working folder."""
        if self._started_at is None or (self._plan.layout is None and self._plan.node != 0):
            return None
        from trainmaster.job.agent import leftover_files

        try:
            return leftover_files.report(self._plan.folder, self._plan.node, self._plan.layout, self._started_at)
        except OSError as error:
            say("what the script left could not be looked at: {}".format(error))
            return None

    def _is_seen(self):
        """Whether a dispatcher is there to see that this agent has ended."""
        if self._plan.lock is None:
            return self._tell("ended")
        from trainmaster.job.agent import notify

        return notify.is_served(self._plan.lock, self._plan.socket) or self._tell("ended")

    def _tell(self, event):
        if self._plan.socket is None:
            return True
        from trainmaster.job.agent import notify

        return notify.tell(self._plan.socket, self._plan.run_id, self._plan.node, event)

    def _start_dispatcher(self):
        say("nobody listens at {}: starting a dispatcher".format(self._plan.socket))
        try:
            spawn.start_detached(self._plan.dispatcher)
        except spawn.StartError as error:
            say("the dispatcher could not be started: {} | {}".format(error.headline, error.cause))


def _close_inherited():
    """What the starter left open must not reach the script; all that Python opens is closed at exec."""
    for name in os.listdir("/proc/self/fd"):
        handle = int(name)
        if handle > 2:
            try:
                if os.get_inheritable(handle):
                    os.close(handle)
            except OSError:
                continue  # the one the listing itself was read through


def _result(reason, started_at, processes, first_failure, killed, survivors, error):
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


def _patience_after(failed):
    """Who lost a peer is not the cause. The one that is may be closing down: told to end, it would look innocent."""
    from trainmaster.job.agent import cause

    return cause.PATIENCE_SECONDS if failed.last_words.get("lost_peer") else 0.0

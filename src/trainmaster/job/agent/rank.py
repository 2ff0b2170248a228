"""What mpirun starts for every rank: it becomes the process that is planned for this rank, and notes how that ended.

`python -I -S rank.py <ranks.json>`. Between mpirun and the script, so that every rank has its own log and variables,
and so that the first rank that failed is known by more than mpirun's word.
"""

# The bare C module: `signal` brings in `enum` and `functools`, a third of what starting this program takes.
import _signal  # type: ignore[import-not-found]
import os
import sys
import time

# Because of -I nothing of ours is on the path.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

_FROM_LAUNCHER = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HWLOC_")
# After its stacks were written: as long as the agent may take until it ends all of the run.
_HOLD_SECONDS = 60.0


def main(path):
    """Starts the process of this rank and returns its exit code, as a shell would tell it."""
    from trainmaster.job.agent import cgroup, jsonfile, ranks, spawn, tokens
    from trainmaster.job.agent.plan import Process

    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    plan = Process(tokens.fill_plan(jsonfile.read(path))["ranks"][number], "ranks[{}]".format(number))
    environment = {name: value for name, value in os.environ.items() if name.startswith(plan.inherits)}
    environment.update(plan.env)
    environment.update(_launcher_variables())
    group = cgroup.own()
    before = ranks.memory_kills(group)
    try:
        started = spawn.start(plan, environment)
        keeper = _Keeper(os.path.dirname(path), plan, ranks.Rank(number, started.pid, plan.log))
        started.confirm()
    except spawn.StartError as error:
        words = {"headline": error.headline, "cause": error.cause, "hint": error.hint}
        _note(os.path.dirname(path), {"rank": number, "error": words})
        return 1
    return keeper.keep(lambda: ranks.memory_kills(group) > before)


class _Keeper(object):
    """Keeps the process of one rank: passes signals on to it, and notes how it goes."""

    def __init__(self, folder, plan, rank):
        self._folder = folder
        self._plan = plan
        self._rank = rank
        self._began = time.time()
        self._told = False
        self._listen()

    def keep(self, memory_ran_out):
        """Waits for the end of the process; returns its exit code."""
        rank = self._rank
        self._note(rank.running_record())
        status = _wait(rank.pid)
        rank.note_end(status, memory_ran_out(), told=self._told or rank.stack is not None)
        self._note(rank.end_record())
        self._hold()
        return rank.exit_code if rank.signal is None else 128 + rank.signal

    def _note(self, record):
        _note(self._folder, dict(record, pid=self._rank.pid, host=os.uname().nodename, started_at=self._began))

    def _listen(self):
        for one in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(one, self._on_end)
        # Those that mpirun passes on.
        _signal.signal(_signal.SIGUSR1, self._on_user_signal)
        _signal.signal(_signal.SIGUSR2, self._on_user_signal)

    def _on_end(self, number, frame):
        self._told = True
        _pass_on(self._rank.pid, number)

    def _on_user_signal(self, number, frame):
        if number == _signal.SIGUSR1 and self._hangs():
            self._dump()
        else:
            _pass_on(self._rank.pid, number)

    def _hangs(self):
        """Whether it is the agent that asks, because the run hangs."""
        from trainmaster.job.agent import silence

        return os.path.exists(os.path.join(self._folder, silence.NAME))

    def _dump(self):
        from trainmaster.job.agent import hang, jsonfile, silence, stacks

        rank = self._rank
        if rank.stack is not None or rank.ended:
            return
        # From here on its end is our doing.
        rank.stack = ""
        seconds = jsonfile.read(os.path.join(self._folder, silence.NAME))["seconds"]
        place = stacks.Place(rank.rank, self._plan.log, self._plan.env.get("PATH", ""))
        rank.stack = stacks.dump([place], hang.tree_of_agent(os.environ), seconds)[rank.rank]
        self._note(dict(rank.running_record(), stack=rank.stack))

    def _hold(self):
        """mpirun ends all ranks when the first has ended: not before every rank has written where it stands."""
        until = time.monotonic() + _HOLD_SECONDS
        while self._rank.stack is not None and not self._told and time.monotonic() < until:
            time.sleep(0.05)


def _launcher_variables():
    """What Open MPI tells its ranks, and what the agent marks them with."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_FROM_LAUNCHER)}
    for name in ("TRAINMASTER_RUN_ID", "TRAINMASTER_AGENT"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return kept


def _pass_on(pid, number):
    try:
        os.killpg(pid, number)
    except OSError:
        # It has just ended.
        pass


def _wait(pid):
    while True:
        try:
            return os.waitpid(pid, 0)[1]
        except InterruptedError:
            continue


def _note(folder, record):
    """What is known of a rank, for the dispatcher and the agent."""
    from trainmaster.job.agent import jsonfile

    folder = os.path.join(folder, "ranks")
    try:
        os.makedirs(folder, exist_ok=True)
        jsonfile.write(os.path.join(folder, "{}.json".format(record["rank"])), record)
    except OSError as error:
        sys.stderr.write("rank {} cannot note how it goes: {}\n".format(record["rank"], error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

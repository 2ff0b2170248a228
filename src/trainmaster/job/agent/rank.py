"""What mpirun starts for every rank: starts the process planned for this rank and records how it ended.

`python -I -S rank.py <ranks.json>`. It runs between mpirun and the script, so that every rank has its own log and
variables, and so that the first failed rank is known from more than mpirun's report.
"""

# The bare C module: `signal` imports `enum` and `functools`, which take a third of this program's start-up time.
import _signal  # type: ignore[import-not-found]
import os
import sys
import time

# Because of -I our package is not on the path.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from trainmaster.job.agent.plan import Process
    from trainmaster.job.agent.ranks import Ended, Rank

_FROM_LAUNCHER = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HWLOC_")
# How long the agent may take to end the whole run after the stacks were written.
_HOLD_SECONDS = 60.0


def main(path: str) -> int:
    """Starts the process of this rank and returns its exit code, as a shell would."""
    from trainmaster.job.agent import cgroup, jsonfile, ranks, spawn, tokens
    from trainmaster.job.agent.plan import Process

    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    plan = Process(tokens.fill_plan(jsonfile.read(path))["ranks"][number], "ranks[{}]".format(number))
    environment = {name: value for name, value in os.environ.items() if name.startswith(plan.inherits)}
    environment.update(plan.env)
    environment.update(_launcher_variables())
    group = cgroup.find_own()
    before = ranks.memory_kills(group)
    folder = os.path.dirname(path)
    try:
        started = spawn.start(plan, environment)
        supervisor = _Supervisor(folder, plan, ranks.Rank(number, started.pid, plan.log))
        supervisor.install_signal_handlers()
        started.confirm()
    except spawn.StartError as error:
        words = {"headline": error.headline, "cause": error.cause, "hint": error.hint}
        _write_record(folder, {"rank": number, "error": words})
        return 1
    return supervisor.wait(lambda: ranks.memory_kills(group) > before)


class _Supervisor(object):
    """Watches the process of one rank: passes signals on to it, and records its state."""

    def __init__(self, folder: str, plan: "Process", rank: "Rank") -> None:
        self._folder = folder
        self._plan = plan
        self._rank = rank
        self._started_at = time.time()
        self._is_stopping = False

    def install_signal_handlers(self) -> None:
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, self._on_stop)
        # The signals that mpirun passes on.
        _signal.signal(_signal.SIGUSR1, self._on_user_signal)
        _signal.signal(_signal.SIGUSR2, self._on_user_signal)

    def wait(self, memory_ran_out: "Callable[[], bool]") -> int:
        """Waits for the end of the process; returns its exit code."""
        rank = self._rank
        self._record(rank.running_record())
        ended = _wait_for_child(rank.pid)
        rank.note_memory(ended.peak, ended.limit)
        rank.note_end(ended.status, memory_ran_out(), was_stopped=self._is_stopping or rank.stack is not None)
        self._record(rank.end_record())
        self._hold()
        return 128 + rank.signal if rank.signal is not None else rank.exit_code or 0

    def _record(self, record: "dict[str, Any]") -> None:
        record = dict(record, pid=self._rank.pid, host=os.uname().nodename, started_at=self._started_at)
        _write_record(self._folder, record)

    def _on_stop(self, number: int, frame: object) -> None:
        self._is_stopping = True
        _signal_group(self._rank.pid, number)

    def _on_user_signal(self, number: int, frame: object) -> None:
        if number == _signal.SIGUSR1 and self._is_hanging():
            self._write_stack()
        else:
            _signal_group(self._rank.pid, number)

    def _is_hanging(self) -> bool:
        """Whether the agent sent the signal because the run hangs."""
        from trainmaster.job.agent import silence

        return os.path.exists(os.path.join(self._folder, silence.NAME))

    def _write_stack(self) -> None:
        from trainmaster.job.agent import hang, jsonfile, silence, stacks

        rank = self._rank
        if rank.stack is not None or rank.has_ended:
            return
        # From here on the end of the rank is caused by the agent.
        rank.stack = ""
        seconds = jsonfile.read(os.path.join(self._folder, silence.NAME))["seconds"]
        target = stacks.Target(rank.rank, self._plan.log, self._plan.env.get("PATH", ""))
        rank.stack = stacks.dump([target], hang.tree_of_agent(os.environ), seconds)[rank.rank]
        self._record(dict(rank.running_record(), stack=rank.stack))

    def _hold(self) -> None:
        """mpirun ends all ranks when the first has ended, so a rank that hung waits until all have written stacks."""
        from trainmaster.job.agent.clock import wait_until

        if self._rank.stack is not None:
            wait_until(lambda: self._is_stopping, _HOLD_SECONDS)


def _launcher_variables() -> "dict[str, str]":
    """The variables that Open MPI sets for its ranks, and the marks of the agent."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(_FROM_LAUNCHER)}
    for name in ("TRAINMASTER_RUN_ID", "TRAINMASTER_AGENT"):
        if name in os.environ:
            variables[name] = os.environ[name]
    return variables


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        # The process has just ended.
        pass


def _wait_for_child(pid: int) -> "Ended":
    from trainmaster.job.agent.ranks import reap

    while True:
        try:
            ended = reap(pid, wait=True)
        except InterruptedError:
            continue
        if ended is not None:
            return ended


def _write_record(folder: str, record: "dict[str, Any]") -> None:
    """Writes the state of a rank, for the dispatcher and the agent."""
    from trainmaster.job.agent import jsonfile

    folder = os.path.join(folder, "ranks")
    try:
        os.makedirs(folder, exist_ok=True)
        jsonfile.write(os.path.join(folder, "{}.json".format(record["rank"])), record)
    except OSError as error:
        sys.stderr.write("the state of rank {} cannot be written: {}\n".format(record["rank"], error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

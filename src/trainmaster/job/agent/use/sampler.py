"""The process that measures while the run lasts. The agent forks it once the run is a second old."""

import _signal  # type: ignore[import-not-found]
import os
import time

from trainmaster.job.agent import jsonfile, spawn
from trainmaster.job.agent.silence import MEASUREMENTS
from trainmaster.job.agent.use.interval import next_interval
from trainmaster.job.agent.use.units import GB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from trainmaster.job.agent.plan import Plan
    from trainmaster.job.agent.ranks import Rank
    from trainmaster.job.agent.use.rank_use import Values

_NICENESS = 10


class Sampler(object):
    """The measuring process of one node."""

    def __init__(self, pid: int, journal: str) -> None:
        self.pid = pid
        self.journal = journal
        self.has_ended = False

    @classmethod
    def start(cls, plan: "Plan", ranks: "Sequence[Rank]", marker: str, age: float) -> "Sampler":
        """Forks the process; `age` is for how many seconds the ranks have been running. Raises OSError."""
        name = "{}{}-{}-{}.jsonl".format(MEASUREMENTS, plan.node, os.getpid(), os.urandom(4).hex())
        journal = os.path.join(plan.folder, "journals", name)
        agent = os.getpid()
        pid = os.fork()
        if pid:
            return cls(pid, journal)
        try:
            _isolate(agent)
            _measure_until_the_end(_Measurements(plan, ranks, marker, agent, age), journal, agent, plan.sample_seconds)
        except BaseException as error:  # noqa: BLE001 - must neither return to the agent's code nor disturb the run
            os.write(2, "measuring has ended: {!r}\n".format(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)

    def stop(self) -> None:
        """Ends the process."""
        if self.has_ended:
            return
        try:
            os.kill(self.pid, _signal.SIGKILL)
            # A process that waits for a broken driver cannot be ended, and must not hold up the run.
            for _ in range(100):
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return
                time.sleep(0.005)
        except OSError:
            # It has ended, and the agent has reaped it.
            pass

    def find_peak(self, rank: int) -> int:
        """The most memory that a rank had in any measurement, in bytes; 0 if there is none."""
        try:
            with open(self.journal, "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            return 0
        return max([0] + [_memory_in(line, rank) for line in lines])


def _memory_in(line: bytes, rank: int) -> int:
    try:
        return int(jsonfile.loads(line.decode("ascii"))["v"]["memory_gb"][str(rank)] * GB)
    except (ValueError, KeyError, TypeError):
        return 0


def _isolate(agent: int) -> None:
    """Ends with the agent, ends at signals, and keeps none of its files but the log open."""
    spawn.bind_to_agent(agent)
    spawn.reset_signals((_signal.SIGTERM, _signal.SIGINT, _signal.SIGCHLD, _signal.SIGHUP))
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                continue  # the handle of this listing
    os.nice(_NICENESS)


class _Measurements(object):
    """Measures the ranks, the node and its GPUs together."""

    def __init__(self, plan: "Plan", ranks: "Sequence[Rank]", marker: str, agent: int, age: float) -> None:
        from trainmaster.job.agent.use.gpus import GpuUse, find_chosen_gpus
        from trainmaster.job.agent.use.node_use import NodeUse
        from trainmaster.job.agent.use.rank_use import RankUse

        # In a container, and under a launcher, ranks are not descendants that the agent knows by their ids.
        is_hidden = plan.rank_count > 0 or any(each.remove for each in plan.processes)
        pids = {rank.rank: rank.pid for rank in ranks if not rank.has_ended}
        self.rank_count = max(plan.rank_count, len(pids))
        self._node = plan.node
        self._started = time.monotonic() - age
        self._ranks = RankUse(pids, agent, marker.encode("utf-8", "surrogateescape") if is_hidden else None)
        self._machine = NodeUse(plan.folder)
        self._gpus = GpuUse(find_chosen_gpus(each.env for each in plan.processes))

    def take(self) -> "dict[str, Mapping[Any, float]]":
        """By name of the metric, the values of the ranks, or that of this node."""
        now = time.monotonic()
        values: "Values" = self._ranks.measure(now, now - self._started)
        found: "dict[str, Mapping[Any, float]]" = {
            name: {str(rank): value for rank, value in by_rank.items()} for name, by_rank in values.items()
        }
        node = dict(self._machine.measure(now), **self._gpus.measure())
        found.update(("node/" + name, {str(self._node): value}) for name, value in node.items())
        return found


def _measure_until_the_end(use: _Measurements, journal: str, agent: int, wanted: "float | None") -> None:
    # The first measurement looks at all processes of the machine, later ones only at new ones.
    begun, cost, is_first = time.monotonic(), 0.0, True
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    os.makedirs(os.path.dirname(journal), exist_ok=True)
    while os.getppid() == agent:
        before = time.process_time()
        record = jsonfile.dumps({"k": "use", "t": round(time.time(), 3), "v": use.take()})
        try:
            # Opened each time: the disk may be full, or the folder may be replaced by a link.
            handle = os.open(journal, flags, 0o600)
            try:
                os.write(handle, record.encode("ascii") + b"\n")
            finally:
                os.close(handle)
        except OSError:
            # The measurement is lost. The next may fit.
            pass
        spent = time.process_time() - before
        # One that was slow by chance counts for a while only.
        cost = 0.0 if is_first else 0.7 * (cost or spent) + 0.3 * spent
        is_first = False
        time.sleep(next_interval(time.monotonic() - begun, cost, use.rank_count, wanted))

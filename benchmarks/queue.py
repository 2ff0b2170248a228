"""The queue, simulated: 10,000 runs on 500 nodes, against first come, first served in the same run.

python -m benchmarks.queue [--json] [--runs 10000] [--nodes 500]

The runs are those of a shared cluster: many small ones, few large ones, and limits that are longer than the runs. One
of the users submits half of them, in bulk. Decisions are those of the dispatcher; only the clock is not real.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainmaster.dispatcher.runs.backfill import latest_end
from trainmaster.dispatcher.runs.decisions import Occupation, decide, explain
from trainmaster.dispatcher.runs.fair_share import RecentUse, find_penalties
from trainmaster.dispatcher.runs.waiting import Request, WaitingRuns
from trainmaster.shared.records import NodeUse, TargetRecord

_SIZES = (1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64)
_LARGE = 16
_USERS = 20
_HEAVY = "u0"


@dataclass(frozen=True)
class Job:
    """A run to come, and how long it really takes."""

    request: Request
    takes: float


@dataclass
class Cluster:
    """One simulation."""

    nodes: int
    has_shares: bool
    """Whether users share the nodes."""
    now: float = 0.0
    waiting: WaitingRuns = field(default_factory=WaitingRuns)
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    use: RecentUse = field(default_factory=RecentUse)
    starts: dict[str, float] = field(default_factory=dict)
    decisions: list[float] = field(default_factory=list)
    deepest: int = 0

    def penalties(self) -> Mapping[str, float]:
        users = self.waiting.users | set(self.users.values())
        if not self.has_shares or len(users) < 2:
            return {}
        current = [NodeUse(self.users[run], len(nodes), self.since[run], self.now) for run, nodes in self.held.items()]
        return find_penalties(self.use.count(users, current, self.now))

    def occupation(self) -> Occupation:
        target = TargetRecord("cluster", "ssh", self.nodes, 8, 0)
        return Occupation({"cluster": target}, {"cluster": self.held}, self.users, self.ends)

    def assign(self) -> Iterator[str]:
        """Starts what may start; gives the runs."""
        self.deepest = max(self.deepest, len(self.waiting))
        begun = time.process_time()
        starts = decide(self.waiting, self.occupation(), None, self.penalties(), self.now).starts
        self.decisions.append(time.process_time() - begun)
        for run_id, nodes in starts.items():
            request = self.waiting.remove(run_id)
            assert request is not None
            self.held[run_id], self.users[run_id] = nodes, request.user
            self.since[run_id] = self.starts[run_id] = self.now
            if request.seconds is not None:
                self.ends[run_id] = latest_end(self.now, request.seconds)
            yield run_id

    def release(self, run_id: str) -> None:
        nodes, user, since = self.held.pop(run_id), self.users.pop(run_id), self.since.pop(run_id)
        self.ends.pop(run_id, None)
        self.use.add(NodeUse(user, len(nodes), since, self.now))


def make_jobs(count: int, nodes: int, seed: int = 7) -> list[Job]:
    """Runs that need somewhat more than the cluster has while they arrive."""
    chance = random.Random(seed)
    jobs, at = [], 0.0
    sizes = [chance.choice(_SIZES) for _ in range(count)]
    lengths = [min(86400.0, chance.lognormvariate(7.5, 1.2)) for _ in range(count)]
    rate = 1.1 * nodes / (statistics.mean(sizes) * statistics.mean(lengths))
    bulk = 0
    for number in range(count):
        if not bulk:
            at += chance.expovariate(rate / 2)
            # Every now and then the heavy user submits a hundred runs at once, as a loop in a shell does.
            bulk = 100 if chance.random() < 0.0099 else 1
        is_bulk, bulk = bulk > 1, bulk - 1
        user = _HEAVY if is_bulk else f"u{chance.randrange(1, _USERS)}"
        limit = None if chance.random() < 0.2 else lengths[number] * chance.uniform(1.2, 5)
        jobs.append(Job(Request(f"r{number}", "cluster", sizes[number], number, user, 0, at, limit), lengths[number]))
    return jobs


def simulate(jobs: list[Job], nodes: int, *, has_limits: bool, has_shares: bool) -> Cluster:
    """Plays all runs to their end."""
    cluster = Cluster(nodes, has_shares)
    by_id = {job.request.run_id: job for job in jobs}
    events: list[tuple[float, int, str]] = [(job.request.submitted_at, n, "") for n, job in enumerate(jobs)]
    heapq.heapify(events)
    count = len(events)
    while events:
        cluster.now, number, ended = heapq.heappop(events)
        if ended:
            cluster.release(ended)
        else:
            request = jobs[number].request
            cluster.waiting.add(request if has_limits else replace(request, seconds=None))
        for run_id in cluster.assign():
            count += 1
            heapq.heappush(events, (cluster.now + by_id[run_id].takes, count, run_id))
    return cluster


def describe(cluster: Cluster, jobs: list[Job]) -> dict[str, Any]:
    """Utilisation and waiting."""
    waits = {job.request.run_id: cluster.starts[job.request.run_id] - job.request.submitted_at for job in jobs}
    last = max(job.request.submitted_at for job in jobs)
    used = sum(
        job.request.node_count * max(0.0, min(last, cluster.starts[job.request.run_id] + job.takes) - start)
        for job in jobs
        if (start := cluster.starts[job.request.run_id]) < last
    )
    groups = {
        "all": jobs,
        "small": [job for job in jobs if job.request.node_count < _LARGE],
        "large": [job for job in jobs if job.request.node_count >= _LARGE],
        "heavy user": [job for job in jobs if job.request.user == _HEAVY],
        "other users": [job for job in jobs if job.request.user != _HEAVY],
    }
    by_user = [
        statistics.mean(waits[job.request.run_id] for job in jobs if job.request.user == user)
        for user in {job.request.user for job in jobs} - {_HEAVY}
    ]
    ends = max(cluster.starts[job.request.run_id] + job.takes for job in jobs)
    return {
        "utilisation_percent": 100 * used / (cluster.nodes * last),
        "makespan_hours": ends / 3600,
        "mean_wait_minutes": {name: statistics.mean(_waits(found, waits)) / 60 for name, found in groups.items()},
        "p95_wait_minutes": {name: _p95(_waits(found, waits)) / 60 for name, found in groups.items()},
        "longest_wait_hours": max(waits.values()) / 3600,
        "worst_mean_of_other_users_minutes": max(by_user) / 60,
        "most_waiting": cluster.deepest,
        "decide_mean_us": 1e6 * statistics.mean(cluster.decisions),
        "decide_p99_us": 1e6 * sorted(cluster.decisions)[int(0.99 * len(cluster.decisions))],
    }


def _waits(jobs: list[Job], waits: Mapping[str, float]) -> list[float]:
    return [waits[job.request.run_id] for job in jobs]


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def measure_depth(waiting: int, nodes: int) -> dict[str, float]:
    """What an event costs while so many runs wait: a run arrives, one ends, somebody asks for all reasons."""
    cluster = Cluster(nodes, has_shares=True)
    for number in range(nodes + waiting):
        # The first that waits is large, so that every decision looks for smaller ones.
        size = nodes // 2 if number == nodes else 1
        cluster.waiting.add(Request(f"r{number}", "cluster", size, number, f"u{number % 20}", 0, number, None))
        if number < nodes:
            list(cluster.assign())
    cluster.decisions.clear()
    arrivals, ends = [], []
    for number in range(200):
        request = Request(f"n{number}", "cluster", 1, 10**6 + number, f"u{number % 20}", 0, 10.0**6 + number, None)
        begun = time.process_time()
        cluster.waiting.add(request)
        list(cluster.assign())
        arrivals.append(time.process_time() - begun)
        begun = time.process_time()
        cluster.release(next(iter(cluster.held)))
        list(cluster.assign())
        ends.append(time.process_time() - begun)
    begun = time.process_time()
    reasons = explain(cluster.waiting, cluster.occupation(), None, cluster.penalties(), cluster.now)
    found = {run_id: reasons[run_id] for run_id in list(reasons)[:100]}
    assert len(found) == 100 or len(reasons) < 100
    return {
        "arrival_us": 1e6 * statistics.median(arrivals),
        "end_us": 1e6 * statistics.median(ends),
        "all_reasons_ms": 1e3 * (time.process_time() - begun),
    }


def measure(runs: int = 10_000, nodes: int = 500) -> dict[str, Any]:
    """Both queues, with the same runs."""
    jobs = make_jobs(runs, nodes)
    return {
        "runs": runs,
        "nodes": nodes,
        # Without limits, next to nothing starts before the first, as in the queue before.
        "first_come": describe(simulate(jobs, nodes, has_limits=False, has_shares=False), jobs),
        "small_first": describe(simulate(jobs, nodes, has_limits=True, has_shares=False), jobs),
        "queue": describe(simulate(jobs, nodes, has_limits=True, has_shares=True), jobs),
        "events": {str(waiting): measure_depth(waiting, nodes) for waiting in (100, 10_000)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=500)
    options = parser.parse_args()
    found = measure(options.runs, options.nodes)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    ways = [found[name] for name in ("first_come", "small_first", "queue")]
    print(
        f"{options.runs} runs on {options.nodes} nodes: first come, first served | with small runs first | and shares"
    )
    _say("utilisation, %", [f"{way['utilisation_percent']:.1f}" for way in ways])
    _say("all done, h", [f"{way['makespan_hours']:.1f}" for way in ways])
    for name in ways[0]["mean_wait_minutes"]:
        _say(f"{name}: mean wait, min", [f"{way['mean_wait_minutes'][name]:.0f}" for way in ways])
        _say(f"{name}: 95 % wait, min", [f"{way['p95_wait_minutes'][name]:.0f}" for way in ways])
    _say("longest wait, h", [f"{way['longest_wait_hours']:.1f}" for way in ways])
    _say("most waiting", [str(way["most_waiting"]) for way in ways])
    _say("decide, us", [f"{way['decide_mean_us']:.0f}" for way in ways])
    _say("decide, 99 %, us", [f"{way['decide_p99_us']:.0f}" for way in ways])
    for waiting, costs in found["events"].items():
        print(f"{waiting} waiting: " + ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items()))


def _say(name: str, values: list[str]) -> None:
    print(f"{name:26}" + "".join(f"{value:>10}" for value in values))


if __name__ == "__main__":
    main()

"""What Slurm says about jobs, and what that means for a run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.engines.engine import Ending
from trainmaster.engines.slurm import reasons
from trainmaster.shared.records import RunError, Status

FORMAT = "%i|%T|%Q|%P|%N|%r|%j"
_COLUMNS = 7

WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
OVER = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
_NOW = re.compile(r"^Configuration data as of (\S+)", re.MULTILINE)
_BOOTED = re.compile(r"^BOOT_TIME\s*= (\S+)", re.MULTILINE)
_OVER_MEMORY = "exceeded memory limit"
# Jobs that wait for another reason do not delay others.
_IN_LINE = frozenset({"Resources", "Priority", "None"})


@dataclass(frozen=True)
class Listed:
    """One line of squeue."""

    id: str
    state: str
    priority: int
    partition: str
    nodes: str
    reason: str
    name: str


def parse(text: str) -> list[Listed]:
    """The lines of `squeue --format` with our FORMAT.

    >>> parse("17|RUNNING|4294901757|main|node[1-2]|None|trainmaster.r.1")[0].nodes
    'node[1-2]'
    """
    found = []
    for line in text.splitlines():
        words = line.split("|", _COLUMNS - 1)
        if len(words) == _COLUMNS:
            number, state, priority, partition, nodes, reason, name = words
            ranked = int(priority) if priority.isdigit() else 0
            found.append(Listed(number, state, ranked, partition, nodes, reason.strip("()"), name))
    return found


def waiting_sentence(job: Listed, others: Sequence[Listed]) -> str:
    """What a run waits for, with Slurm's reason.

    >>> job = Listed("9", "PENDING", 10, "main", "", "Priority", "")
    >>> waiting_sentence(job, [Listed("7", "PENDING", 10, "main", "", "Resources", ""), job])
    'waiting for Slurm: Priority, about 1 job ahead (job 9)'
    """
    if job.state == "CONFIGURING":
        return f"Slurm is preparing {job.nodes} (job {job.id})"
    if job.state not in WAITING:
        return f"Slurm has allocated {job.nodes}; the agent is starting (job {job.id})"
    ahead = sum(_is_ahead(other, job) for other in others)
    line = f", about {ahead} {'job' if ahead == 1 else 'jobs'} ahead" if ahead else ""
    reason = "a place in the queue" if job.reason in ("None", "") else job.reason
    meaning = reasons.explain_reason(job.reason)
    return f"waiting for Slurm: {reason}{f' ({meaning})' if meaning else ''}{line} (job {job.id})"


def _is_ahead(other: Listed, job: Listed) -> bool:
    if other.state != "PENDING" or other.partition != job.partition or other.reason not in _IN_LINE:
        return False
    if other.priority != job.priority:
        return other.priority > job.priority
    return _number(other) < _number(job)


def _number(job: Listed) -> int:
    first = job.id.partition("_")[0]
    return int(first) if first.isdigit() else 0


def was_not_launched(state: str, nodes: str, began: bool) -> bool:
    """Whether a job was cancelled after it got nodes and before it started there.

    >>> was_not_launched("CANCELLED", "node3", began=False)
    True
    >>> was_not_launched("CANCELLED", "", began=False), was_not_launched("CANCELLED", "node3", began=True)
    (False, False)
    """
    return state == "CANCELLED" and bool(nodes) and not began


def controller_age(config: str) -> float | None:
    """The seconds for which slurmctld has run, from `scontrol show config`; None if it does not say.

    >>> controller_age("Configuration data as of 2026-01-01T00:01:30\\nBOOT_TIME     = 2026-01-01T00:00:00\\n")
    90.0
    """
    now, since = _NOW.search(config), _BOOTED.search(config)
    if now is None or since is None:
        return None
    try:
        return (datetime.fromisoformat(now[1]) - datetime.fromisoformat(since[1])).total_seconds()
    except ValueError:
        return None


def ending(
    job_id: str, state: str, nodes: str, output: str = "", silent: Mapping[int, str] | None = None
) -> Ending | None:
    """How the job of a run ended, if Slurm knows more than its agents.

    `output` is what the job printed; `silent` are the nodes of the run that left no result, with their names.

    >>> ending("17", "NODE_FAIL", "node[1-2]", silent={1: "node2"}).error.message
    'Slurm lost node 1 of the run (node2): NODE_FAIL, job 17'
    >>> ending("17", "FAILED", "node1", "error: StepId=17.batch exceeded memory limit (9 > 8), being killed").error.code
    'OutOfMemory'
    """
    if state == "FAILED" and _OVER_MEMORY in output:
        # With OverMemoryKill, Slurm has no state of its own for it.
        state = "OUT_OF_MEMORY"
    if state == "PREEMPTED":
        message = f"job {job_id} was preempted: Slurm gave its nodes to another job"
        return Ending(Status.FAILED, RunError("Preempted", message), again=True)
    if state == "CANCELLED":
        message = f"the run was cancelled in Slurm (scancel of job {job_id}), not through Trainmaster"
        return Ending(Status.CANCELED, RunError("CanceledInSlurm", message))
    if state in ("TIMEOUT", "DEADLINE"):
        message = f"the run was cancelled: job {job_id} exceeded Slurm's time limit ({state})"
        return Ending(Status.CANCELED, RunError("SlurmTimeLimit", message))
    if state in ("NODE_FAIL", "BOOT_FAIL"):
        lost = silent or {}
        which = f"node {min(lost)} of the run ({lost[min(lost)]})" if lost else f"a node of {nodes}"
        message = f"Slurm lost {which}: {state}, job {job_id}"
        return Ending(Status.FAILED, RunError("NodeFailed", message, {"node": min(lost)} if lost else {}))
    failed = _FAILURES.get(state)
    if failed is not None:
        code, sentence = failed
        details = f"\n{output}" if output else ""
        return Ending(Status.FAILED, RunError(code, sentence.format(job=job_id, nodes=nodes, state=state) + details))
    return None


_FAILURES = {
    "OUT_OF_MEMORY": ("OutOfMemory", "job {job} used more memory than Slurm gave it on {nodes} (out of memory)"),
    "FAILED": ("StartError", "job {job} failed on {nodes} before an agent of Trainmaster started"),
    "REVOKED": ("StartError", "job {job} was taken over by another cluster: REVOKED"),
    "LOST": ("NodeAgentLost", "Slurm no longer knows job {job}, and the job left no result"),
    "COMPLETED": ("NodeAgentLost", "job {job} ended on {nodes}, but its agent left no result"),
}

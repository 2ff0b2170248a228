"""Why a job waits: the meaning of Slurm's reasons. Pure."""

from __future__ import annotations

import re

_MEANINGS = {
    "AccountNotAllowed": "this account may not use the partition",
    "BadConstraints": "no node has the requested features",
    "BeginTime": "its start time has not come yet",
    "Cleaning": "its last start is being cleaned up",
    "DeadLine": "it can no longer end before its deadline",
    "Dependency": "another job must end first",
    "DependencyNeverSatisfied": "the job that it depends on did not end as required, so it will never start",
    "FrontEndDown": "no front end node is available",
    "InactiveLimit": "the inactivity limit was reached",
    "InvalidAccount": "the account is no longer valid",
    "InvalidQOS": "the QOS is no longer valid",
    "JobArrayTaskLimit": "the limit of running tasks of its array is reached",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "it is held; release it with 'scontrol release' and its number",
    "JobLaunchFailure": "it could not be started",
    "Licenses": "its licenses are in use",
    "MaxMemPerLimit": "it requests more memory than a job may have",
    "NodeDown": "a node that it needs is down",
    "PartitionConfig": "the partition does not allow what it requests",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition does not start jobs now",
    "PartitionNodeLimit": "it requests more nodes than the partition allows, or nodes are down",
    "PartitionTimeLimit": "its time limit is longer than the partition allows",
    "Prolog": "its nodes are being prepared",
    "QOSNotAllowed": "this QOS may not use the partition",
    "QOSJobLimit": "the QOS has reached its limit of running jobs",
    "QOSResourceLimit": "the QOS has used up its resources",
    "QOSTimeLimit": "the QOS has used up its time",
    "QOSUsageThreshold": "the QOS has used too much recently",
    "AssociationJobLimit": "the account has reached its limit of running jobs",
    "AssociationResourceLimit": "the account has used up its resources",
    "AssociationTimeLimit": "the account has used up its time",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Reservation": "its reservation has not started",
    "ReservationDeleted": "its reservation was deleted",
}
# AssocGrpJobsLimit, AssocMaxCpuPerJobLimit, QOSMaxJobsPerUserLimit, QOSGrpGRES, QOSMinCpuNotSatisfied, ...
_LIMIT = re.compile(r"(?P<whose>Assoc|QOS)(?P<kind>Grp|Max|Min)(?P<what>[A-Z]\w*?)(?P<per>Per[A-Z]\w*)?$")
_RESOURCES = (
    ("submit", "jobs in the queue"),
    ("job", "jobs"),
    ("min", "time"),
    ("wall", "time"),
    ("cpu", "CPUs"),
    ("node", "nodes"),
    ("mem", "memory"),
    ("gres", "GPUs or other devices"),
    ("license", "licenses"),
    ("bill", "billed units"),
    ("energy", "energy"),
)


def explain_reason(reason: str) -> str:
    """What a reason means; empty if it is self-explanatory or unknown.

    >>> explain_reason("Dependency"), explain_reason("Resources")
    ('another job must end first', '')
    >>> explain_reason("ReqNodeNotAvail, UnavailableNodes:node7")
    'nodes that it needs are down, drained or reserved'
    >>> explain_reason("AssocGrpJobsLimit"), explain_reason("QOSMaxJobsPerUserLimit")
    ('the account has as many jobs as it may have', 'you have as many jobs as the QOS allows you')
    >>> explain_reason("QOSMaxCpuPerJobLimit"), explain_reason("QOSMinCpuNotSatisfied")
    ('it requests more CPUs than the QOS allows a job', 'it requests fewer CPUs than the QOS requires')
    """
    word = re.split(r"[,:]", reason, maxsplit=1)[0].strip()
    limit = _LIMIT.match(word)
    if word in _MEANINGS or limit is None:
        return _MEANINGS.get(word, "")
    return _explain_limit(limit)


def _explain_limit(limit: re.Match[str]) -> str:
    whose = "the QOS" if limit["whose"] == "QOS" else "the account"
    what = next((words for name, words in _RESOURCES if name in limit["what"].lower()), "")
    if not what:
        return f"a limit of {whose}"
    as_much, less = ("as many", "fewer") if what.endswith("s") else ("as much", "less")
    per = limit["per"] or ""
    if limit["kind"] == "Min":
        return f"it requests {less} {what} than {whose} requires"
    if limit["kind"] == "Grp":
        return f"{whose} has {as_much} {what} as it may have"
    if "User" in per or what.startswith("jobs"):
        return f"you have {as_much} {what} as {whose} allows you"
    if "Account" in per:
        return f"the account has {as_much} {what} as {whose} allows"
    return f"it requests more {what} than {whose} allows a {'node' if 'Node' in per else 'job'}"

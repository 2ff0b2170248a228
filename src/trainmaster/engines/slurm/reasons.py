"""Why a job waits: Slurm has a word for it, of which this is the meaning. Pure."""

from __future__ import annotations

import re

_MEANINGS = {
    "AccountNotAllowed": "the partition is not for this account",
    "BadConstraints": "no node has what it asks for",
    "BeginTime": "the time it is to begin at has not come",
    "Cleaning": "what is left of its last start is cleared up",
    "DeadLine": "it cannot end before its deadline any more",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "the job that it depends on did not end as it had to: it will never start",
    "FrontEndDown": "no front end answers",
    "InactiveLimit": "the inactivity limit was reached",
    "InvalidAccount": "the account is not valid any more",
    "InvalidQOS": "the QOS is not valid any more",
    "JobArrayTaskLimit": "so many of its array may run at once as do",
    "JobHeldAdmin": "an administrator holds it back",
    "JobHeldUser": "it is held back; 'scontrol release' and its number let it go",
    "JobLaunchFailure": "it could not be started",
    "Licenses": "its licenses are in use",
    "MaxMemPerLimit": "it asks for more memory than a job may have",
    "NodeDown": "a node that it needs is down",
    "PartitionConfig": "the partition does not allow what it asks for",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition starts no jobs now",
    "PartitionNodeLimit": "it asks for more nodes than a job of the partition may have, or nodes there are down",
    "PartitionTimeLimit": "its time limit is longer than the partition allows",
    "Prolog": "its nodes are being prepared",
    "QOSNotAllowed": "the partition is not for this QOS",
    "QOSJobLimit": "so many jobs of the QOS run as may",
    "QOSResourceLimit": "the QOS has used up what it may",
    "QOSTimeLimit": "the QOS has used up its time",
    "QOSUsageThreshold": "the QOS has used too much of late",
    "AssociationJobLimit": "so many jobs of the account run as may",
    "AssociationResourceLimit": "the account has used up what it may",
    "AssociationTimeLimit": "the account has used up its time",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Reservation": "its reservation has not begun",
    "ReservationDeleted": "its reservation is gone",
}
# AssocGrpJobsLimit, AssocMaxCpuPerJobLimit, QOSMaxJobsPerUserLimit, QOSGrpGRES, QOSMinCpuNotSatisfied, ...
_LIMIT = re.compile(r"(?P<whose>Assoc|QOS)(?P<kind>Grp|Max|Min)(?P<what>[A-Z]\w*?)(?P<per>Per[A-Z]\w*)?$")
_OF_WHAT = (
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


def in_words(reason: str) -> str:
    """What Slurm's word means; empty where it says it itself, or is not known.

    >>> in_words("Dependency"), in_words("ReqNodeNotAvail, UnavailableNodes:node7"), in_words("Resources")
    ('another job has to end first', 'nodes that it needs are down, drained or reserved', '')
    >>> in_words("AssocGrpJobsLimit"), in_words("QOSMaxJobsPerUserLimit")
    ('the account has as many jobs as it may', 'you have as many jobs as the QOS allows you')
    >>> in_words("QOSMaxCpuPerJobLimit"), in_words("QOSMinCpuNotSatisfied")
    ('it asks for more CPUs than the QOS allows a job', 'it asks for fewer CPUs than the QOS wants')
    """
    word = re.split(r"[,:]", reason, maxsplit=1)[0].strip()
    limit = _LIMIT.match(word)
    if word in _MEANINGS or limit is None:
        return _MEANINGS.get(word, "")
    return _of_limit(limit)


def _of_limit(limit: re.Match[str]) -> str:
    whose = "the QOS" if limit["whose"] == "QOS" else "the account"
    what = next((words for name, words in _OF_WHAT if name in limit["what"].lower()), "")
    if not what:
        return f"a limit of {whose}"
    as_much, less = ("as many", "fewer") if what.endswith("s") else ("as much", "less")
    per = limit["per"] or ""
    if limit["kind"] == "Min":
        return f"it asks for {less} {what} than {whose} wants"
    if limit["kind"] == "Grp":
        return f"{whose} has {as_much} {what} as it may"
    if "User" in per or what.startswith("jobs"):
        return f"you have {as_much} {what} as {whose} allows you"
    if "Account" in per:
        return f"the account has {as_much} {what} as {whose} allows"
    return f"it asks for more {what} than {whose} allows a {'node' if 'Node' in per else 'job'}"

"""Why no machine takes a pod: what the scheduler says, in words. Pure.

The texts have changed over the versions of Kubernetes; all of them since 1.20 are understood. Others are passed on.
"""

from __future__ import annotations

import re

_SUMMARY = re.compile(r"(?P<free>\d+)/(?P<all>\d+) nodes? (?:is|are) available: (?P<causes>.*)", re.DOTALL)
# What newer schedulers add: whether others could be made to give way.
_ADDED = re.compile(r"[.,] (?:no new claims to deallocate|preemption: ).*", re.DOTALL)
_CAUSE = re.compile(r"(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_CLAIM_MISSING = re.compile(
    r'persistentvolumeclaim "(?P<claim>[^"]+)" (?P<how>not found|is being deleted|bound to [^.]*)'
)
_UNBOUND = "unbound immediate PersistentVolumeClaims"
_TAINT = re.compile(
    r"node\(s\) had (?:untolerated )?taints? \{(?P<key>[^:}]*):? ?(?P<value>[^}]*)\}(?:, that the pod didn't tolerate)?"
)
_UNNAMED_TAINT = re.compile(r"node\(s\) had untolerated taint\(s\)|node\(s\) had taints that the pod didn't tolerate")
_LACKING = re.compile(r"Insufficient (?P<what>\S+)")
_STATES = {
    "node.kubernetes.io/not-ready": "not ready",
    "node.kubernetes.io/unreachable": "unreachable",
    "node.kubernetes.io/unschedulable": "cordoned",
    "node.kubernetes.io/memory-pressure": "short of memory",
    "node.kubernetes.io/disk-pressure": "short of disk space",
    "node.kubernetes.io/pid-pressure": "short of process ids",
    "node.kubernetes.io/network-unavailable": "without network",
    "node-role.kubernetes.io/control-plane": "reserved for the control plane",
    "node-role.kubernetes.io/master": "reserved for the control plane",
}
_LACKED = {"cpu": "CPUs", "memory": "memory", "ephemeral-storage": "disk space", "pods": "room for another pod"}
# The first text that a cause contains decides. (one node, several nodes)
_OTHERS = (
    ("were unschedulable", ("is cordoned", "are cordoned")),
    ("were not ready", ("is not ready", "are not ready")),
    ("volume node affinity conflict", ("cannot reach the volume", "cannot reach the volume")),
    # Since 1.20, texts for node selectors name the affinity.
    ("node selector", ("does not match the node selector", "do not match the node selector")),
    ("node affinity", ("does not match the node selector", "do not match the node selector")),
    ("anti-affinity", ("is kept free of further pods of the run", "are kept free of further pods of the run")),
    ("topology spread constraints", ("would spread the run unevenly", "would spread the run unevenly")),
    ("available persistent volumes to bind", ("has no volume for the claim", "have no volume for the claim")),
    ("exceed max volume count", ("has too many volumes", "have too many volumes")),
    ("Too many pods", ("has too many pods", "have too many pods")),
    ("free ports", ("has no free port", "have no free port")),
)


def explain_unschedulable(message: str) -> str:
    """What a run waits for if no machine takes one of its pods.

    >>> explain_unschedulable("0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had taint {a: b}, "
    ... "that the pod didn't tolerate.")
    'waiting for nodes: 0/5 are available (3 lack nvidia.com/gpu, 2 have a taint the run does not tolerate: a=b)'
    >>> explain_unschedulable('0/2 nodes are available: persistentvolumeclaim "data" not found.')
    "waiting for a volume: there is no claim 'data'"
    >>> explain_unschedulable("something new")
    'waiting for nodes: something new'
    """
    volume = _explain_volume(message)
    if volume:
        return f"waiting for a volume: {volume}"
    found = _SUMMARY.search(message)
    if found is None:
        return f"waiting for nodes: {message.strip()}" if message.strip() else "waiting for nodes"
    causes = _ADDED.sub("", found["causes"]).strip().rstrip(".")
    parts = [_explain_cause(int(count), text) for count, text in _CAUSE.findall(causes)]
    return f"waiting for nodes: {found['free']}/{found['all']} are available ({', '.join(parts) or causes})"


def _explain_volume(message: str) -> str:
    missing = _CLAIM_MISSING.search(message)
    if missing is not None and missing["how"] == "not found":
        return f"there is no claim '{missing['claim']}'"
    if missing is not None:
        return f"claim '{missing['claim']}' {missing['how']}"
    if _UNBOUND in message:
        return "a claim of the run is not bound to a volume"
    return ""


def _explain_cause(count: int, text: str) -> str:
    """
    >>> _explain_cause(1, "Insufficient cpu"), _explain_cause(2, "node(s) had untolerated taint(s)")
    ('1 lacks CPUs', '2 have a taint the run does not tolerate')
    """
    taint = _TAINT.search(text)
    if taint is not None:
        return f"{count} {_explain_taint(count, taint['key'].strip(), taint['value'].strip())}"
    if _UNNAMED_TAINT.search(text):
        return f"{count} {'has' if count == 1 else 'have'} a taint the run does not tolerate"
    lacking = _LACKING.search(text)
    if lacking is not None:
        return f"{count} {'lacks' if count == 1 else 'lack'} {_LACKED.get(lacking['what'], lacking['what'])}"
    for sign, (one, several) in _OTHERS:
        if sign in text:
            return f"{count} {one if count == 1 else several}"
    return f"{count} {text}"


def _explain_taint(count: int, key: str, value: str) -> str:
    if key in _STATES:
        return f"{'is' if count == 1 else 'are'} {_STATES[key]}"
    named = f"{key}={value}" if value else key
    return f"{'has' if count == 1 else 'have'} a taint the run does not tolerate: {named}"

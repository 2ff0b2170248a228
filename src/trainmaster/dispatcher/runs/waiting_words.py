"""What a waiting run says about its place in the queue, and what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmaster.shared.records import TargetRecord


def say_place(place: int, reason: str, heavy_user: str | None = None) -> str:
    """The place in the queue and the reason; `heavy_user` has used more than their share.

    >>> say_place(2, "waiting for 1 of 1 node on 'box': run x holds it", "ann")
    "2nd in the queue: waiting for 1 of 1 node on 'box': run x holds it; user 'ann' has used more than an equal share"
    """
    share = "" if heavy_user is None else f"; user '{heavy_user}' has used more than an equal share"
    return f"{ordinal(place)} in the queue: {reason}{share}"


def ordinal(number: int) -> str:
    """
    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th']
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def say_target_is_gone(name: str) -> str:
    """For runs of a target that was deleted."""
    return f"waiting for target '{name}', which does not exist any more"


def say_who_holds(
    wanted: int,
    target: TargetRecord,
    runs: Mapping[str, tuple[int, ...]],
    free: int,
    gpus_taken: Mapping[str, str],
) -> str:
    """What a run waits for, and which runs have it."""
    nodes = "node" if target.nodes == 1 else "nodes"
    some = f", of which {free} {'is' if free == 1 else 'are'} free" if free else ""
    reason = _gpu_reason(gpus_taken) if gpus_taken and free >= wanted else _node_reason(target, runs, free)
    return f"waiting for {wanted} of {target.nodes} {nodes} on '{target.name}'{some}: {reason}"


def _gpu_reason(taken: Mapping[str, str]) -> str:
    names = sorted(set(taken.values()))
    words = ("run", "needs") if len(names) == 1 else ("runs", "need")
    return f"{words[0]} {_join(names)} of another target {words[1]} its GPUs"


def _node_reason(target: TargetRecord, runs: Mapping[str, tuple[int, ...]], free: int) -> str:
    names = sorted(runs)
    if not names:
        return f"'{target.name}' has only {target.nodes}"
    what = "it" if target.nodes == 1 else "the others" if free else "them"
    return f"run {names[0]} holds {what}" if len(names) == 1 else f"runs {_join(names)} hold {what}"


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

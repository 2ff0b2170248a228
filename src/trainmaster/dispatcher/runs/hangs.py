"""The error of a run that hangs: which ranks wait, which ended before, and the stack of each. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.shared.records import RunError

# How much of the stacks an error shows; the logs have the rest.
_RANKS, _INNERMOST, _LINES = 8, 4, 10
# Lines around the stacks that faulthandler (after SIGABRT) and py-spy print.
_AROUND = ("Fatal Python error:", "Extension modules:", "Process ", "Python v")
# Shown are the path of a script in its snapshot, and the name of a package.
_FOLDERS = re.compile(r"(?<=[\"(])/[^\"()]*/(runs/[^/\"()]+/code|(?:site|dist)-packages)/")
_CLOSING = {"<no Python frame>": "nowhere in its script any more: Python is closing down"}


def hang_error(records: Sequence[Mapping[str, Any]], seconds: float) -> RunError:
    """The error of a run that was ended because it hung, from the records of its ranks in result.json."""
    early = [record for record in records if is_early(record)]
    waiting = [record for record in records if not is_early(record)]
    lines = [headline(waiting, early, seconds)]
    for record in [record for record in waiting if record.get("stack")][:_RANKS]:
        lines.append(f"rank {record['rank']} on node {record.get('node', 0)} stood here:")
        lines += [f"  {line}" for line in stack_lines(record["stack"])]
    lines.append("All stacks are in the logs of the ranks. If silence is normal for this run, set hang_seconds higher.")
    return RunError(
        "HangDetected",
        "\n".join(lines),
        {
            "hang_seconds": seconds,
            "waiting": [record["rank"] for record in waiting],
            "ended_early": [record["rank"] for record in early],
            "stacks": {str(record["rank"]): record["stack"] for record in waiting if record.get("stack")},
        },
    )


def headline(waiting: Sequence[Mapping[str, Any]], early: Sequence[Mapping[str, Any]], seconds: float) -> str:
    """
    >>> headline([{"rank": 0}, {"rank": 1}], [], 60)
    'no output and no metric from any of 2 ranks for 60 s: taken for a hang'
    >>> headline([{"rank": 0}], [{"rank": 1, "ended_at": 3.0}], 60)
    'rank 1 ended with 0 at 00:00:03 UTC while rank 0 still waits: no output and no metric for 60 s'
    """
    if early:
        wait = f"{name_ranks(waiting)} still {'wait' if len(waiting) > 1 else 'waits'}"
        return f"{early_ends(early)} while {wait}: no output and no metric for {seconds:g} s"
    whom = f" from any of {len(waiting)} ranks" if len(waiting) > 1 else ""
    return f"no output and no metric{whom} for {seconds:g} s: taken for a hang"


def is_early(record: Mapping[str, Any]) -> bool:
    """Whether a rank ended with exit code 0 and by itself, which servers never do."""
    return record.get("exit_code") == 0 and not record.get("told") and not record.get("service")


def early_ends(records: Sequence[Mapping[str, Any]]) -> str:
    """
    >>> early_ends([{"rank": 1, "ended_at": 3.0}, {"rank": 2, "ended_at": 5.0}])
    'rank 1 ended with 0 at 00:00:03 UTC and rank 2 ended with 0 at 00:00:05 UTC'
    >>> early_ends([{"rank": rank, "ended_at": float(rank)} for rank in (1, 2, 3)])
    'ranks 1, 2, 3 ended with 0 until 00:00:03 UTC'
    """
    if len(records) > 2:
        return f"{name_ranks(records)} ended with 0 until {_clock(max(record['ended_at'] for record in records))}"
    return " and ".join(f"rank {record['rank']} ended with 0 at {_clock(record['ended_at'])}" for record in records)


def name_ranks(records: Sequence[Mapping[str, Any]]) -> str:
    """
    >>> name_ranks([{"rank": 0}, {"rank": 2}])
    'ranks 0, 2'
    """
    return f"rank{'s' if len(records) > 1 else ''} {', '.join(str(record['rank']) for record in records)}"


def stack_lines(stack: str) -> list[str]:
    """The most telling lines of a stack dump: the innermost calls of the main thread, then those in the script."""
    _, _, current = stack.partition("Current thread 0x")
    if current:
        lines = current.partition("\n\n")[0].splitlines()[1:]
    else:
        lines = [line for line in stack.splitlines() if not line.startswith(_AROUND)]
    said = [line.strip() for line in lines if line.strip()]
    kept = [line for number, line in enumerate(said) if number < _INNERMOST or _is_of_script(line)]
    return [_CLOSING.get(line, _FOLDERS.sub("", line)) for line in kept[:_LINES]]


def _is_of_script(line: str) -> bool:
    found = _FOLDERS.search(line)
    return found is not None and found[1].startswith("runs/")


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S UTC", time.gmtime(moment))

"""Several runs side by side: what differs, name by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.differences import FileDifference, RunDifferences
from trainmaster.shared.records import Curve, RunRecord
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

MOST_RUNS = 20
PARTS = ("arguments", "settings", "environment", "packages", "machine", "metrics")
"""What is compared besides the code."""


@dataclass(frozen=True)
class Row:
    """Something that is not the same in all runs: a value for each, None in a run that does not have it."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Comparison:
    """What differs between runs. The code of each is compared with that of the first."""

    runs: tuple[RunRecord, ...]
    arguments: tuple[Row, ...]
    settings: tuple[Row, ...]
    environment: tuple[Row, ...]
    packages: tuple[Row, ...]
    machine: tuple[Row, ...]
    metrics: tuple[Row, ...]
    code: tuple[tuple[FileDifference, ...], ...]
    """For each run but the first: the files that differ from those of the first."""
    notices: tuple[str, ...] = ()
    """What could not be compared, and why."""


def compare_runs(workspace: Workspace, runs: Sequence[RunRecord]) -> Comparison:
    """What differs between two or more runs of a workspace."""
    if len({run.id for run in runs}) < len(runs) or len(runs) < 2:
        raise UserErrorException("two different runs are needed for a comparison", hint="For example: compare @1 @2")
    if len(runs) > MOST_RUNS:
        raise UserErrorException(f"{len(runs)} runs cannot be compared at once: {MOST_RUNS} at most")
    call = workspace.connection.call
    found = [from_plain(RunDifferences, call("runs.differences", run_id=runs[0].id, other=run.id)) for run in runs[1:]]
    return merge_differences(runs, found)


def merge_differences(runs: Sequence[RunRecord], found: Sequence[RunDifferences]) -> Comparison:
    """The differences of each run from the first as one comparison."""
    return Comparison(
        tuple(runs),
        **{part: _merge_part(part, found) for part in PARTS},
        code=tuple(each.files for each in found),
        notices=tuple(dict.fromkeys(text for each in found for text in each.notices)),
    )


def _merge_part(part: str, found: Sequence[RunDifferences]) -> tuple[Row, ...]:
    sides = [{each.name: each for each in getattr(differences, part)} for differences in found]
    first = {name: each.left for side in sides for name, each in side.items()}
    return tuple(
        # A run without a difference has the value of the first.
        Row(name, (first[name], *(side[name].right if name in side else first[name] for side in sides)))
        for name in sorted(first)
    )


def read_curves(
    workspace: Workspace, runs: Sequence[RunRecord], names: Sequence[str], max_points: int = 500
) -> dict[str, list[Curve]]:
    """The curves of metrics (without `names` all) with more than one value, by metric, in the order of the runs."""
    answer = workspace.connection.call(
        "runs.curves", run_ids=[run.id for run in runs], names=list(names) or None, max_points=max_points
    )
    order = {run.id: number for number, run in enumerate(runs)}
    curves = sorted((from_plain(Curve, each) for each in answer), key=lambda curve: order[curve.run_id])
    missing = [name for name in names if name not in {curve.name for curve in curves}]
    if missing:
        known = sorted(
            {row["name"] for run in runs for row in workspace.connection.call("runs.metrics", run_id=run.id)}
        )
        raise UserErrorException(
            f"none of the runs has numbers of a metric '{missing[0][:300]}'", hint=f"They have: {', '.join(known)}."
        )
    found: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: curve.name):
        found.setdefault(curve.name, []).append(curve)
    return {name: lines for name, lines in found.items() if any(len(line.values) > 1 for line in lines)}


def points_of(curve: Curve) -> list[tuple[float, float | None]]:
    """The points of a curve, by step if all values have one, otherwise by their position."""
    has_steps = len(curve.steps) == len(curve.values) and None not in curve.steps
    across = curve.steps if has_steps else curve.index
    return sorted(
        ((float(x), value) for x, value in zip(across, curve.values, strict=True) if x is not None),
        key=lambda point: point[0],
    )

"""What is going on in a workspace, as lines for a terminal of a given size. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.sdk.display.describing import style_of
from trainmaster.sdk.display.table import Column, Paint, clip, render
from trainmaster.sdk.display.text import count_of, duration, size

_WIDE = 120
_BAR = 12
_BUSY, _FULL = 70.0, 90.0
_RUN, _STATE, _NOTE = Column("RUN", flexible=True), Column("STATE", style=style_of), Column("NOTE", flexible=True)
_TARGET = Column("TARGET", flexible=True)
_NUMBERS = tuple(Column(name, right=True) for name in ("TIME", "CPU %", "MEMORY", "PROCS"))
_GPU = Column("GPU %", right=True)
_MORE = tuple(Column(name, right=True) for name in ("READ MB/s", "WRITE MB/s"))
_TARGETS = (
    Column("TARGET", style=lambda text: "bold"),
    Column("ENGINE"),
    Column("NODES", right=True),
    Column("BUSY", right=True, style=lambda text: "" if text == "0" else "cyan"),
    Column("WAITING", right=True, style=lambda text: "" if text == "0" else "yellow"),
)


@dataclass(frozen=True)
class Use:
    """What a rank, or all ranks of a run together, use; None is unknown."""

    cpu_percent: float | None = None
    memory_gb: float | None = None
    processes: float | None = None
    disk_read_mb_per_s: float | None = None
    disk_write_mb_per_s: float | None = None


@dataclass(frozen=True)
class RunLine:
    """A run that has not ended."""

    id: str
    experiment: str
    status: str
    target: str
    user: str
    since: float
    waiting_for: str
    measured_at: float | None
    use: Use
    ranks: Mapping[int, Use]
    nodes: Mapping[int, Mapping[str, float]]
    """What was measured of each node, without the prefix `system/node/`."""

    @property
    def gpu_percent(self) -> float | None:
        """How busy its GPUs are on average."""
        found = [
            value
            for values in self.nodes.values()
            for name, value in values.items()
            if name.startswith("gpu") and name.partition("_")[2] == "percent"
        ]
        return sum(found) / len(found) if found else None


@dataclass(frozen=True)
class Snapshot:
    """A workspace at one moment. `machine` and `targets` have the keys of their commands' JSON."""

    workspace: str
    at: float
    machine: Mapping[str, Any] | None
    targets: tuple[Mapping[str, Any], ...]
    runs: tuple[RunLine, ...]


def render_frame(
    snapshot: Snapshot, width: int, height: int | None, paint: Paint, scroll: int = 0, note: str = ""
) -> list[str]:
    """The lines of a screen; `height` None gives all of them. `scroll` leaves out lines below the head."""
    head = [_render_title(snapshot, width, paint, note), *_render_machine(snapshot.machine, width, paint), ""]
    body = [*render(_TARGETS, [_target_row(each) for each in snapshot.targets], width, paint), ""]
    body += _render_runs(snapshot, width, paint)
    if height is None:
        return head + body
    room = max(1, height - len(head))
    scroll = max(0, min(scroll, len(body) - room))
    shown = body[scroll : scroll + room]
    left = len(body) - scroll - len(shown)
    if left > 0:
        shown[-1] = paint(clip(f"... {count_of(left + 1, 'more line')}: arrow keys scroll", width), "dim")
    return (head + shown)[:height]


def _render_title(snapshot: Snapshot, width: int, paint: Paint, note: str) -> str:
    running = sum(1 for run in snapshot.runs if run.status == "Running")
    counts = f"{count_of(len(snapshot.runs), 'active run')}, {running} running"
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.at))
    title = clip(f"{snapshot.workspace}  {clock}  {counts}", width)
    room = width - len(title) - 2
    return paint(title, "bold") + (f"  {paint(clip(note, room), 'yellow')}" if note and room > 4 else "")


def _render_machine(machine: Mapping[str, Any] | None, width: int, paint: Paint) -> list[str]:
    if machine is None:
        return []
    used, total = machine["memory_used"], machine["memory_total"]
    parts = [
        (f"{machine['host']}: CPU ", machine["cpu_percent"], f"{machine['cpu_percent']:.0f} % of {machine['cpus']}"),
        ("memory ", 100 * used / max(total, 1), f"{size(used)} of {size(total)}"),
    ]
    line = "  ".join(f"{name}{render_bar(percent, paint)} {text}" for name, percent, text in parts)
    plain = sum(len(name) + _BAR + 2 + 1 + len(text) for name, _, text in parts) + 2
    disk = f"  disk {size(machine['disk_free'])} free"
    lines = [line + disk] if plain + len(disk) <= width else [line] if plain <= width else []
    if not lines:
        lines = [clip("  ".join(f"{name}{text}" for name, _, text in parts), width)]
    for gpu in machine["gpus"]:
        percent, memory = gpu["percent"] or 0.0, f"{size(gpu['memory_used'] or 0)} of {size(gpu['memory_total'] or 0)}"
        name = clip(f"GPU {gpu['index']} {gpu['name']} ", max(0, width - _BAR - 40))
        lines.append(f"{name}{render_bar(percent, paint)} {percent:.0f} %, {memory}")
    return lines


def render_bar(percent: float, paint: Paint) -> str:
    """A bar of fixed width.

    >>> render_bar(50, lambda text, styles: text)
    '[######......]'
    """
    filled = max(0, min(_BAR, round(percent * _BAR / 100)))
    style = "red" if percent >= _FULL else "yellow" if percent >= _BUSY else "green"
    return f"[{paint('#' * filled, style)}{'.' * (_BAR - filled)}]"


def _target_row(target: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(target[key]) for key in ("name", "engine", "nodes", "busy", "waiting"))


def _render_runs(snapshot: Snapshot, width: int, paint: Paint) -> list[str]:
    if not snapshot.runs:
        return [paint("Nothing runs or waits.", "dim")]
    is_wide = width >= _WIDE
    has_gpus = any(run.gpu_percent is not None for run in snapshot.runs)
    columns = [_RUN, _STATE, _TARGET, *_NUMBERS, *([_GPU] if has_gpus else []), *(_MORE if is_wide else ()), _NOTE]
    rows = [row for run in snapshot.runs for row in _run_rows(run, snapshot.at, has_gpus, is_wide)]
    return render(columns, rows, width, paint)


def _run_rows(run: RunLine, now: float, has_gpus: bool, is_wide: bool) -> list[tuple[str, ...]]:
    """The row of a run, and one for each rank if it has several."""
    whole = (run.id, run.status, run.target, duration(max(0.0, now - run.since)))
    gpu = [_number(run.gpu_percent, 0)] if has_gpus else []
    note = run.waiting_for if run.status != "Running" else _describe_age(run, now)
    rows = [(*whole, *_use_cells(run.use, gpu, is_wide), note)]
    if len(run.ranks) > 1:
        empty = ["" for _ in gpu]
        rows += [(f"  rank {n}", "", "", "", *_use_cells(use, empty, is_wide), "") for n, use in run.ranks.items()]
    return rows


def _use_cells(use: Use, gpu: Sequence[str], is_wide: bool) -> list[str]:
    memory = "" if use.memory_gb is None else size(int(use.memory_gb * (1 << 30)))
    cells = [_number(use.cpu_percent, 0), memory, _number(use.processes, 0), *gpu]
    return cells + ([_number(use.disk_read_mb_per_s, 1), _number(use.disk_write_mb_per_s, 1)] if is_wide else [])


def _describe_age(run: RunLine, now: float) -> str:
    if run.measured_at is None or now - run.measured_at < 10:
        return ""
    return f"measured {duration(now - run.measured_at)} ago"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"

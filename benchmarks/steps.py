"""Training steps of two pairs of processes that take turns: what a step costs under one launcher and under another.

On a machine that others use too, the speed of one second is not that of the next: whoever measures one way after the
other measures the neighbours. So both ways run at the same time, and signals let only one of them go on, for a
fraction of a second each.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_STEPS = 4000
_SLICE_SECONDS = 0.25
_PATIENCE_SECONDS = 300.0

_LOOP = r"""
import os, statistics, sys, time
import torch
{start}
turns, way = sys.argv[1:]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
{wrap}
data = torch.randn(256, 256)
taken = []
for step in range(STEPS + 100):
    if step == 100:
        open(os.path.join(turns, "%s.%d" % (way, os.getpid())), "x").close()
        while not os.path.exists(os.path.join(turns, "go")):
            time.sleep(0.01)
    begun = time.perf_counter()
    optimizer.zero_grad()
    model(data).pow(2).mean().backward()
    optimizer.step()
    taken.append(time.perf_counter() - begun)
os.write(1, b"%r\n" % statistics.median(taken[100:]))
{end}
# torch 2.13 sometimes aborts while Python takes its threads down, with or without us.
os._exit(0)
""".replace("STEPS", str(_STEPS))
GLOO_LOOP = _LOOP.format(
    start="import torch.distributed as dist\ndist.init_process_group('gloo')",
    wrap="model = torch.nn.parallel.DistributedDataParallel(model)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)",
    end="dist.destroy_process_group()",
)
HOROVOD_LOOP = _LOOP.format(
    start="import horovod.torch as hvd\nhvd.init()",
    wrap="optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
    "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())",
    end="hvd.shutdown()",
)

Start = Callable[[str], Callable[[], Sequence[str]]]
"""Starts the loop with the folder of turns as its argument; what that returns waits, and gives what the ranks said."""


def in_turns(folder: Path, ways: dict[str, Start]) -> dict[str, float]:
    """Seconds of a step in each way: of the slower rank, since the others wait for it."""
    folder.mkdir()
    ends = {name: start(str(folder)) for name, start in ways.items()}
    pids = {name: _two_of(folder, name) for name in ways}
    everyone = [pid for of_way in pids.values() for pid in of_way]
    _signal(everyone, signal.SIGSTOP)
    (folder / "go").touch()
    try:
        while _signal(everyone, 0):
            for of_way in pids.values():
                _signal(of_way, signal.SIGCONT)
                time.sleep(_SLICE_SECONDS)
                _signal(of_way, signal.SIGSTOP)
    finally:
        _signal(everyone, signal.SIGCONT)
    return {name: max(float(line) for text in end() for line in text.split()) for name, end in ends.items()}


def ratio(rounds: Sequence[dict[str, float]], ours: str, bare: str) -> float:
    return statistics.median(each[ours] / each[bare] for each in rounds)


def _two_of(folder: Path, name: str) -> list[int]:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        found = [int(each.suffix[1:]) for each in folder.glob(f"{name}.*")]
        if len(found) == 2:
            return found
        time.sleep(0.05)
    raise SystemExit(f"{name}: its two processes did not come to their first step")


def _signal(pids: Sequence[int], number: int) -> bool:
    """Whether all of them still were there."""
    reached = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            reached += 1
    return reached == len(pids)

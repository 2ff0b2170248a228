"""Runs for the pages of the studio: many of them at once, and some that log while a page is open."""

from __future__ import annotations

import json
import math
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.server_process import ServerProcess
from trainmaster.dispatcher.store import Store
from trainmaster.shared.owner import this_program
from trainmaster.shared.records import RunError, RunRecord, Status

_EXPERIMENTS = ("resnet-imagenet", "bert-finetune", "churn-forecast", "tokenizer-ablation")
_USERS = ("ada", "grace", "edsger", "barbara")
_TARGETS = ("gpu-cluster", "local", "lab-hosts")
_STATUSES = (*(Status.COMPLETED,) * 11, *(Status.FAILED,) * 2, Status.CANCELED)


def add_runs(
    server: ServerProcess, workspace: str, runs: Iterable[tuple[RunRecord, Mapping[str, Sequence[float]]]]
) -> None:
    """Write runs with their metrics into a workspace that no dispatcher serves yet."""
    store = Store.open(server.root / "workspaces" / workspace / "trainmaster.db")
    with store._database.write():
        for record, metrics in runs:
            store.experiments.ensure(record.experiment, record.created_at)
            store.runs.add(record)
            rows = [
                {"k": "metric", "n": name, "v": value, "t": record.created_at + step, "s": step}
                for name, values in metrics.items()
                for step, value in enumerate(values)
            ]
            if rows:
                store.journals.ingest(record.id, "0-1-a.jsonl", 0, 1, rows)
    store.close()


def make_run(name: str, **changes: Any) -> RunRecord:
    """A run that has ended, with arguments from `lr=0.1, ...`."""
    arguments = changes.pop("arguments", {})
    words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
    made = RunRecord(
        id=changes.pop("id", name),
        experiment="first",
        status=Status.COMPLETED,
        created_at=time.time() - 3600,
        display_name=name,
        target="local",
        submitted_by="ada",
        spec=json.dumps({"version": 1, "arguments": words}),
    )
    made = replace(made, **changes)
    if made.started_at is None:
        made = replace(made, started_at=made.created_at + 4)
    return made if made.ended_at is not None else replace(made, ended_at=made.created_at + 1000)


def make_realistic_runs(count: int, seed: int = 3) -> list[tuple[RunRecord, dict[str, list[float]]]]:
    """Runs as a team has them: several experiments, states, people and curves. The newest comes last."""
    chance = random.Random(seed)
    found = []
    created = time.time() - count * 2000
    for number in range(count):
        experiment = chance.choice(_EXPERIMENTS)
        lr, batch = chance.choice((0.3, 0.1, 0.03, 0.01, 0.003)), chance.choice((32, 64, 128))
        status = chance.choice(_STATUSES)
        created += chance.uniform(1500, 2450)
        record = make_run(
            f"{experiment.split('-')[0]}-{chance.choice(('base', 'wide', 'deep', 'warmup', 'cosine'))}-{number}",
            id=f"{experiment}_{int(created)}_{number:04d}",
            experiment=experiment,
            status=status,
            created_at=created,
            started_at=created + chance.uniform(2, 90),
            ended_at=created + chance.uniform(200, 9000),
            target=chance.choice(_TARGETS),
            submitted_by=chance.choice(_USERS),
            arguments={"lr": lr, "batch-size": batch, "seed": number % 5},
            tags={"stage": chance.choice(("explore", "tune", "final"))},
            error=RunError("ScriptError", "CUDA out of memory") if status is Status.FAILED else None,
        )
        found.append((record, _make_curves(chance, lr, 12 if status is Status.FAILED else 60)))
    return found


def _make_curves(chance: random.Random, lr: float, steps: int) -> dict[str, list[float]]:
    floor, speed = 0.2 + 0.15 * abs(math.log10(lr) + 1.5), chance.uniform(0.04, 0.12)
    loss = [floor + 2 * math.exp(-speed * step) + chance.gauss(0, 0.03) for step in range(steps)]
    return {"loss": loss, "accuracy": [max(0.0, min(1.0, 1 - each / 3 + chance.gauss(0, 0.01))) for each in loss]}


class LiveRun:
    """A run without a job that logs over REST. It lives as long as this process, or until it is finished."""

    def __init__(self, server: ServerProcess, workspace: str, name: str, **record: Any) -> None:
        self._server, self._workspace = server, workspace
        self.id = record.pop("id", str(uuid.uuid4()))
        self._sent = 0
        experiment = record.pop("experiment", "live")
        server.call(workspace, "experiments.ensure", name=experiment)
        now = time.time()
        times = {"created_at": now, "started_at": now}
        made = {"id": self.id, "experiment": experiment, "status": "Running", "display_name": name, "type": "run"}
        server.call(workspace, "runs.create", runs=[{**made, **times, **record, "properties": this_program()}])

    def log(self, name: str, *values: float) -> None:
        """Log values to a metric."""
        lines = [json.dumps({"k": "metric", "n": name, "v": value, "t": time.time()}) + "\n" for value in values]
        body = "".join(lines).encode()
        path = f"/api/v1/workspaces/{self._workspace}/runs/{self.id}/journals/0-1-a.jsonl?offset={self._sent}"
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._server.request("PUT", path, body, headers=headers)
        assert answer.status == 200, answer
        self._sent += len(body)

    def finish(self, status: str = "Completed") -> None:
        """End the run."""
        path = f"/api/v1/workspaces/{self._workspace}/runs/{self.id}/finish"
        answer = self._server.request("POST", path, {"status": status})
        assert answer.status == 200, answer

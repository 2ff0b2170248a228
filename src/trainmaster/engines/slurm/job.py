"""One attempt of a run as a job of Slurm: what is noted of it, and what its agents wrote."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.slurm.options import job_name
from trainmaster.job.agent.other_nodes import STOP
from trainmaster.job.agent.slurm import GANG
from trainmaster.shared.json_files import read_json, write_json

_NOTE = "slurm.json"
_SHOWN_BYTES = 2000


class Job:
    """What this dispatcher knows of it; all of it can be found out again."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.name = job_name(nodes.run_id, nodes.folder.attempt)
        noted = read_json(self.folder / _NOTE) or {}
        self.id: str = noted.get("job_id") or ""
        self.submissions: int = noted.get("submissions", 0)
        self.uncertain = bool(noted) and not self.id
        """Whether somebody was about to submit it, and did not live to say whether it came to that."""
        self.noted_at: float = noted.get("at", time.time())
        self.script = ""
        self.state = ""
        """Slurm's word; empty as long as it has not been asked, LOST if it does not know the job."""
        self.node_list = ""
        self.missed = 0
        """In how many lists of jobs it was not to be found, one after the other."""
        self.trouble = ""
        """Why it is not submitted yet."""
        self.unreadable = ""
        """Why its files could not be read last time."""
        self.refused = ""
        self.bringing: asyncio.Future[None] | None = None
        """While what it needs is on its way."""
        self.submitting = False
        self.stopped = False
        self.unsaid: Callable[[Nodes], Awaitable[None]] | None = None
        """What Slurm has not heard yet: it is said again when it answers."""
        self.told: set[str] = set()
        self.over = asyncio.Event()
        """There is no job any more."""
        self.changed = asyncio.Event()
        self.leaving_since = 0.0
        self._results: dict[int, dict[str, Any]] = {}

    @property
    def folder(self) -> Path:
        """Where the folders of its nodes are."""
        return self.nodes.folder.node(0).parent

    @property
    def began(self) -> bool:
        """Whether a job of this name has come to run."""
        return (self.folder / GANG).exists()

    @property
    def owner(self) -> str:
        """The number of the job that carries it out; empty as long as none has begun."""
        return str((read_json(self.folder / GANG) or {}).get("job_id", ""))

    @property
    def submitted(self) -> bool:
        """Whether it was, or may have been."""
        return bool(self.id) or self.uncertain

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be expected of it."""
        return len(self._results) == self.nodes.count or self.over.is_set()

    def note(self, job_id: str = "") -> None:
        """Writes down that it is about to be submitted or, with a number, that it is."""
        if not job_id:
            self.submissions += 1
        self.id, self.noted_at, self.uncertain = job_id, time.time(), not job_id
        data = {"version": 1, "job_id": job_id, "at": self.noted_at, "submissions": self.submissions}
        write_json(self.folder / _NOTE, data)

    def result(self, number: int) -> dict[str, Any] | None:
        """What the agent of a node left, once it is there."""
        if number not in self._results:
            found = read_json(self.nodes.folder.node(number) / "result.json")
            if found is not None:
                self._results[number] = found
        return self._results.get(number)

    def look(self) -> list[str]:
        """What its files say that they did not say before: `running`, `done`, `ended`."""
        news = []
        for number in range(self.nodes.count):
            folder = self.nodes.folder.node(number)
            known = number in self._results
            if not known and self.result(number) is not None:
                news.append("ended")
            if "running" not in self.told and (folder / "running.json").exists():
                self.told.add("running")
                news.append("running")
            if f"done {number}" not in self.told and (folder / "done.json").exists():
                self.told.add(f"done {number}")
                news.append("done")
        return news

    def refresh(self) -> None:
        """Has the file system of the cluster look again: what was not there may be remembered as such."""
        for number in range(self.nodes.count):
            folder = self.nodes.folder.node(number)
            if folder.is_dir():
                os.listdir(folder)

    def give_up(self) -> None:
        """Agents that still run, though nobody can reach them, end when they see this."""
        write_json(self.folder / STOP, {"version": 1, "at": time.time()})

    def needs_explaining(self) -> bool:
        """Whether Slurm may know better than the agents why they ended: none of them failed by itself."""
        results = [self.result(number) for number in range(self.nodes.count)]
        launcher = (self.nodes.folder.node(0) / "ranks.json").exists()
        if any(result and _failed_by_itself(result, launcher) for result in results):
            return False
        return any(result is None or result.get("reason") == "cancelled" or _failed(result) for result in results)

    @property
    def silent(self) -> dict[int, str]:
        """The nodes whose agents left no result, with the names of their machines."""
        names = self.machines
        numbers = [number for number in range(self.nodes.count) if self.result(number) is None]
        return {number: names[number] if number < len(names) else "?" for number in numbers}

    @property
    def machines(self) -> list[str]:
        """The names of the machines it got, by the run's own numbers of its nodes."""
        return list((read_json(self.folder / GANG) or {}).get("names", []))

    def printed(self) -> str:
        """The last lines of what the job itself printed: not the script, but what should have led to it."""
        try:
            text = (self.folder / f"slurm-{self.id}.log").read_bytes()[-_SHOWN_BYTES:].decode("utf-8", "replace")
        except OSError:
            return ""
        return text.strip()


def _failed(result: dict[str, Any]) -> bool:
    return bool(result.get("first_failure"))


def _failed_by_itself(result: dict[str, Any], launcher: bool) -> bool:
    """Whether a process ended with an error, and neither by a signal nor because mpirun lost the others."""
    if result.get("reason") in ("error", "timeout", "hang"):
        return True
    failure = result.get("first_failure") or {}
    return not launcher and failure.get("signal") is None and 0 < (failure.get("exit_code") or 0) <= 128

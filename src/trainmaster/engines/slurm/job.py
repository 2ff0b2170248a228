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
    """What this dispatcher knows of a job. The next dispatcher can find out all of it again."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.name = job_name(nodes.run_id, nodes.folder.attempt)
        noted = read_json(self.folder / _NOTE) or {}
        self.id: str = noted.get("job_id") or ""
        self.submissions: int = noted.get("submissions", 0)
        self.uncertain = bool(noted) and not self.id
        """Whether an earlier dispatcher may have submitted it without noting its number."""
        self.noted_at: float = noted.get("at", time.time())
        self.script = ""
        self.state = ""
        """Its state in Slurm; empty if unknown, LOST if Slurm does not know the job."""
        self.node_list = ""
        self.missed = 0
        """The number of consecutive lists of jobs that did not have it."""
        self.trouble = ""
        """Why it has not been submitted yet."""
        self.unreadable = ""
        """Why its files could not be read last time."""
        self.refused = ""
        self.upload: asyncio.Future[None] | None = None
        """The upload of what it needs, while it is running."""
        self.submitting = False
        self.stopped = False
        self.retry_later: Callable[[Job], Awaitable[None]] | None = None
        """What to repeat when Slurm answers again."""
        self.events: set[str] = set()
        """Events that its files have shown: `running`, and `done` with the number of the node."""
        self.over = asyncio.Event()
        """Set when there is no job any more."""
        self.changed = asyncio.Event()
        """Set at the next change, and then replaced."""
        self.leaving_since = 0.0
        self._results: dict[int, dict[str, Any]] = {}

    @property
    def folder(self) -> Path:
        """The folder with the folders of its nodes."""
        return self.nodes.folder.node(0).parent

    @property
    def began(self) -> bool:
        """Whether a job of this name has started to run."""
        return (self.folder / GANG).exists()

    @property
    def owner(self) -> str:
        """The number of the job that runs the attempt; empty if none has started."""
        return str((read_json(self.folder / GANG) or {}).get("job_id", ""))

    @property
    def submitted(self) -> bool:
        """Whether it was, or may have been, submitted."""
        return bool(self.id) or self.uncertain

    @property
    def settled(self) -> bool:
        """Whether no further results are expected."""
        return len(self._results) == self.nodes.count or self.over.is_set()

    def note(self, job_id: str = "") -> None:
        """Writes down that it will be submitted or, with a number, that it was."""
        if not job_id:
            self.submissions += 1
        self.id, self.noted_at, self.uncertain = job_id, time.time(), not job_id
        data = {"version": 1, "job_id": job_id, "at": self.noted_at, "submissions": self.submissions}
        write_json(self.folder / _NOTE, data)

    def result(self, number: int) -> dict[str, Any] | None:
        """The result of the agent of a node; None if there is none yet."""
        if number not in self._results:
            found = read_json(self.nodes.folder.node(number) / "result.json")
            if found is not None:
                self._results[number] = found
        return self._results.get(number)

    def look(self) -> list[str]:
        """The new events that its files show: `running`, `done`, `ended`."""
        news = []
        for number in range(self.nodes.count):
            folder = self.nodes.folder.node(number)
            known = number in self._results
            if not known and self.result(number) is not None:
                news.append("ended")
            if "running" not in self.events and (folder / "running.json").exists():
                self.events.add("running")
                news.append("running")
            if f"done {number}" not in self.events and (folder / "done.json").exists():
                self.events.add(f"done {number}")
                news.append("done")
        return news

    def refresh(self) -> None:
        """Lists its folders, because a network file system may remember that a file does not exist."""
        for number in range(self.nodes.count):
            folder = self.nodes.folder.node(number)
            if folder.is_dir():
                os.listdir(folder)

    def give_up(self) -> None:
        """Writes a file that tells unreachable agents to end."""
        write_json(self.folder / STOP, {"version": 1, "at": time.time()})

    def notify(self) -> None:
        """Wakes everyone who waits for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def needs_explaining(self) -> bool:
        """Whether Slurm may know better than the agents why they ended: no process failed by itself."""
        results = [self.result(number) for number in range(self.nodes.count)]
        launcher = (self.nodes.folder.node(0) / "ranks.json").exists()
        if any(result and _has_failed_by_itself(result, launcher) for result in results):
            return False
        return any(result is None or result.get("reason") == "cancelled" or _has_failed(result) for result in results)

    @property
    def silent(self) -> dict[int, str]:
        """The nodes whose agents left no result, with the names of their machines."""
        names = self.machines
        numbers = [number for number in range(self.nodes.count) if self.result(number) is None]
        return {number: names[number] if number < len(names) else "?" for number in numbers}

    @property
    def machines(self) -> list[str]:
        """The names of its machines, in the order of the run's nodes."""
        return list((read_json(self.folder / GANG) or {}).get("names", []))

    def read_output(self) -> str:
        """The last lines that the batch job printed. (The script has logs of its own.)"""
        try:
            text = (self.folder / f"slurm-{self.id}.log").read_bytes()[-_SHOWN_BYTES:].decode("utf-8", "replace")
        except OSError:
            return ""
        return text.strip()


def _has_failed(result: dict[str, Any]) -> bool:
    return bool(result.get("first_failure"))


def _has_failed_by_itself(result: dict[str, Any], launcher: bool) -> bool:
    """Whether a process ended with an error, but not by a signal and not because mpirun lost the others."""
    if result.get("reason") in ("error", "timeout", "hang"):
        return True
    failure = result.get("first_failure") or {}
    return not launcher and failure.get("signal") is None and 0 < (failure.get("exit_code") or 0) <= 128

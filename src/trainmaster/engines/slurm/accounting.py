"""What sacct knows about jobs, if the site has accounting."""

from __future__ import annotations

import asyncio

from trainmaster.engines.slurm.commands import Commands, NoAnswer, Refused
from trainmaster.job.errors import ComputeTargetException

_FORMAT = "JobID,State,Elapsed,TotalCPU,AllocCPUS,MaxRSS"
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class Accounting:
    """Runs sacct. On a site without slurmdbd it fails once and is not run again."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._is_available = True

    async def state(self, job_id: str) -> str:
        """The state of a job in one word; empty if unknown."""
        for line in await self._run(job_id, "JobID,State"):
            if line[0] == job_id:
                return line[1].split()[0] if line[1] else ""
        return ""

    async def properties(self, job_id: str) -> dict[str, str]:
        """The peak memory and the CPU efficiency of a job. Slurm stores them a moment after the job has ended."""
        for _ in range(_ATTEMPTS):
            lines = await self._run(job_id, _FORMAT)
            if not self._is_available or any(
                line[0] == job_id and line[1].split()[:1] != ["RUNNING"] for line in lines
            ):
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        return to_properties(lines, job_id)

    async def _run(self, job_id: str, columns: str) -> list[list[str]]:
        if not self._is_available:
            return []
        try:
            printed = await self._commands.run("sacct", "--noheader", "--parsable2", f"--jobs={job_id}", f"-o{columns}")
        except NoAnswer:
            return []
        except (Refused, ComputeTargetException):
            self._is_available = False
            return []
        return [line.split("|") for line in printed.splitlines() if line.count("|") == columns.count(",")]


def to_properties(lines: list[list[str]], job_id: str) -> dict[str, str]:
    """The properties of a run from the lines of sacct.

    >>> to_properties([["7", "COMPLETED", "00:01:40", "02:30", "2", ""], ["7.batch", "", "", "", "2", "2048K"]], "7")
    {'slurm.cpu_efficiency': '75%', 'slurm.memory_peak_bytes': '2097152'}
    """
    found = {}
    for number, _, elapsed, used, cpus, _ in lines:
        if number == job_id and seconds(elapsed) and cpus.isdigit() and int(cpus):
            found["slurm.cpu_efficiency"] = f"{100 * seconds(used) / (seconds(elapsed) * int(cpus)):.0f}%"
    peak = max((size(line[5]) for line in lines), default=0)
    return {**found, **({"slurm.memory_peak_bytes": str(peak)} if peak else {})}


def seconds(text: str) -> float:
    """The seconds of a time as sacct prints it.

    >>> seconds("1-02:03:04"), seconds("02:30.500"), seconds("")
    (93784.0, 150.5, 0.0)
    """
    days, dash, rest = text.partition("-")
    parts = (rest if dash else text).split(":")
    total = 0.0
    for part in parts:
        total = total * 60 + (float(part) if part.replace(".", "", 1).isdigit() else 0.0)
    return total + (int(days) * 86400 if dash and days.isdigit() else 0)


def size(text: str) -> int:
    """The bytes of a size as sacct prints it.

    >>> size("1.5M"), size("")
    (1572864, 0)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    return int(float(number) * _UNITS.get(unit, 1)) if number.replace(".", "", 1).isdigit() else 0

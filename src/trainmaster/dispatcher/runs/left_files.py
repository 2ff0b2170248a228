"""The warning about files that a script left outside of outputs/ and logs/. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NAMED = 5


@dataclass(frozen=True)
class Cleanup:
    """The files that were left on all nodes."""

    count: int
    bytes: int
    largest: tuple[tuple[str, int], ...]
    """Name and size."""
    is_all: bool = True

    @property
    def sentence(self) -> str:
        """The number of files, their size, and the names of the largest."""
        more = self.count - len(self.largest)
        names = [f"{name} ({_size(size)})" for name, size in self.largest]
        listed = ", ".join([*names, *([f"{more:,} more"] if more else [])])
        number = f"{self.count:,} file{'' if self.count == 1 else 's'}"
        at_least = "" if self.is_all else "at least "
        return f"The script left {at_least}{number} ({_size(self.bytes)}) outside of outputs/ and logs/: {listed}."


def find_left_files(results: Sequence[Mapping[str, Any] | None]) -> Cleanup | None:
    """The files that the results of all nodes list; None if there are none or no result lists any.

    Results may come from other machines, so malformed lists are ignored.
    """
    reports = [report for result in results if result and (report := _report(result.get("left")))]
    if not any(report.count for report in reports):
        return None
    largest = sorted((file for report in reports for file in report.largest), key=lambda file: (-file[1], file[0]))
    return Cleanup(
        sum(report.count for report in reports),
        sum(report.bytes for report in reports),
        tuple(largest[:_NAMED]),
        all(report.is_all for report in reports),
    )


def warning(left: Cleanup, run_id: str, stays: bool) -> str:
    """The warning for the run; `stays` says whether its working folder still exists."""
    if stays:
        return f"{left.sentence} 'trainmaster download {run_id} code/' copies them."
    return f"{left.sentence} They were removed with the run's folder on its host. Write what you keep to outputs/."


def _report(told: Any) -> Cleanup | None:
    try:
        largest = tuple((_printable(str(file["name"])), int(file["bytes"])) for file in told["largest"][:_NAMED])
        return Cleanup(int(told["count"]), int(told["bytes"]), largest, bool(told["all"]))
    except (TypeError, KeyError, ValueError):
        return None


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name[:300])


def _size(count: float) -> str:
    """Formats a size in the same way as the command line.

    >>> _size(1), _size(20_480), _size(3_500_000)
    ('1 B', '20.0 kB', '3.3 MB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1024
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TB"

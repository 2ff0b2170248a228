"""Reads the progress and the first error of a compilation from its output."""

from __future__ import annotations

import re

# Errors of configuration probes, which are expected, and lines that only say that there was an error.
_PROBES = ("cublas_v2.h", "cuda_runtime", "test_compile", "nccl.h", "error: command ")
_ERROR = re.compile(
    r"(?:fatal )?error:|CMake Error|undefined reference|^error\b|\bError \d+$|Killed|No space left", re.I
)
_CONTEXT_LINES = 4


class Progress:
    """Reads the output line by line and updates `percent`."""

    def __init__(self, steps: int = 0) -> None:
        self.percent = 0
        self._steps = steps
        self._done = 0

    def read(self, line: str) -> None:
        """Update from make's `[ 42%]`, or by counting compiler calls."""
        said = re.match(r"\s*\[\s*(\d+)%\]", line)
        if said:
            self.percent = max(self.percent, int(said.group(1)))
        elif self._steps and re.search(r"(?:gcc|g\+\+|cc|c\+\+|clang\S*)\s.*?-c \S+\.(?:cc|cpp|c)\b", line):
            self._done += 1
            self.percent = min(99, 100 * self._done // self._steps)

    def remaining(self, elapsed: float, estimate: float) -> float:
        """The remaining seconds: first by the estimate, then more and more by the observed speed.

        A busy or slow machine may take several times the estimate.
        """
        seen = self.percent / 100
        if not seen:
            return max(estimate - elapsed, elapsed)
        weight = max(seen, min(1.0, elapsed / estimate))
        return max(0.0, (1 - weight) * estimate + weight * elapsed / seen - elapsed)


def first_error(text: str) -> str:
    """The compiler's first error with the following lines; the last lines if no error is found."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _ERROR.search(line) and not any(probe in line for probe in _PROBES):
            return "\n".join(lines[number : number + _CONTEXT_LINES])
    return "\n".join(lines[-2 * _CONTEXT_LINES :])


def minutes(seconds: float) -> str:
    """A duration in words.

    >>> [minutes(20), minutes(70), minutes(200)]
    ['less than a minute', 'about 1 minute', 'about 3 minutes']
    """
    if seconds < 45:
        return "less than a minute"
    whole = max(1, round(seconds / 60))
    return f"about {whole} minute{'s' if whole > 1 else ''}"

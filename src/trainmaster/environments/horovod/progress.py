"""How far a compilation is, from what it prints; and where it went wrong."""

from __future__ import annotations

import re

# Questions that a build asks the compiler on its way: their errors are answers. And what only says that there was one.
_PROBES = ("cublas_v2.h", "cuda_runtime", "test_compile", "nccl.h", "error: command ")
_ERROR = re.compile(
    r"(?:fatal )?error:|CMake Error|undefined reference|^error\b|\bError \d+$|Killed|No space left", re.I
)
_CONTEXT_LINES = 4


class Progress:
    """Reads the output line by line; `percent` is where it is."""

    def __init__(self, steps: int = 0) -> None:
        self.percent = 0
        self._steps = steps
        self._done = 0

    def read(self, line: str) -> None:
        """From make's own `[ 42%]`, or by counting the files handed to a compiler."""
        said = re.match(r"\s*\[\s*(\d+)%\]", line)
        if said:
            self.percent = max(self.percent, int(said.group(1)))
        elif self._steps and re.search(r"(?:gcc|g\+\+|cc|c\+\+|clang\S*)\s.*?-c \S+\.(?:cc|cpp|c)\b", line):
            self._done += 1
            self.percent = min(99, 100 * self._done // self._steps)

    def remaining(self, elapsed: float, estimate: float) -> float:
        """Seconds still to go: first by the estimate, then by the pace, and by that alone once the estimate has passed.

        A machine that is busy, or slower than the one the estimate comes from, takes several times as long.
        """
        seen = self.percent / 100
        if not seen:
            return max(estimate - elapsed, elapsed)
        weight = max(seen, min(1.0, elapsed / estimate))
        return max(0.0, (1 - weight) * estimate + weight * elapsed / seen - elapsed)


def first_error(text: str) -> str:
    """The compiler's first error with the lines after it; the last lines if none looks like one."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _ERROR.search(line) and not any(probe in line for probe in _PROBES):
            return "\n".join(lines[number : number + _CONTEXT_LINES])
    return "\n".join(lines[-2 * _CONTEXT_LINES :])


def minutes(seconds: float) -> str:
    """A duration as people say it.

    >>> [minutes(20), minutes(70), minutes(200)]
    ['less than a minute', 'about 1 minute', 'about 3 minutes']
    """
    if seconds < 45:
        return "less than a minute"
    whole = max(1, round(seconds / 60))
    return f"about {whole} minute{'s' if whole > 1 else ''}"

"""What is said of the memory of a process that failed for lack of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.runs.last_words import exceptions_in, last_line
from trainmaster.job.agent import memory

_WHOSE = {
    memory.MACHINE: "the machine has {}",
    memory.CGROUP: "its cgroup allows {}",
    memory.ADDRESS_SPACE: "its address space is limited to {} (ulimit -v)",
}
# What programs without an exception of Python say: C++, and the allocators of torch and the C library.
_SIGNS = ("bad_alloc", "can't allocate memory", "Cannot allocate memory", "not enough memory")


def describe_memory(failure: Mapping[str, Any]) -> str:
    """The peak and the limit of a process, to be added to a sentence; empty if neither is known.

    >>> describe_memory({"peak_memory": 3 << 30, "memory_limit": 4 << 30, "memory_limit_of": "cgroup"})
    ': it used 3.0 GB at its peak; its cgroup allows 4.0 GB'
    >>> describe_memory({})
    ''
    """
    peak, limit = failure.get("peak_memory"), failure.get("memory_limit")
    whose = _WHOSE.get(str(failure.get("memory_limit_of")))
    parts = [f"it used {_size(peak)} at its peak"] if peak else []
    parts += [whose.format(_size(limit))] if limit and whose else []
    return f": {'; '.join(parts)}" if parts else ""


def lacks_memory(tail: str) -> bool:
    """Whether the last lines of a process say that it got no memory.

    >>> lacks_memory("Traceback (most recent call last):\\n  File 'a.py', line 1\\nMemoryError\\n")
    True
    >>> lacks_memory("terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  std::bad_alloc\\n")
    True
    """
    exceptions = exceptions_in(tail)
    names = [line.partition(":")[0] for line in exceptions]
    # torch's CUDA errors name the memory of the GPU themselves.
    said = [*exceptions, last_line(tail)]
    return any(name.endswith("MemoryError") for name in names) or any(sign in line for line in said for sign in _SIGNS)


def _size(count: int) -> str:
    amount, unit = (count / (1 << 30), "GB") if count >= 1 << 30 else (count / (1 << 20), "MB")
    return f"{amount:.1f} {unit}"

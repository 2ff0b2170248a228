"""Amounts of CPU and memory as Kubernetes writes them. Pure."""

from __future__ import annotations

import re

_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:(Ki|Mi|Gi|Ti|Pi)|([kmgtp]?)b?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def cpu_millis(text: str) -> int | None:
    """Thousandths of a CPU; None if the text is no amount of CPUs.

    >>> cpu_millis("2"), cpu_millis("1.5"), cpu_millis("500m"), cpu_millis("many")
    (2000, 1500, 500, None)
    """
    found = _CPU.fullmatch(text.strip())
    return None if found is None else round(float(found[1]) * (1 if found[2] else 1000))


def show_cpus(millis: int) -> str:
    """
    >>> show_cpus(2000), show_cpus(5700)
    ('2', '5700m')
    """
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


def memory_bytes(text: str) -> int | None:
    """Bytes; None if the text is no size. Units count in steps of 1024, whether they are written 8Gi, 8GB or 8g.

    >>> memory_bytes("8Gi") == memory_bytes("8GB") == memory_bytes("8g") == 8 * 2**30
    True
    >>> memory_bytes("512m") == 512 * 2**20, memory_bytes("much")
    (True, None)
    """
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found[2] or found[3] or "").lower().rstrip("i")
    return round(float(found[1]) * float(1 << 10 * _POWERS[unit]))


def show_memory(size: int) -> str:
    """The shortest exact text of so many bytes.

    >>> show_memory(8 * 2**30), show_memory(1536 * 2**20), show_memory(1000)
    ('8Gi', '1536Mi', '1000')
    """
    power = 0
    while power < len(_UNITS) - 1 and size and size % 1024 == 0:
        size, power = size // 1024, power + 1
    return f"{size}{_UNITS[power]}"

"""Numbers and times as text, and text options as data. Pure."""

from __future__ import annotations

import re
import time

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.terminal import without_escapes

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def duration(seconds: float) -> str:
    """
    >>> duration(0.04), duration(42), duration(75), duration(3 * 3600 + 60), duration(200000)
    ('0.04 s', '42.0 s', '1m 15s', '3h 01m', '2d 07h')
    """
    if seconds < 59.95:
        return f"{max(0.0, seconds):.{2 if seconds < 9.995 else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02d}m"
    return f"{hours // 24}d {hours % 24:02d}h"


def seconds_of(option: str, given: str) -> float:
    """The seconds of a time span such as `30d`; a plain number means days.

    >>> seconds_of("--older-than", "30d"), seconds_of("--older-than", "1.5h"), seconds_of("--older-than", "2")
    (2592000.0, 5400.0, 172800.0)
    """
    found = _SPAN.fullmatch(given.strip())
    if found is None:
        raise UserErrorException(
            f"{option} {given!r} is not a time span",
            hint=f"Write {option} 30d, or another number with s, m, h, d or w.",
        )
    return float(found[1]) * _UNITS[found[2] or "d"]


def moment(seconds: float, now: float) -> str:
    """A past time in local time: the time of day for today, else the date."""
    then, today = time.localtime(seconds), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%d %b %H:%M" if then.tm_year == today.tm_year else "%d %b %Y", then)


def size(count: int) -> str:
    """
    >>> size(0), size(999), size(20_480), size(3_500_000)
    ('0 B', '999 B', '20.0 kB', '3.3 MB')
    """
    if count < 1000:
        return f"{count} B"
    amount, units = count / 1024, ["TB", "GB", "MB", "kB"]
    while amount >= 1000 and len(units) > 1:
        units.pop()
        amount /= 1024
    return f"{amount:.1f} {units[-1]}"


def count_of(count: int, noun: str) -> str:
    """
    >>> count_of(1, "file"), count_of(12000, "file")
    ('1 file', '12,000 files')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def without_lines(text: str, shown: str) -> str:
    """`text` without the lines in `shown`.

    >>> without_lines("uv failed\\n  no such package\\nCheck its name.", "$ uv\\nno such package\\n")
    'uv failed\\nCheck its name.'
    """
    before = {line.strip() for line in shown.splitlines()}
    return "\n".join(line for line in text.splitlines() if line.strip() not in before)


def experiment_name(folder: str) -> str:
    """The name of a folder as a valid name of an experiment.

    >>> experiment_name("my project (2)"), experiment_name("_x"), experiment_name("größe"), experiment_name("...")
    ('my-project-2', 'x', 'gr-e', 'experiment')
    """
    plain = re.sub(r"[^\w-]+", "-", folder, flags=re.ASCII).strip("-_")
    return plain[:255] or "experiment"


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE` words as a dict. The value may contain equals signs.

    >>> pairs("--env", ["A=1", "B=x=y", "C="])
    {'A': '1', 'B': 'x=y', 'C': ''}
    """
    found = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UserErrorException(f"{option} {word!r} is not NAME=VALUE", hint=f"Write {option} NAME=VALUE.")
        found[name] = value
    return found


def tags(given: list[str] | None) -> dict[str, str | None]:
    """`NAME=VALUE`, or `NAME` alone, which means any value.

    >>> tags(["phase=2", "good"])
    {'phase': '2', 'good': None}
    """
    found: dict[str, str | None] = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not name:
            raise UserErrorException(f"--tag {word!r} has no name", hint="Write --tag NAME=VALUE or --tag NAME.")
        found[name] = value if sign else None
    return found


def mask_password(address: str) -> str:
    """An address without its user and password.

    >>> mask_password("https://me:secret@packages.example/simple"), mask_password("https://packages.example/simple")
    ('https://***@packages.example/simple', 'https://packages.example/simple')
    """
    return re.sub(r"(?<=://)[^/@\s]+@", "***@", address)


def plain_text(text: str) -> str:
    """A line without control characters and escape sequences.

    >>> plain_text("\\x1b[31mred\\x1b[0m\\tand more\\x07")
    'red and more'
    """
    return "".join(each for each in without_escapes(text).expandtabs(4) if each.isprintable())

"""Parses a pip requirement, and writes it in normal form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CLAUSE = r"(?:===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_CLAUSES = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*\s*,?"
_WHOLE = (
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*"
    r"(?:\[(?P<extras>[A-Za-z0-9._,\s-]*)\])?\s*"
    rf"(?:@\s*(?P<url>\S+)|\(\s*(?P<braced>{_CLAUSES})\s*\)|(?P<plain>{_CLAUSES}))?\s*"
    r"(?:;\s*(?P<marker>[^#]+))?"
)


@dataclass(frozen=True)
class Requirement:
    """The parts of a requirement: `name[extras]clauses; marker`, or `name @ url`."""

    name: str
    extras: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    url: str = ""
    marker: str = ""

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        place = f" @ {self.url}" if self.url else ",".join(self.clauses)
        # After a URL, a semicolon without a preceding space belongs to the URL.
        marker = f"{' ' if self.url else ''}; {self.marker}" if self.marker else ""
        return f"{self.name}{extras}{place}{marker}"


def parse(text: str) -> Requirement | None:
    """Parse `text` into normal form; None for anything else: URLs, paths, options, hashes.

    >>> str(parse("Scikit_Learn [B, a] < 2, >=1.0"))
    'scikit-learn[a,b]<2,>=1.0'
    """
    found = _whole().fullmatch(text.strip())
    if not found:
        return None
    clauses = re.split(r"\s*,\s*", found["plain"] or found["braced"] or "")
    return Requirement(
        name=_normal(found["name"]),
        extras=_unique(_normal(extra.strip()) for extra in (found["extras"] or "").split(",")),
        clauses=_unique("".join(clause.split()) for clause in clauses),
        url=found["url"] or "",
        marker=" ".join((found["marker"] or "").split()).replace("'", '"'),
    )


def package_name(requirement: str) -> str:
    """The normalized name in a requirement; the whole text if there is none.

    >>> package_name("Scikit_Learn[extra]>=1.0")
    'scikit-learn'
    """
    text = requirement.strip()
    egg = re.search(r"#egg=([A-Za-z0-9._-]+)", text)
    if egg:
        text = egg[1]
    found = _NAME.match(text)
    if not found or ("://" in text and "@" not in text.partition("://")[0]):
        return text
    return _normal(found[0])


def is_open(requirement: str) -> bool:
    """Whether a pip or conda requirement has no version.

    >>> [is_open(each) for each in ("numpy", "numpy=1.19", "numpy<2", "--pre")]
    [True, False, False, False]
    """
    found = parse(requirement)
    return found is not None and not found.clauses and not found.url


def merge(requirements: Iterable[str]) -> list[str]:
    """Merge requirements of the same package (with the same marker) into one.

    >>> merge(["numpy>=1.20", "pandas", "NumPy<2"])
    ['numpy>=1.20,<2', 'pandas']
    """
    found: dict[object, Requirement | str] = {}
    for text in requirements:
        part = parse(text)
        if part is None:
            found.setdefault(text, text)
            continue
        key = (part.name, part.url, part.marker)
        before = found.get(key)
        if isinstance(before, Requirement):
            part = replace(
                part,
                extras=_unique((*before.extras, *part.extras)),
                clauses=tuple(dict.fromkeys((*before.clauses, *_as_given(text, part)))),
            )
        else:
            part = replace(part, clauses=_as_given(text, part))
        found[key] = part
    return [str(each) for each in found.values()]


def _as_given(text: str, part: Requirement) -> tuple[str, ...]:
    """The clauses in their original order."""
    bare = "".join(text.split())
    return tuple(sorted(part.clauses, key=bare.find))


@cache
def _whole() -> re.Pattern[str]:
    # Compiled on first use: compiling takes longer than importing the rest of this module.
    return re.compile(_WHOLE)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _unique(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({part for part in parts if part}))

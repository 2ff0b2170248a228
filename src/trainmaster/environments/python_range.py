"""A range of Python versions in a conda file, and the version to choose from it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENTRY = re.compile(r"(?:\S+::)?python\s*(?P<clauses>[<>!~=][^|\[\]]*)")
_CLAUSE = re.compile(r"(?P<sign>>=|<=|==|!=|~=|>|<|=)(?P<release>\d+(?:\.\d+)*)(?P<any>\.\*)?")

Release = tuple[int, int]


def is_range(conda_package: str) -> bool:
    """Whether a conda package is a range of Python versions.

    >>> [is_range(text) for text in ("python>=3.6", "python >=3.6,<3.9", "python-dateutil>=2", "python")]
    [True, True, False, False]
    """
    return _ENTRY.fullmatch(conda_package.strip()) is not None


def choose(conda_package: str, candidates: Iterable[str]) -> str | None:
    """Choose the first of `candidates` (major.minor) in the range; None if none fits or the range is too complex.

    >>> choose("python>=3.6.2,<3.9", ["3.11", "3.8", "3.7"])
    '3.8'
    """
    clauses = _clauses(conda_package)
    if not clauses:
        return None
    for candidate in candidates:
        major, minor = candidate.split(".")[:2]
        if all(_fits((int(major), int(minor)), sign, release) for sign, release in clauses):
            return candidate
    return None


def _clauses(conda_package: str) -> list[tuple[str, tuple[int, ...]]]:
    entry = _ENTRY.fullmatch(conda_package.strip())
    found = []
    for part in "".join(entry["clauses"].split()).split(",") if entry else ():
        clause = _CLAUSE.fullmatch(part)
        if not clause:
            return []
        found.append((clause["sign"], tuple(int(number) for number in clause["release"].split("."))))
    return found


def _fits(python: Release, sign: str, release: tuple[int, ...]) -> bool:
    """Whether any patch release of `python` fits: only major and minor can be chosen."""
    wanted = (*release, 0)[:2]
    # 3 means 3.0 in comparisons, but any 3.x in equalities.
    same = python[: len(release)] == release[:2]
    if sign in ("=", "=="):
        return same
    if sign == "!=":
        return not same or len(release) > 2
    if sign == "~=":
        return python >= wanted and python[0] == wanted[0]
    if sign in (">=", ">"):
        return python >= wanted
    is_patch = any(release[2:])
    return python < wanted or (python == wanted and (sign == "<=" or is_patch))

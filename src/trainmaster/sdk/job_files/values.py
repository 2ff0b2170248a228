"""Single values of a job file: checks each against its kind, and turns it into what a description has."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.job_files.keys import SYNONYMS
from trainmaster.shared.marked_yaml import Marked
from trainmaster.shared.spelling import guess

# A longer list of keys is not shown beside a guess.
_FEW = 15
_TYPE_NAMES = {
    "str": "text",
    "list": "a list",
    "dict": "names and values",
    "bool": "true or false",
    "int": "a whole number",
}


def check_kind(given: Marked, *wanted: type) -> None:
    """Refuses a value of another type; true and false are not numbers."""
    if isinstance(given.value, wanted) and not (isinstance(given.value, bool) and bool not in wanted):
        return
    words = " or ".join(dict.fromkeys(_TYPE_NAMES.get(kind.__name__, "a number") for kind in wanted))
    raise given.error(f"must be {words}, not {given.plain()!r}")


def check_keys(keys: Mapping[str, Marked], known: Iterable[str]) -> None:
    """Refuses the first unknown key."""
    for name, item in keys.items():
        check_key(name, item, known)


def check_key(name: str, item: Marked, known: Iterable[str]) -> None:
    """Refuses an unknown key, with the one that was probably meant."""
    known = list(known)
    if name in known:
        return
    meant = SYNONYMS.get(name, "")
    synonym = f"Did you mean {meant}? " if meant.partition(":")[0] in known else ""
    hint = synonym or guess(name, known)
    if not hint or len(known) <= _FEW:
        hint += f"Known: {', '.join(sorted(known)) or 'none'}."
    raise item.error("unknown key", hint=hint.rstrip())


def alternatives(words: Sequence[str]) -> str:
    """
    >>> alternatives(["mpi", "gloo", "nccl"]), alternatives(["mpi"])
    ('mpi, gloo or nccl', 'mpi')
    """
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def mapping(given: Marked) -> dict[str, Marked]:
    """The names and values of a section, of which there is at least one."""
    if not isinstance(given.value, dict) or not given.value:
        raise given.error("must be names and values", hint="Write 'name: value', one per line.")
    found: dict[str, Marked] = given.value
    return found


def text(given: Marked) -> str:
    """A text that is not empty."""
    check_kind(given, str)
    if not given.value.strip():
        raise given.error("must not be empty")
    return str(given.value)


def version(given: Marked) -> str:
    """A version or date as it is written: 3.10 is not 3.1."""
    if isinstance(given.value, dict | list | bool) or not given.text:
        raise given.error(f"must be text, not {given.plain()!r}")
    return given.text


def words(given: Marked) -> tuple[str, ...]:
    """A list of words, or a text that is split as by a shell."""
    check_kind(given, str, list)
    if isinstance(given.value, list):
        return tuple(as_text(item) for item in given.value)
    try:
        return tuple(shlex.split(given.value))
    except ValueError as error:
        raise given.error(f"{given.value!r} cannot be split into words", cause=str(error)) from None


def command(given: Marked) -> tuple[str, ...]:
    """A command line, or the words of one."""
    check_kind(given, str, list)
    return tuple(as_text(item) for item in given.value) if isinstance(given.value, list) else (text(given).strip(),)


def pairs(given: Marked) -> dict[str, str]:
    """Names and values, as text."""
    check_kind(given, dict)
    return {name: as_text(item) for name, item in given.value.items()}


def as_text(given: Marked) -> str:
    """A scalar as it is written in YAML."""
    if isinstance(given.value, dict | list):
        raise given.error(f"must be one value, not {given.plain()!r}")
    if given.value is None:
        return ""
    return str(given.value).lower() if isinstance(given.value, bool) else str(given.value)


def read_setting(setting: str) -> tuple[list[str], Marked]:
    """The keys and the value of `--set key=value`; a dot is between the keys of sections."""
    from trainmaster.shared.marked_yaml import parse_marked

    name, sign, value = setting.partition("=")
    path = name.strip().split(".")
    if not sign or not all(path):
        raise UserErrorException(f"--set {setting!r} is not KEY=VALUE", hint="Write --set nodes=4 or --set env.A=1.")
    return path, parse_marked(value or "''", f"--set {setting}", name.strip())

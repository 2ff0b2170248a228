"""From job.yaml to a JobDescription. Every error names the line, the key and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.job_files import values
from trainmaster.sdk.job_files.description import (
    DISTRIBUTIONS,
    FRAMEWORKS,
    Dataset,
    Details,
    JobDescription,
    read_dataset,
    read_input,
    read_output,
)
from trainmaster.sdk.job_files.keys import (
    BY_NAME,
    COMMAND,
    DETAILS,
    ENTRIES,
    FIELDS,
    FLAG,
    KEYS,
    MODES,
    NUMBER,
    PAIRS,
    TEXT,
    VERSION,
    WHOLE,
    WORDS,
    Key,
)
from trainmaster.sdk.job_files.mistakes import Mistakes
from trainmaster.shared.job_spec import DataBinding, DatasetOutput
from trainmaster.shared.marked_yaml import Marked, read_marked
from trainmaster.shared.spelling import guess

EXAMPLE = """\
folder: .                     # relative to this file
script: train.py              # or module: package.train, or command: python a.py && python b.py
arguments: --epochs 10
framework: pytorch            # or pip: [numpy, pandas], conda_file, python_version, ...
nodes: 2
distributed: gloo
"""

_PATHS = ("folder", "pip_file", "conda_file")


def read_job_file(path: Path, settings: Sequence[str] = ()) -> tuple[JobDescription, Marked]:
    """The job in the file with some keys set to other values (`key=value`), and its document, which has the lines."""
    if path.is_dir():
        raise UserErrorException(f"{path} is a folder", hint=f"Name the file: {path / 'job.yaml'}")
    if not path.exists():
        raise UserErrorException(f"file {path} does not exist", hint=f"Such a file looks like this:\n\n{EXAMPLE}")
    document = read_marked(path)
    for setting in settings:
        document = _set(document, *values.read_setting(setting))
    mistakes = Mistakes(str(path))
    found = read_job(document, path.parent, [key.name for key in KEYS], mistakes)
    mistakes.raise_any()
    return found, document


def read_job(section: Marked, base: Path, known: Sequence[str], mistakes: Mistakes) -> JobDescription:
    """The job in a section of a file; paths are relative to the folder `base`."""
    if not isinstance(section.value, dict) or not section.value:
        with mistakes.collect():
            values.mapping(section)
        return JobDescription()
    found: dict[str, Any] = {}
    for name, item in section.value.items():
        with mistakes.collect():
            values.check_key(name, item, known)
            found[name] = _value(BY_NAME[name], item, base, mistakes)
    if all(name in known for name in section.value):
        # A misspelled key may be the one that seems to be missing.
        with mistakes.collect():
            _check_entry(section)
    found.setdefault("folder", str(base))
    return JobDescription(**found)


def _set(document: Marked, path: list[str], value: Marked) -> Marked:
    """The document with one value replaced or added."""
    if not path:
        return value
    inner = dict(document.value) if isinstance(document.value, dict) else {}
    first, *others = path
    there = inner.get(first, Marked({}, 0, first, value.file))
    inner[first] = _set(there, others, value)
    return replace(document, value=inner)


def _check_entry(section: Marked) -> None:
    given = [name for name in ("script", "module", "command") if name in section.value]
    if not given:
        raise section.error("script is missing", hint="Write script: train.py (or module, or command).")
    if len(given) > 1:
        raise section.value[given[1]].error(f"cannot be given together with {given[0]}", hint="Leave one of them out.")


def _value(key: Key, item: Marked, base: Path, mistakes: Mistakes) -> Any:
    if key.kind == ENTRIES:
        return _entries(key.name, item, mistakes)
    value = _PLAIN[key.kind](item)
    _check(key, item, value)
    if key.name in _PATHS or (key.name == "python" and "/" in value):
        # A bare name of a Python is found on the PATH.
        return str(base / Path(value).expanduser())
    return value


def _whole(item: Marked) -> int:
    values.check_kind(item, int)
    return int(item.value)


def _number(item: Marked) -> float:
    values.check_kind(item, int, float)
    return float(item.value)


def _flag(item: Marked) -> bool:
    values.check_kind(item, bool)
    return bool(item.value)


def _details(item: Marked) -> Details:
    keys = values.mapping(item)
    kinds: dict[str, Callable[[Marked], Any]] = {
        "optional_packages": values.words, "open_mpi": _flag, "process_count": _whole,
    }  # fmt: skip
    values.check_keys(keys, [field.name for field in fields(Details)])
    return Details(**{name: kinds.get(name, values.version)(each) for name, each in keys.items()})


_PLAIN: dict[str, Callable[[Marked], Any]] = {
    TEXT: values.text,
    WORDS: values.words,
    COMMAND: values.command,
    WHOLE: _whole,
    NUMBER: _number,
    FLAG: _flag,
    VERSION: values.version,
    PAIRS: values.pairs,
    DETAILS: _details,
}


def _check(key: Key, item: Marked, value: Any) -> None:
    """What the SDK refuses, with the line."""
    from trainmaster.sdk.estimators.rules import check_parameter

    if key.choices and value not in key.choices:
        hint = f"{guess(value, key.choices)}Known: {', '.join(key.choices)}."
        raise item.error(f"must be {values.alternatives(key.choices)}, not {value!r}", hint=hint)
    try:
        if key.name == "framework":
            split_framework(value)
        elif key.name == "distributed":
            split_distributed(value)
        elif key.name == "pip":
            check_packages(value)
        elif key.name not in (*_PATHS, "arguments", "distributed", "environment", "resume_from"):
            check_parameter(key.parameter, key.name, list(value) if isinstance(value, tuple) else value)
    except TrainmasterError as error:
        headline = error.headline.replace("pip_packages", "pip")
        raise item.error(headline, error.cause, error.hint) from None


def check_packages(packages: Sequence[str]) -> None:
    """Refuses what pip cannot read."""
    from trainmaster.environments.requirements_file import check_requirement

    for package in packages:
        check_requirement("one of pip_packages", package)


def split_framework(text: str) -> tuple[str, str | None]:
    """The framework and its release, if one is named.

    >>> split_framework("pytorch=2.13"), split_framework("sklearn")
    (('pytorch', '2.13'), ('sklearn', None))
    """
    name, _, version = text.replace("==", "=").partition("=")
    if name.strip().lower() in FRAMEWORKS:
        return name.strip().lower(), version.strip() or None
    same = {"torch": "pytorch", "tf": "tensorflow", "keras": "tensorflow", "scikit-learn": "sklearn"}.get(name, "")
    meant = f"Did you mean {same}? " if same else guess(name, FRAMEWORKS)
    raise UserErrorException(f"framework {name!r} is unknown", hint=f"{meant}Known: {', '.join(FRAMEWORKS)}.")


def split_distributed(text: str) -> tuple[str, int, int]:
    """The kind, and the numbers of workers and parameter servers, which are 0 except for ps.

    >>> split_distributed("gloo"), split_distributed("ps 2:1")
    (('gloo', 0, 0), ('ps', 2, 1))
    """
    kind, _, numbers = text.strip().partition(" ")
    if kind.lower() not in DISTRIBUTIONS:
        hint = f"{guess(kind, DISTRIBUTIONS)}Known: mpi, gloo, nccl, and ps WORKERS:SERVERS."
        raise UserErrorException(f"distributed {text!r} is unknown", hint=hint)
    workers, _, servers = numbers.strip().partition(":")
    if kind.lower() != "ps" and not numbers:
        return kind.lower(), 0, 0
    if kind.lower() != "ps" or not (workers.isdecimal() and servers.isdecimal()):
        raise UserErrorException(
            f"distributed {text!r} cannot be read",
            hint="Write ps WORKERS:SERVERS, such as ps 2:1; with no servers, ps 2:0." if kind.lower() == "ps" else
            f"Write {kind.lower()} alone.",
        )  # fmt: skip
    return "ps", int(workers), int(servers)


def _entries(section: str, given: Marked, mistakes: Mistakes) -> Any:
    found: dict[str, Any] = {}
    for name, item in values.mapping(given).items():
        with mistakes.collect():
            found[name] = _entry(section, name, item)
    return found if section == "datasets" else tuple(found.values())


def _entry(section: str, name: str, item: Marked) -> Any:
    from trainmaster.sdk.job_files.entries import check_entry

    if isinstance(item.value, str) and item.value.strip():
        read = {"inputs": read_input, "outputs": read_output}.get(section)
        entry = read(name, item.value) if read else read_dataset(item.value)
    else:
        values.check_kind(item, str, dict)
        entry = _whole_entry(section, name, values.mapping(item))
    try:
        return check_entry(name, entry)
    except TrainmasterError as error:
        raise item.error(error.headline, error.cause, error.hint) from None


def _whole_entry(section: str, name: str, keys: dict[str, Marked]) -> Any:
    values.check_keys(keys, FIELDS[section])
    kinds: dict[str, Callable[[Marked], Any]] = {
        "overwrite": _flag, "globs": values.words, "tags": values.pairs, "reader": lambda each: each.plain(),
        "version": values.version,
    }  # fmt: skip
    plain = {key: kinds.get(key, values.text)(each) for key, each in keys.items()}
    if "mode" in plain and plain["mode"] not in MODES[section]:
        known = MODES[section]
        raise keys["mode"].error(f"must be {values.alternatives(known)}, not {plain['mode']!r}")
    if section == "inputs":
        return DataBinding(name, plain.pop("datastore", ""), **plain)
    if section == "outputs":
        return DatasetOutput(name, **plain)
    return Dataset(name=plain.pop("dataset", ""), **plain)

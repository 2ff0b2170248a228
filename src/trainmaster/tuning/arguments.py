"""From sampled parameters to the command line of a trial."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from trainmaster.shared.arguments import is_name
from trainmaster.shared.job_spec import JobSpec
from trainmaster.tuning.space import Parameters, flat
from trainmaster.tuning.spec import SweepSpec


def trial_arguments(spec: SweepSpec, parameters: Parameters) -> tuple[str, ...]:
    """The arguments of a trial: those of the job, then the sampled ones in the order of the space."""
    return (*spec.job.arguments, *parameter_words(parameters))


def trial_job(spec: SweepSpec, parameters: Parameters) -> JobSpec:
    """The job of one trial."""
    if not spec.job.command:
        return replace(spec.job, arguments=trial_arguments(spec, parameters))
    # A command goes through a shell, which must not interpret sampled text.
    words = (shlex.quote(word) for word in parameter_words(parameters))
    return replace(spec.job, command=(*spec.job.command, *words))


def parameter_words(parameters: Parameters) -> tuple[str, ...]:
    """Name, value, name, value. As in `script_params`, a list becomes several words, and None or "" a flag alone.

    >>> parameter_words({"learning_rate": 0.1, "--layers": [64, 32], "-v": "", "optimizer": {"--name": "sgd"}})
    ('--learning_rate', '0.1', '--layers', '64', '32', '-v', '--name', 'sgd')
    """
    words: list[str] = []
    for name, value in flat(parameters).items():
        words.append(argument_name(name))
        words += [str(item) for item in _items(value) if item is not None and item != ""]
    return tuple(words)


def argument_name(name: str) -> str:
    """A parameter on a command line: with two dashes, unless it already has dashes."""
    return name if name.startswith("-") else f"--{name}"


def remove_arguments(
    words: Iterable[str], names: Collection[str], values_each: int | None
) -> tuple[tuple[str, ...], list[str]]:
    """Returns `words` without the arguments in `names`, and the names that were removed. Dashes do not matter.

    The words between a name and the next one are its values, at most `values_each` of them (None: all).

    >>> remove_arguments(["--lr", "0.1", "--lr=2", "--epochs", "-3", "data"], {"lr"}, None)
    (('--epochs', '-3', 'data'), ['--lr', '--lr'])
    """
    stems = {name.lstrip("-") for name in names}
    kept: list[str] = []
    removed: list[str] = []
    values_left = 0
    for word in words:
        name, equals, _ = word.partition("=")
        if is_name(word):
            values_left = 0
            if name.lstrip("-") in stems:
                removed.append(name)
                values_left = 0 if equals else (sys.maxsize if values_each is None else values_each)
                continue
        elif values_left:
            values_left -= 1
            continue
        kept.append(word)
    return tuple(kept), removed


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]

"""Changes of a job that is run again: arguments and settings by name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.arguments import FLAG, arguments_of, is_name, plain_name
from trainmaster.shared.job_spec import MOST_PRIORITY, JobSpec
from trainmaster.shared.spelling import closest


def _whole(name: str, text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise UserErrorException(f"{name}={text[:100]} is not a whole number of at least {least}")
    return number


def _set_nodes(spec: JobSpec, text: str) -> JobSpec:
    nodes = _whole("nodes", text, 1)
    count = spec.distribution.process_count
    if spec.distribution.kind == "parameter_server" and nodes != spec.node_count:
        raise UserErrorException(
            "the nodes of a run with parameter servers cannot be changed",
            cause="Its workers and servers are placed on them.",
            hint="Submit it again with other counts.",
        )
    if spec.distribution.kind == "single" and nodes > 1:
        raise UserErrorException("the run is not distributed: it has one node")
    each = None if count is None else count // spec.node_count * nodes
    return replace(spec, node_count=nodes, distribution=replace(spec.distribution, process_count=each))


def _set_hang_seconds(spec: JobSpec, text: str) -> JobSpec:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise UserErrorException(f"hang_seconds={text[:100]} is not a positive number")
    return replace(spec, hang_seconds=seconds)


def _set_priority(spec: JobSpec, text: str) -> JobSpec:
    try:
        priority = int(text)
    except ValueError:
        priority = MOST_PRIORITY + 1
    if abs(priority) > MOST_PRIORITY:
        raise UserErrorException(
            f"priority={text[:100]} is not a whole number between -{MOST_PRIORITY} and {MOST_PRIORITY}"
        )
    return replace(spec, priority=priority)


_SETTINGS: Mapping[str, Callable[[JobSpec, str], JobSpec]] = {
    "target": lambda spec, text: replace(spec, target=text),
    "nodes": _set_nodes,
    "max_seconds": lambda spec, text: replace(spec, max_run_duration_seconds=_whole("max_seconds", text, 1)),
    "max_retries": lambda spec, text: replace(spec, max_retries=_whole("max_retries", text, 0)),
    "hang_seconds": _set_hang_seconds,
    "priority": _set_priority,
}
LABELS = ("name", "tag")
"""Settings of the run, not of its job."""


def change_job(spec: JobSpec, settings: Mapping[str, str]) -> JobSpec:
    """The job with other settings: `target`, `nodes`, ..., `env.NAME` for a variable, and arguments by their names."""
    for name, text in settings.items():
        kind, dot, rest = name.partition(".")
        if name in _SETTINGS:
            spec = _SETTINGS[name](spec, text)
        elif kind == "env" and dot and rest:
            spec = replace(spec, environment_variables={**spec.environment_variables, rest: text})
        else:
            spec = _change_argument(spec, rest if kind == "arg" and dot else name, text, is_sure=kind == "arg")
    return spec


def _change_argument(spec: JobSpec, name: str, text: str, is_sure: bool) -> JobSpec:
    if spec.command:
        raise UserErrorException(
            f"argument '{name[:100]}' cannot be changed: the run has a command, not a script",
            hint="Give the whole command after two dashes: -- python train.py --lr 0.1",
        )
    close = closest(name, [*_SETTINGS, *LABELS], 0.8)
    if close and not is_sure and plain_name(name) not in arguments_of(spec.arguments):
        raise UserErrorException(
            f"the run has no argument '{name[:100]}'",
            hint=f"Did you mean {close}? A new argument of this name is written as arg.{name}.",
        )
    return replace(spec, arguments=tuple(set_argument(spec.arguments, name, text)))


def set_argument(words: Sequence[str], name: str, text: str) -> list[str]:
    """The words of a command line with another value of an argument, which is added if it is not there.

    A flag is set by `true` and removed by `false`.

    >>> set_argument(["data.csv", "--lr", "0.1", "--quiet"], "lr", "0.2")
    ['data.csv', '--lr', '0.2', '--quiet']
    >>> set_argument(["--batch-size=32", "depth=3"], "batch_size", "64"), set_argument(["depth=3"], "depth", "4")
    (['--batch-size=64', 'depth=3'], ['depth=4'])
    >>> set_argument(["--quiet"], "quiet", "false"), set_argument([], "epochs", "5")
    ([], ['--epochs', '5'])
    """
    wanted = plain_name(name)
    start = _find_last(words, wanted)
    if start is None:
        dashed = name if name.startswith("-") else f"--{name}"
        return [*words, dashed, text]
    own, equals, _ = words[start].partition("=")
    if equals:
        return [*words[:start], f"{own}={text}", *words[start + 1 :]]
    end = start + 1
    while end < len(words) and not is_name(words[end]) and "=" not in words[end]:
        end += 1
    if end == start + 1 and text in (FLAG, "false"):
        return [*words] if text == FLAG else [*words[:start], *words[end:]]
    return [*words[: start + 1], *text.split(), *words[end:]] if text else [*words[: start + 1], text, *words[end:]]


def _find_last(words: Sequence[str], wanted: str) -> int | None:
    found = None
    for number, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if (is_name(word) or equals) and plain_name(name) == wanted:
            found = number
    return found

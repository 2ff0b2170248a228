"""A plan that was made for this machine, as one of a host: its paths, names and variables. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.agent.tokens import replace_tokens

# What the submitter's shell says of itself and not of the machine.
_KEPT = re.compile(r"LANG(UAGE)?|LC_.*|TZ")


def translated(
    plan: Mapping[str, Any],
    *,
    paths: Mapping[str, str],
    tokens: Mapping[str, str],
    inherited: Mapping[str, str],
    variables: Mapping[str, str],
    more: Mapping[str, str],
) -> dict[str, Any]:
    """The plan with `paths` of this machine replaced by those of the host, and its `tokens` by what they stand for.

    Of the submitter's shell (`inherited`) nothing stays that describes this machine: the host's own `variables` take
    its place. `more` is added to the variables of every process.
    """
    moved: dict[str, Any] = replace_tokens(moved_paths(plan, paths), tokens)
    for process in [*moved["processes"], *moved.get("ranks", [])]:
        process["env"] = _environment(process["env"], inherited, variables, more)
    moved["notify"] = None
    return moved


def moved_paths(data: Any, paths: Mapping[str, str]) -> Any:
    """Every text in `data` with the paths of this machine replaced by those of the host.

    >>> moved_paths(["/ws/a:/ws", "/ws2"], {"/ws": "/there"})
    ['/there/a:/there', '/ws2']
    """
    return _moved(data, _pattern(paths), paths)


def _pattern(paths: Mapping[str, str]) -> re.Pattern[str]:
    longest_first = sorted(paths, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + r")(?![\w.-])")


def _moved(data: Any, pattern: re.Pattern[str], paths: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return pattern.sub(lambda found: paths[found[1]], data)
    if isinstance(data, list):
        return [_moved(item, pattern, paths) for item in data]
    if isinstance(data, Mapping):
        return {name: _moved(value, pattern, paths) for name, value in data.items()}
    return data


def _environment(
    env: Mapping[str, str], inherited: Mapping[str, str], variables: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    found = dict(env)
    for name, value in inherited.items():
        if _KEPT.fullmatch(name) or name not in found:
            continue
        if name == "PATH":
            found[name] = _path(found[name], value, variables.get("PATH", ""))
        elif found[name] == value and name in variables:
            found[name] = variables[name]
        elif found[name] == value:
            del found[name]
    for name, value in more.items():
        found[name] = ":".join(filter(None, (value, found.get(name)))) if name.endswith("PATH") else value
    return found


def _path(found: str, ours: str, theirs: str) -> str:
    """What was put before the submitter's PATH comes before the host's; a PATH of the user's own stays.

    >>> _path("/env/bin:/my/bin:/bin", "/my/bin:/bin", "/usr/bin")
    '/env/bin:/usr/bin'
    """
    return found[: -len(ours)] + theirs if ours and found.endswith(ours) else found


def for_every_node(plan: Mapping[str, Any], first: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """A node whose folder is its own lays out code and data itself; in a shared one the first does so for all."""
    if shared:
        return dict(plan)
    return {**plan, "layout": first["layout"] or plan["layout"], "links": first["links"]}


def host_names(addresses: Sequence[str]) -> tuple[str, ...]:
    """Under which the nodes reach each other; one alone reaches itself."""
    return ("127.0.0.1",) if len(addresses) == 1 else tuple(addresses)

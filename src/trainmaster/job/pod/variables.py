"""The variables of a process on another machine than the one where its run was submitted. Python 3.6: pods use it."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

# Variables that describe the submitter and not the machine.
_PERSONAL = re.compile(r"LANG(UAGE)?|LC_.*|TZ")


def translate_plan(
    plan: "Mapping[str, Any]",
    inherited: "Mapping[str, str]",
    variables: "Mapping[str, str]",
    more: "Mapping[str, str]",
) -> None:
    """Changes the variables of all processes in a plan; see `translate_variables`."""
    for process in [*plan.get("processes", []), *plan.get("ranks", [])]:
        process["env"] = translate_variables(process["env"], inherited, variables, more)


def translate_variables(
    env: "Mapping[str, str]",
    inherited: "Mapping[str, str]",
    variables: "Mapping[str, str]",
    more: "Mapping[str, str]",
) -> "dict[str, str]":
    """Variables of the submitter's shell (`inherited`) that describe his machine become those of this one.

    `variables` are those of this machine. `more` is added: paths before those that are there, others if there is none.
    """
    translated = dict(env)
    for name, value in inherited.items():
        if _PERSONAL.fullmatch(name) or name not in translated:
            continue
        if name == "PATH":
            translated[name] = translate_path(translated[name], value, variables.get("PATH", ""))
        elif translated[name] == value and name in variables:
            translated[name] = variables[name]
        elif translated[name] == value:
            del translated[name]
    for name, value in more.items():
        if name.endswith("PATH"):
            translated[name] = ":".join([each for each in (value, translated.get(name)) if each])
        else:
            translated.setdefault(name, value)
    return translated


def translate_path(path: str, ours: str, theirs: str) -> str:
    """Replaces the submitter's PATH at the end by the host's. A PATH that the user has set stays.

    >>> translate_path("/env/bin:/my/bin:/bin", "/my/bin:/bin", "/usr/bin")
    '/env/bin:/usr/bin'
    """
    return path[: -len(ours)] + theirs if ours and path.endswith(ours) else path

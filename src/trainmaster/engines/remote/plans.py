"""A plan that was made for this machine as the plan of a host: its paths, names and variables.

Pure, except that it reads the run's files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.remote.connection import HostFacts
from trainmaster.engines.remote.data import RunData
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.upload import environment_folder
from trainmaster.environments.prefix import PYTHON_THERE
from trainmaster.job.agent.tokens import replace_tokens
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json

# Variables that describe the submitter and not the machine.
_PERSONAL = re.compile(r"LANG(UAGE)?|LC_.*|TZ")


class PlanTranslation:
    """Translates the plans of one run for one host."""

    def __init__(
        self,
        nodes: Nodes,
        spec: JobSpec,
        workspace: WorkspaceFolder,
        data: RunData,
        facts: HostFacts,
        environment: RemoteEnvironment,
    ) -> None:
        self._nodes = nodes
        self._spec = spec
        self._data = data
        self._facts = facts
        self._environment = environment
        built = environment_folder(nodes)
        self._paths = {
            str(workspace.path): facts.root,
            **({built: f"{facts.root}/{environment.folder}"} if built and environment.folder else {}),
            **data.outside_paths(f"{facts.root}/runs/{nodes.run_id}"),
        }

    def translate(self, plan: Mapping[str, Any], tokens: Mapping[str, str]) -> dict[str, Any]:
        """The plan for the host, with `tokens` replaced."""
        return translate(
            plan,
            paths=self._paths,
            tokens={**tokens, PYTHON_THERE: self._facts.python},
            inherited=self._spec.inherited_variables,
            variables=self._facts.variables,
            more=self._environment.variables,
        )

    def describe_datasets(self) -> dict[str, Any]:
        """The description of datasets for the script, if there is one, by its path in the run's folder."""
        if not self._data.has_datasets:
            return {}
        path = self._nodes.folder.datasets
        return {path.name: replace_paths(read_json(path) or {}, self._paths)}


def translate(
    plan: Mapping[str, Any],
    *,
    paths: Mapping[str, str],
    tokens: Mapping[str, str],
    inherited: Mapping[str, str],
    variables: Mapping[str, str],
    more: Mapping[str, str],
) -> dict[str, Any]:
    """The plan with `paths` of this machine replaced by those of the host, and `tokens` by their values.

    Variables of the submitter's shell (`inherited`) that describe this machine are replaced by the host's `variables`.
    `more` is added to the variables of every process.
    """
    translated: dict[str, Any] = replace_tokens(replace_paths(plan, paths), tokens)
    for process in [*translated["processes"], *translated.get("ranks", [])]:
        process["env"] = _translate_variables(process["env"], inherited, variables, more)
    translated["notify"] = None
    return translated


def replace_paths(data: Any, paths: Mapping[str, str]) -> Any:
    """Replaces paths of this machine by those of the host in every text of `data`.

    >>> replace_paths(["/ws/a:/ws", "/ws2"], {"/ws": "/there"})
    ['/there/a:/there', '/ws2']
    """
    longest_first = sorted(paths, key=len, reverse=True)
    pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + r")(?![\w.-])")
    return _replace(data, pattern, paths)


def _replace(data: Any, pattern: re.Pattern[str], paths: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return pattern.sub(lambda match: paths[match[1]], data)
    if isinstance(data, list):
        return [_replace(item, pattern, paths) for item in data]
    if isinstance(data, Mapping):
        return {name: _replace(value, pattern, paths) for name, value in data.items()}
    return data


def _translate_variables(
    env: Mapping[str, str], inherited: Mapping[str, str], variables: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    translated = dict(env)
    for name, value in inherited.items():
        if _PERSONAL.fullmatch(name) or name not in translated:
            continue
        if name == "PATH":
            translated[name] = _translate_path(translated[name], value, variables.get("PATH", ""))
        elif translated[name] == value and name in variables:
            translated[name] = variables[name]
        elif translated[name] == value:
            del translated[name]
    for name, value in more.items():
        translated[name] = ":".join(filter(None, (value, translated.get(name)))) if name.endswith("PATH") else value
    return translated


def _translate_path(path: str, ours: str, theirs: str) -> str:
    """Replaces the submitter's PATH at the end by the host's. A PATH that the user has set stays.

    >>> _translate_path("/env/bin:/my/bin:/bin", "/my/bin:/bin", "/usr/bin")
    '/env/bin:/usr/bin'
    """
    return path[: -len(ours)] + theirs if ours and path.endswith(ours) else path


def node_path(nodes: Nodes, number: int) -> str:
    """The folder of a node, as a path in the run's folder."""
    return str(nodes.folder.node(number).relative_to(nodes.folder.path))

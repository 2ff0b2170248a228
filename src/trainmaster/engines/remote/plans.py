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
from trainmaster.job.agent.tokens import host_token, replace_tokens
from trainmaster.job.pod.variables import translate_plan
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json


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
    translate_plan(translated, inherited, variables, more)
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


def name_hosts(nodes: Nodes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands for the addresses of the nodes in plans until they are known, and mpirun's options for them."""
    count = len(nodes.numbers)
    if count == 1:
        return ("127.0.0.1",), ()
    hosts = tuple(host_token(number) for number in range(count))
    return hosts, ("--host", ",".join(f"{host}:{nodes.processes_per_node}" for host in hosts))


def node_path(nodes: Nodes, number: int) -> str:
    """The folder of a node, as a path in the run's folder."""
    return str(nodes.folder.node(number).relative_to(nodes.folder.path))

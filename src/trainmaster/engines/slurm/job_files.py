"""The files that the agents of a run find in a cluster's shared folder. Pure, except that it reads the run's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.plans import plan_files
from trainmaster.engines.remote.connection import HostFacts
from trainmaster.engines.remote.data import read_run_data
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.plans import PlanTranslation, node_path
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec


def job_files(
    nodes: Nodes,
    spec: JobSpec,
    workspace: WorkspaceFolder,
    plans: Sequence[dict[str, Any]],
    facts: HostFacts,
    environment: RemoteEnvironment,
) -> dict[str, Any]:
    """The content of each file by its path in the workspace's folder there. Tokens for host names stay."""
    translation = PlanTranslation(nodes, spec, workspace, read_run_data(nodes.folder), facts, environment)
    files = translation.describe_datasets()
    for plan in plans:
        folder = node_path(nodes, plan["node"])
        translated = translation.translate(plan, {})
        files.update({f"{folder}/{name}": data for name, data in plan_files(translated).items()})
    return {f"runs/{nodes.run_id}/{name}": data for name, data in files.items()}

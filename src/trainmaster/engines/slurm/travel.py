"""From the plans of a run to the files that its agents find in a cluster's shared folder. Pure but for reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.plans import plan_files
from trainmaster.engines.ssh import plans, starting
from trainmaster.engines.ssh.data import freight_of
from trainmaster.engines.ssh.session import HostFacts
from trainmaster.engines.ssh.upload import Settled
from trainmaster.environments.prefix import PYTHON_THERE
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec


def files(
    nodes: Nodes,
    spec: JobSpec,
    workspace: WorkspaceFolder,
    given: Sequence[dict[str, Any]],
    there: HostFacts,
    settled: Settled,
) -> dict[str, Any]:
    """What is in each file, by its path in the workspace's folder there. Names of hosts stay blank as yet."""
    freight = freight_of(nodes.folder)
    paths = starting.paths_there(nodes, workspace, freight, there, settled)
    found = starting.described(nodes, freight, paths)
    for plan in given:
        moved = plans.translated(
            plan,
            paths=paths,
            tokens={PYTHON_THERE: there.python},
            inherited=spec.inherited_variables,
            variables=there.variables,
            more=settled.variables,
        )
        folder = starting.within(nodes, plan["node"])
        found.update({f"{folder}/{name}": data for name, data in plan_files(moved).items()})
    return {f"runs/{nodes.run_id}/{name}": data for name, data in found.items()}

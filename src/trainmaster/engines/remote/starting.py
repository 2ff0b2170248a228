"""From the plans of a run to what each host gets: its plan, and the files that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Nodes
from trainmaster.engines.remote import mpi
from trainmaster.engines.remote.connection import HostFacts
from trainmaster.engines.remote.data import read_run_data
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.plans import PlanTranslation, node_path
from trainmaster.job.agent.tokens import token_values
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec


@dataclass(frozen=True)
class Order:
    """What one host has to do."""

    plan: dict[str, Any]
    files: dict[str, Any]
    """Further files, by their paths in the run's folder there."""


def has_helpers(nodes: Nodes) -> bool:
    """Whether only the first node has a plan of its own, and starts the processes of the others: MPI."""
    return len(nodes.numbers) > nodes.count


def make_orders(
    nodes: Nodes,
    spec: JobSpec,
    workspace: WorkspaceFolder,
    plans: Sequence[dict[str, Any]],
    kit: Path,
    python: str,
    facts: Sequence[HostFacts],
    environments: Sequence[RemoteEnvironment],
    addresses: Sequence[str],
    shared: bool,
) -> list[Order]:
    """For each host, the plan of its node and the files that belong to it.

    `shared`: whether all hosts see one folder.
    """
    tokens = token_values(_host_names(addresses), [])
    data = read_run_data(nodes.folder)
    orders = []
    for number, (there, environment) in enumerate(zip(facts, environments, strict=True)):
        translation = PlanTranslation(nodes, spec, workspace, data, there, environment)
        own = _plan_of_node(nodes, plans, number, str(kit), python)
        plan = translation.translate(with_layout(own, plans[0], shared), tokens)
        files = translation.describe_datasets()
        if "ranks" in plan:
            # Ranks on every host read there which process they are.
            files[f"{node_path(nodes, 0)}/ranks.json"] = {"version": 1, "ranks": plan["ranks"]}
        orders.append(Order(plan, files))
    return orders


def _host_names(addresses: Sequence[str]) -> tuple[str, ...]:
    """The names under which nodes reach each other; a single node reaches itself."""
    return ("127.0.0.1",) if len(addresses) == 1 else tuple(addresses)


def _plan_of_node(nodes: Nodes, plans: Sequence[dict[str, Any]], number: int, kit: str, python: str) -> dict[str, Any]:
    """The plan of one node, still with paths of this machine."""
    if not has_helpers(nodes):
        return plans[number]
    folder = str(nodes.folder.node(number))
    if number == 0:
        return mpi.launcher_plan(plans[0], folder, kit, python)
    return mpi.helper_plan(plans[0], number, folder, kit, python)


def with_layout(plan: Mapping[str, Any], first: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """In a shared folder the first node lays out code and data; otherwise every node does so."""
    if shared:
        return dict(plan)
    return {**plan, "layout": first["layout"] or plan["layout"], "links": first["links"]}


def check_same_root(nodes: Nodes, facts: Sequence[HostFacts]) -> None:
    """Raises an error if MPI cannot use the hosts: mpirun runs the same command line on all of them."""
    roots = sorted({each.root for each in facts})
    if has_helpers(nodes) and len(roots) > 1:
        raise ComputeTargetException(
            f"the hosts of '{nodes.target.name}' keep our files at different paths, but MPI needs the same path",
            cause=f"The paths are {', '.join(roots)}.",
            hint="Give folder='/a/path/that/all/have' in SshCompute.configuration, or use one user name on all hosts.",
        )

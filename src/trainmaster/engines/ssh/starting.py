"""From the plans of a run to its agents on hosts: what is brought there, and the plan that each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainmaster.engines.engine import Nodes
from trainmaster.engines.ssh import mpi, plans, upload
from trainmaster.engines.ssh.data import RunData, freight_of
from trainmaster.engines.ssh.host import is_shared
from trainmaster.engines.ssh.link import Order
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.environments.prefix import PYTHON_THERE
from trainmaster.job.agent import tokens
from trainmaster.job.errors import ComputeTargetException, EnvironmentException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json


class Way(Protocol):
    """How things come to a host."""

    @property
    def session(self) -> Session: ...

    @property
    def facts(self) -> HostFacts | None: ...

    def say(self, what: str) -> Callable[[int, int], None]:
        """Somebody who hears how many bytes of `what` are there, of how many."""


def has_helpers(nodes: Nodes) -> bool:
    """Whether only the first node has an agent of its own, which reaches the others: MPI."""
    return len(nodes.numbers) > nodes.count


def within(nodes: Nodes, number: int) -> str:
    """The folder of a node, as a path in that of the run."""
    return str(nodes.folder.node(number).relative_to(nodes.folder.path))


async def bring(way: Way, nodes: Nodes, spec: JobSpec, workspace: WorkspaceFolder, kit: Path) -> upload.Settled:
    """All that the run needs on one host."""
    session, facts = way.session, way.facts
    assert facts is not None
    await upload.bring_kit(session, kit)
    await upload.bring_snapshot(session, workspace.snapshots, workspace.blobs, spec.snapshot_id)
    for name, path in freight_of(nodes.folder).brought.items():
        await upload.bring_data(session, f"runs/{nodes.run_id}/{name}", path, way.say("data"))
    folder = travelling_environment(nodes, spec)
    if not folder:
        return upload.Settled()
    return await upload.bring_environment(session, facts, Path(folder), way.say("environment"))


def orders(
    nodes: Nodes,
    spec: JobSpec,
    workspace: WorkspaceFolder,
    given: Sequence[dict[str, Any]],
    kit: Path,
    python: str,
    facts: Sequence[HostFacts],
    settled: Sequence[upload.Settled],
) -> list[Order]:
    """For each host, the plan of its node and the files that go with it."""
    addresses = plans.host_names([each.address for each in facts])
    freight = freight_of(nodes.folder)
    found = []
    for number, (there, place) in enumerate(zip(facts, settled, strict=True)):
        own = _plan_of(nodes, given, number, str(kit), python)
        paths = paths_there(nodes, workspace, freight, there, place)
        plan = plans.translated(
            plans.for_every_node(own, given[0], is_shared(nodes.target)),
            paths=paths,
            tokens={**tokens.token_values(addresses, []), PYTHON_THERE: there.python},
            inherited=spec.inherited_variables,
            variables=there.variables,
            more=place.variables,
        )
        found.append(Order(plan, _files(nodes, plan, freight, paths)))
    return found


def _plan_of(nodes: Nodes, given: Sequence[dict[str, Any]], number: int, kit: str, python: str) -> dict[str, Any]:
    """The plan of one node, still with paths of this machine."""
    if not has_helpers(nodes):
        return given[number]
    folder = str(nodes.folder.node(number))
    if number == 0:
        return mpi.launcher(given[0], folder, kit, python)
    return mpi.helper(given[0], number, folder, kit, python)


def paths_there(
    nodes: Nodes, workspace: WorkspaceFolder, freight: RunData, there: HostFacts, place: upload.Settled
) -> dict[str, str]:
    """Paths of this machine, and where on a host the same is found."""
    environment = _environment(nodes)
    return {
        str(workspace.path): there.root,
        **({environment: f"{there.root}/{place.folder}"} if environment and place.folder else {}),
        **freight.paths(f"{there.root}/runs/{nodes.run_id}"),
    }


def _files(nodes: Nodes, plan: dict[str, Any], freight: RunData, paths: dict[str, str]) -> dict[str, Any]:
    files: dict[str, Any] = described(nodes, freight, paths)
    if "ranks" in plan:
        # Every host has ranks that look there for what they are to become.
        files[f"{within(nodes, 0)}/ranks.json"] = {"version": 1, "ranks": plan["ranks"]}
    return files


def described(nodes: Nodes, freight: RunData, paths: dict[str, str]) -> dict[str, Any]:
    """The description of datasets for the script, if there is one, by its path in the run's folder."""
    if not freight.described:
        return {}
    return {nodes.folder.datasets.name: plans.moved_paths(read_json(nodes.folder.datasets) or {}, paths)}


def travelling_environment(nodes: Nodes, spec: JobSpec) -> str:
    """Where the environment lies here that the run needs on its hosts; empty where it uses a Python of theirs."""
    return "" if spec.environment.user_managed else _environment(nodes)


def _environment(nodes: Nodes) -> str:
    """Where the environment that was built for the run lies here; empty for the user's own."""
    return str((read_json(nodes.folder.path / "environment.json") or {}).get("folder") or "")


def check_one_place(nodes: Nodes, facts: Sequence[HostFacts]) -> None:
    """mpirun starts its ranks by one command line on all hosts."""
    roots = sorted({each.root for each in facts})
    if has_helpers(nodes) and len(roots) > 1:
        raise ComputeTargetException(
            f"the hosts of '{nodes.target.name}' keep our files at different paths, and MPI needs one",
            cause=f"They are {', '.join(roots)}.",
            hint="Say folder='/a/path/that/all/have' in SshCompute.configuration, or use one user name on all hosts.",
        )


def check_no_container(spec: JobSpec) -> None:
    """Refuses what needs an image."""
    if spec.environment.container is not None:
        raise EnvironmentException(
            "containers are not started on hosts over SSH",
            hint="Leave the image out: the packages of the environment are brought to the host.",
        )

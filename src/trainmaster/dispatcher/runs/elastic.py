"""Which nodes an attempt of an elastic run has.

An elastic run may start with fewer nodes than it asks for. After the loss of nodes, the next attempt has the others,
as long as there are `min_nodes`. Later attempts try all nodes again, and those that have become free. What an attempt
has is kept in its folder, because another dispatcher may take over.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from trainmaster.job.agent import durable
from trainmaster.launch import most_processes
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json


def is_elastic(spec: JobSpec) -> bool:
    """Whether the run goes on with fewer nodes when some are lost."""
    return spec.distribution.min_nodes is not None


def can_go_on(spec: JobSpec, folder: RunFolder) -> bool:
    """Whether the attempt lost nodes and enough of them are left. Ask only after its agents are gone."""
    if not is_elastic(spec):
        return False
    members = read_members(spec, folder)
    lost = find_lost(spec, folder)
    return bool(lost) and len(members) - len(lost) >= (spec.distribution.min_nodes or 1)


def find_lost(spec: JobSpec, folder: RunFolder) -> frozenset[int]:
    """The nodes of the run whose agents left no result in this attempt."""
    members = read_members(spec, folder)
    return frozenset(
        member for number, member in enumerate(members) if not (folder.node(number) / "result.json").exists()
    )


def choose_members(spec: JobSpec, held: int, lost: Collection[int]) -> tuple[int, ...]:
    """The nodes of the next attempt, as places among the `held` nodes of the run. All, if too few would be left.

    >>> from trainmaster.shared.job_spec import Distribution
    >>> spec = JobSpec("", "local", node_count=3, distribution=Distribution("torch", min_nodes=2))
    >>> choose_members(spec, 3, lost={1}), choose_members(spec, 3, lost={0, 1}), choose_members(spec, 2, lost=())
    ((0, 2), (0, 1, 2), (0, 1))
    """
    everyone = tuple(range(held))
    left = tuple(member for member in everyone if member not in lost)
    return left if len(left) >= (spec.distribution.min_nodes or 1) else everyone


def keep_members(folder: RunFolder, members: tuple[int, ...]) -> None:
    """Writes down which nodes this attempt has, before any agent is started."""
    durable.make_folder(folder.members.parent)
    durable.write(folder.members, json.dumps({"version": 1, "members": members}).encode())


def keep_fewer(spec: JobSpec, folder: RunFolder, count: int) -> None:
    """Writes down that this attempt has only `count` of its nodes. No agent may have been started."""
    keep_members(folder, read_members(spec, folder)[:count])


def read_members(spec: JobSpec, folder: RunFolder) -> tuple[int, ...]:
    """The nodes of this attempt, as places among all nodes of the run."""
    everyone = tuple(range(spec.node_count))
    if not is_elastic(spec):
        return everyone
    found = (read_json(folder.members) or {}).get("members")
    if not isinstance(found, list):
        return everyone
    # An edited or damaged file does not lead to nodes that the run does not have.
    return tuple(member for member in everyone if member in found) or everyone


def spec_of_attempt(spec: JobSpec, folder: RunFolder) -> JobSpec:
    """The specification with the nodes and processes that this attempt has."""
    count = len(read_members(spec, folder))
    if count == spec.node_count:
        return spec
    distribution = replace(spec.distribution, process_count=count * most_processes(spec))
    return replace(spec, node_count=count, distribution=distribution)

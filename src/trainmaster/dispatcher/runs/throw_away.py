"""The cluster of a single run, for v1's `vm_size` of an estimator. It exists as long as its run."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import cpus, gpus
from trainmaster.shared.job_spec import THROW_AWAY, JobSpec
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.vm_sizes import VmSizes, grant, read_sizes


def target_for(run_id: str, spec: JobSpec, sizes: VmSizes) -> TargetRecord | None:
    """The target for a run that asks for its own cluster; None for a run that names a target of the workspace."""
    if spec.target != THROW_AWAY:
        return None
    if not spec.vm_size:
        raise ComputeTargetException(
            f"target '{THROW_AWAY}' is a cluster for one run, and needs a vm_size",
            hint="Set run_config.amlcompute.vm_size, or name another target.",
        )
    granted = grant(sizes, spec.vm_size, spec.node_count, cpus=cpus(), gpus=len(gpus()))
    return TargetRecord(
        # Derived from the run id, so that the next dispatcher finds the nodes that the run holds.
        name=f"{THROW_AWAY}-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}",
        engine="local",
        nodes=spec.node_count,
        cpus_per_node=granted.cpus_per_node,
        gpus_per_node=granted.gpus_per_node,
        options={
            "class": "AmlCompute",
            "vm_size": spec.vm_size,
            "vm_priority": spec.vm_priority,
            "run_id": run_id,
            "doubts": list(granted.doubts),
        },
    )


def target_again(run_id: str, spec: JobSpec, workspace: WorkspaceFolder) -> TargetRecord | None:
    """The target for a run that was accepted earlier; it is not refused if the table of sizes has changed."""
    try:
        sizes = replace(read_sizes(workspace), strict=False)
    except ComputeTargetException:
        sizes = VmSizes({})
    return target_for(run_id, spec, sizes)

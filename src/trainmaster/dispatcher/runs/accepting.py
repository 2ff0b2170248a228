"""What is decided when a run is submitted: its target, and whether it can run there at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.capacity import check_fits
from trainmaster.dispatcher.runs.datasets import save_inputs
from trainmaster.dispatcher.runs.lookup import require_target
from trainmaster.dispatcher.runs.quotas import Use, check_quotas
from trainmaster.dispatcher.runs.resuming import find_resumed
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.throw_away import target_for
from trainmaster.environments.accelerator import without_gpus
from trainmaster.environments.checks import check_buildable
from trainmaster.job.agent.limits import MEMORY
from trainmaster.job.errors import ComputeTargetException, DatastoreException, UserErrorException
from trainmaster.job.helper.safe_names import LONGEST_RUN_ID, RULE, is_plain
from trainmaster.shared.job_spec import THROW_AWAY, JobSpec, dump_spec, load_spec, stores_of
from trainmaster.shared.node_limits import describe_limits, find_enforced, limits_of, show_memory, why_not
from trainmaster.shared.records import LIMITS_PROPERTY, PRIORITY_PROPERTY, RunRecord, Status, TargetRecord
from trainmaster.shared.vm_sizes import read_sizes


async def accept(
    context: Context, scheduler: Scheduler, record: RunRecord, sources: Mapping[str, str] | None
) -> RunRecord:
    """Returns a new run as it will be stored; refuses a run that can never start."""
    with_plain_id(record)
    spec = load_spec(record.spec)
    target = _find_target(context, scheduler, record, spec)
    spec = as_on(target, spec)
    _check_can_run(context, spec, target)
    _check_can_resume(context, record, target)
    check_quotas(scheduler.quotas(), Use(record.submitted_by, spec.node_count, spec.node_count * target.gpus_per_node))
    await environments.check(spec.environment, context, sources, spec.inherited_variables)
    save_inputs(spec, context.store)
    warnings = (*record.warnings, *_doubts(spec, target))
    # Lists of runs, which do not read specifications, have it from here.
    priority = {PRIORITY_PROPERTY: str(spec.priority)} if spec.priority else {}
    limits = limits_of(target)
    limited = {} if limits is None else {LIMITS_PROPERTY: describe_limits(limits)}
    return replace(
        record,
        status=Status.NOT_STARTED,
        spec=dump_spec(spec),
        warnings=warnings,
        target=target.name,
        properties={**record.properties, **priority, **limited},
    )


def check_priority(spec: JobSpec) -> None:
    """Refuses a priority above that of other runs, for a user who may not have one."""
    if spec.priority > 0:
        raise UserErrorException(
            f"you may not give a run the priority {spec.priority}",
            cause="Only owners of the workspace may put a run before those of others.",
            hint="Leave the priority out, give one of 0 or less ('--set priority=0' for a rerun), or ask an owner.",
        )


def as_on(target: TargetRecord, spec: JobSpec) -> JobSpec:
    """The job as it suits `target`: without GPUs, with builds of frameworks for the CPU."""
    suited = spec if target.gpus_per_node else replace(spec, environment=without_gpus(spec.environment))
    if target.engine != "kubernetes":
        return suited
    from trainmaster.engines.kubernetes.options import as_in_pod

    return as_in_pod(target, suited)


def with_plain_id(record: RunRecord) -> RunRecord:
    """Returns the record if its ids are safe as folder names; raises UserErrorException if not."""
    if not is_plain(record.id, LONGEST_RUN_ID):
        raise UserErrorException(
            f"'{record.id[:100]}' cannot be a run id", hint=f"Use {RULE}, {LONGEST_RUN_ID} at most."
        )
    for what, name in (("run id", record.parent_id), ("snapshot id", record.snapshot_id)):
        if name and not is_plain(name):
            raise UserErrorException(f"'{name[:100]}' cannot be a {what}", hint=f"Use {RULE}.")
    return record


def _find_target(context: Context, scheduler: Scheduler, record: RunRecord, spec: JobSpec) -> TargetRecord:
    """The target of a run: one of the workspace, or a cluster created for this run."""
    own = target_for(record.id, spec, read_sizes(context.folder)) if record.target == THROW_AWAY else None
    return own or require_target(scheduler.targets(), record.target)


def _check_can_run(context: Context, spec: JobSpec, target: TargetRecord) -> None:
    check_fits(spec, target)
    _check_environment(spec, target)
    # Raises an error if the engine is not installed.
    context.engines.get(target.engine)
    if spec.use_gpu and not target.gpus_per_node and read_sizes(context.folder).strict:
        raise ComputeTargetException(
            f"use_gpu=True, but target '{target.name}' has no GPUs, and the table of sizes is strict",
            hint=f'Say "strict": false in {context.folder.vm_sizes} to run on the CPU.',
        )
    stores = {store.name for store in context.store.datastores.list_all()}
    for name in stores_of(spec):
        if name not in stores:
            raise DatastoreException(
                f"there is no datastore '{name}' in this workspace",
                hint=f"Known: {', '.join(sorted(stores)) or 'none'}. Register it with Datastore.register(...).",
            )


def _check_environment(spec: JobSpec, target: TargetRecord) -> None:
    if target.engine != "kubernetes":
        check_buildable(spec.environment)
        return
    from trainmaster.engines.kubernetes.options import PodOptions

    # The cluster runs the image, so this machine needs no container engine.
    check_buildable(replace(spec.environment, container=None))
    PodOptions.read(target, spec)


def _check_can_resume(context: Context, record: RunRecord, target: TargetRecord) -> None:
    if not find_resumed(record):
        return
    engine = context.engines.get(target.engine)
    if not engine.shares_files and not getattr(engine, "uploads_folders", False):
        raise ComputeTargetException(
            f"a run cannot be resumed on target '{target.name}'",
            cause=f"The engine '{target.engine}' does not bring the files of the earlier run to its machines.",
            hint="Resume it with --set target=local, or run it again with 'rerun'.",
        )


def _doubts(spec: JobSpec, target: TargetRecord) -> list[str]:
    """Warnings about settings that are allowed but probably not intended."""
    if spec.use_gpu and not target.gpus_per_node:
        return [f"use_gpu=True, but target '{target.name}' has no GPUs: the script runs on the CPU"]
    doubts = [f"target '{target.name}': {doubt}" for doubt in target.options.get("doubts", ())]
    return doubts + _doubt_limits(spec, target)


def _doubt_limits(spec: JobSpec, target: TargetRecord) -> list[str]:
    """What the target limits and this machine does not."""
    limits = limits_of(target)
    if limits is None:
        return []
    if spec.environment.container is not None:
        return [f"the limits of target '{target.name}' are not enforced: the run is in a container"]
    if limits.memory is None or MEMORY in find_enforced(limits):
        return []
    given = show_memory(limits.memory)
    return [f"target '{target.name}' allows {given} per node, but this is not enforced here: {why_not(MEMORY)}"]

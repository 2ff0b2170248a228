"""`POST /operations/{operation}`: every operation of the dispatcher that the SDK calls, with its permission.

An operation without a row here cannot be called over HTTP. One that must not be called is in `INTERNAL`, with the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.dispatcher.api.operations import list_operations
from trainmaster.dispatcher.runs.job_requests import OPERATIONS_OF_JOBS
from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Operation, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import Permission
from trainmaster.shared.records import (
    DatasetRecord,
    DatasetUse,
    DatastoreRecord,
    ModelQuery,
    ModelRecord,
    RunError,
    RunQuery,
    RunRecord,
    TargetRecord,
)
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord

_READ, _CONTRIBUTE, _OWN = Permission.READ, Permission.CONTRIBUTE, Permission.OWN

PERMISSIONS: Mapping[str, Permission] = {
    "datasets.delete": _OWN,
    "datasets.get": _READ,
    "datasets.list": _READ,
    "datasets.locate": _READ,
    "datasets.register": _CONTRIBUTE,
    "datasets.update": _CONTRIBUTE,
    "datasets.versions": _READ,
    "datastores.delete": _OWN,
    "datastores.describe": _READ,
    "datastores.fetch": _CONTRIBUTE,
    "datastores.files": _CONTRIBUTE,
    "datastores.get": _READ,
    "datastores.list": _READ,
    "datastores.put": _CONTRIBUTE,
    "datastores.read": _CONTRIBUTE,
    "datastores.send": _CONTRIBUTE,
    "datastores.set_default": _OWN,
    "datastores.write": _CONTRIBUTE,
    "environments.build": _CONTRIBUTE,
    "environments.build_of_run": _READ,
    "environments.builds": _READ,
    "environments.find_build": _READ,
    "environments.follow_build": _CONTRIBUTE,
    "environments.get": _READ,
    "environments.in_use": _READ,
    "environments.label": _CONTRIBUTE,
    "environments.list": _READ,
    "environments.prune": _OWN,
    "environments.put": _CONTRIBUTE,
    "environments.read_log": _READ,
    "environments.remove": _OWN,
    "environments.versions": _READ,
    "experiments.delete": _OWN,
    "experiments.ensure": _CONTRIBUTE,
    "experiments.list": _READ,
    "experiments.update": _CONTRIBUTE,
    "hello": _READ,
    "images.create": _CONTRIBUTE,
    "images.delete": _OWN,
    "images.follow": _READ,
    "images.get": _READ,
    "images.label": _CONTRIBUTE,
    "images.list": _READ,
    "images.locate": _READ,
    "images.wait": _READ,
    "models.convert": _CONTRIBUTE,
    "models.delete": _OWN,
    "models.get": _READ,
    "models.keep": _CONTRIBUTE,
    "models.lineage": _READ,
    "models.list": _READ,
    "models.locate": _READ,
    "models.refer": _CONTRIBUTE,
    "models.register": _CONTRIBUTE,
    "models.register_run_files": _CONTRIBUTE,
    "models.relabel": _CONTRIBUTE,
    "models.resolve": _READ,
    "models.update": _CONTRIBUTE,
    "notifications.delete": _OWN,
    "notifications.delete_own": _CONTRIBUTE,
    "notifications.list": _READ,
    "notifications.put": _OWN,
    "notifications.put_own": _CONTRIBUTE,
    "notifications.set_smtp": _OWN,
    "notifications.smtp": _READ,
    "notifications.test": _OWN,
    "notifications.test_own": _CONTRIBUTE,
    "packages.create": _CONTRIBUTE,
    "packages.files": _READ,
    "packages.get": _READ,
    "packages.log": _READ,
    "packages.note_build": _CONTRIBUTE,
    "packages.read": _READ,
    "quotas.list": _READ,
    "quotas.set": _OWN,
    "retention.apply": _OWN,
    "retention.delete": _OWN,
    "retention.list": _READ,
    "retention.plan": _READ,
    "retention.set": _OWN,
    "runs.archive": _CONTRIBUTE,
    "runs.cancel": _CONTRIBUTE,
    "runs.compare": _READ,
    "runs.clean": _OWN,
    "runs.create": _CONTRIBUTE,
    "runs.curves": _READ,
    "runs.delete": _OWN,
    "runs.differences": _READ,
    "runs.differing": _READ,
    "runs.environment_lock": _READ,
    "runs.explain": _READ,
    "runs.failed_attempts": _READ,
    "runs.fields": _READ,
    "runs.finish": _CONTRIBUTE,
    "runs.get": _READ,
    "runs.ingest": _READ,
    "runs.latest_use": _READ,
    "runs.lineage": _READ,
    "runs.list": _READ,
    "runs.metrics": _READ,
    "runs.metrics_by_rank": _READ,
    "runs.old": _READ,
    "runs.outlines": _READ,
    "runs.plan": _READ,
    "runs.properties.add": _CONTRIBUTE,
    "runs.renew": _CONTRIBUTE,
    "runs.rerun": _CONTRIBUTE,
    "runs.restore": _CONTRIBUTE,
    "runs.search": _READ,
    "runs.series": _READ,
    "runs.sparklines": _READ,
    "runs.submit": _CONTRIBUTE,
    "runs.tags.remove": _CONTRIBUTE,
    "runs.tags.set": _CONTRIBUTE,
    "runs.update": _CONTRIBUTE,
    "runs.values": _READ,
    "secrets.delete": _CONTRIBUTE,
    "secrets.fetch": _CONTRIBUTE,
    "secrets.list": _READ,
    "secrets.put": _CONTRIBUTE,
    "services.delete": _CONTRIBUTE,
    "services.deploy": _CONTRIBUTE,
    "services.description": _READ,
    "services.follow": _READ,
    "services.get": _READ,
    "services.keys": _CONTRIBUTE,
    "services.label": _CONTRIBUTE,
    "services.list": _READ,
    "services.logs": _READ,
    "services.read_logs": _READ,
    "services.score": _READ,
    "services.set_key": _CONTRIBUTE,
    "services.traffic": _READ,
    "services.update": _CONTRIBUTE,
    "services.usage": _READ,
    "services.wait": _READ,
    "status": _READ,
    "sweeps.changes": _READ,
    "sweeps.decisions": _READ,
    "sweeps.describe": _READ,
    "sweeps.importance": _READ,
    "sweeps.metrics": _READ,
    "sweeps.parameters": _READ,
    "sweeps.submit": _CONTRIBUTE,
    "sweeps.summaries": _READ,
    "sweeps.view": _READ,
    "targets.ask_hosts": _OWN,
    "targets.ask_kubernetes": _OWN,
    "targets.ask_slurm": _OWN,
    "targets.delete": _OWN,
    "targets.list": _READ,
    "targets.put": _OWN,
    "workspace.change": _OWN,
    "workspace.disk": _READ,
    "workspace.examine": _CONTRIBUTE,
    "workspace.explain_missing": _READ,
    "workspace.identity": _READ,
    "workspace.machine": _READ,
    "workspace.changes": _READ,
    "workspace.use": _READ,
}

ONLY_OF_JOBS = frozenset(
    {
        # They read or write a path of the server's machine within the folder of the job's run.
        "datastores.fetch",
        "datastores.send",
        "models.keep",
        # It gives the values of secrets. For users secrets are write-only.
        "secrets.fetch",
    }
)

INTERNAL: Mapping[str, str] = {
    "agent.notify": "Agents use the socket, and a caller who is not one could end a run.",
    "mlflow.answer": "MLflow's paths below /mlflow/WORKSPACE/ use it.",
    "mlflow.call": "Its permission depends on the path. MLflow's paths are below /mlflow/WORKSPACE/.",
    "mlflow.find_version": "MLflow's paths for artifacts use it. GET model-versions/get describes a version.",
    "mlflow.find_run": "MLflow's paths for artifacts use it. GET runs/get gives the address of a run's files.",
    "mlflow.list_files": "Jobs use it. GET artifacts/list of MLflow's API lists the same files.",
    "mlflow.read_file": "Jobs use it. GET mlflow-artifacts/artifacts/... of MLflow's API gives the same files.",
    "quotas.check_disk": "The server asks it before it accepts a file.",
    "quotas.files_changed": "The server sends it after it has accepted a file.",
    "secrets.get": "Secrets are write-only over HTTP. Only a job reads them: run.get_secret() in its script.",
    "secrets.masks": "It gives the values of secrets. The server masks logs itself.",
    "views.delete": "The route of a view checks whose it is.",
    "views.get": "It gives private views of others.",
    "views.list": "It gives private views of others.",
    "views.put": "The route of views says whose it is, and who may share one.",
}
"""Operations that cannot be called over HTTP, and why."""

_SECRET = frozenset(
    {
        "notifications.put",
        "notifications.put_own",
        "notifications.set_smtp",
        "secrets.put",
        "secrets.fetch",
        "services.set_key",
        "services.deploy",
        "services.score",
        "targets.ask_hosts",
    }
)
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "datasets.register": {"dataset": DatasetRecord},
    "datastores.put": {"record": DatastoreRecord},
    "images.create": {"image": ImageRecord},
    "models.list": {"query": ModelQuery},
    "models.refer": {"datasets": list[DatasetRecord], "uses": list[DatasetUse]},
    "models.register": {"model": ModelRecord, "datasets": list[DatasetRecord]},
    "models.update": {"datasets": list[DatasetRecord]},
    "runs.create": {"runs": list[RunRecord]},
    "runs.finish": {"error": RunError | None},
    "runs.list": {"query": RunQuery},
    "runs.submit": {"run": RunRecord},
    "services.deploy": {"service": ServiceRecord},
    "sweeps.submit": {"run": RunRecord},
    "targets.ask_hosts": {"target": TargetRecord},
    "targets.ask_kubernetes": {"target": TargetRecord},
    "targets.ask_slurm": {"target": TargetRecord},
    "targets.put": {"target": TargetRecord},
}
"""What operations read from arguments that are plain objects in their signatures."""

# Snapshots and models are uploaded in pieces; the longest of these are the specifications of sweeps.
_LARGEST = 64 * MEGABYTE


async def refuse_operation(call: Call, operation: str) -> None:
    """There is no such operation over HTTP: says why, if there is one."""
    reason = INTERNAL.get(operation)
    if reason is None:
        raise refuse(404, f"there is no operation '{operation[:100]}'", hint="GET /openapi.json lists all paths.")
    raise refuse(403, f"the operation '{operation}' cannot be called over HTTP", cause=reason)


def operation_rows() -> Iterator[Route]:
    """One route per operation, and one for all others."""
    others = f"{WORKSPACE}/operations/{{operation}}"
    summary = "Says why an operation cannot be called over HTTP"
    yield Route("POST", others, refuse_operation, _READ, summary, "operations", is_change=False, streams_body=True)
    declared = list_operations()
    for name, permission in PERMISSIONS.items():
        yield Route(
            "POST",
            f"{WORKSPACE}/operations/{name}",
            Operation(name, answer_key="result", is_exact=True),
            permission,
            _summarize(declared[name].__doc__, name),
            tag="operations",
            open_to_jobs=name in OPERATIONS_OF_JOBS,
            only_for_jobs=name in ONLY_OF_JOBS,
            largest_body=_LARGEST,
            is_change=permission is not _READ,
            secret_arguments=name in _SECRET,
            types=_TYPES.get(name, {}),
        )


def _summarize(text: str | None, name: str) -> str:
    """The first sentence of a docstring."""
    first = " ".join((text or name).split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")

"""The nouns of a workspace as REST routes. Most rows call one operation of the dispatcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from trainmaster.server.api.table import MEGABYTE, WORKSPACE, Operation, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import Permission
from trainmaster.shared.records import (
    ACTIVE,
    PRIORITY_PROPERTY,
    DatasetRecord,
    DatastoreRecord,
    ExperimentRecord,
    ModelQuery,
    ModelRecord,
    RunRecord,
    Status,
    TargetRecord,
)
from trainmaster.shared.service_spec import ServiceRecord
from trainmaster.tuning.view import SweepSummary

_READ, _CONTRIBUTE, _OWN = Permission.READ, Permission.CONTRIBUTE, Permission.OWN
_LARGE = 64 * MEGABYTE


def noun_rows() -> Iterator[Route]:
    """The routes of all nouns."""
    yield from _experiment_rows()
    yield from _run_rows()
    yield from _environment_rows()
    yield from _target_rows()
    yield from _sweep_rows()
    yield from _model_rows()
    yield from _service_rows()
    yield from _datastore_rows()
    yield from _dataset_rows()
    yield from _quota_rows()
    yield from _secret_rows()


def _experiment_rows() -> Iterator[Route]:
    tag, top = "experiments", f"{WORKSPACE}/experiments"
    one = f"{top}/{{name}}"
    yield Route("GET", top, Operation("experiments.list", tag), _READ, "Experiments, by name", tag)
    yield Route("POST", top, Operation("experiments.ensure"), _CONTRIBUTE, "Create an experiment, or find it", tag)
    yield Route("GET", one, get_experiment, _READ, "One experiment", tag, answer=ExperimentRecord)
    yield Route("PATCH", one, Operation("experiments.update"), _CONTRIBUTE, "Change tags, or archive", tag)
    yield Route("DELETE", one, Operation("experiments.delete"), _OWN, "Delete an experiment without runs", tag)


async def get_experiment(call: Call, name: str) -> Any:
    """One experiment."""
    found = await call.ask("experiments.list", name=name, view="all")
    if not found:
        raise refuse(404, f"there is no experiment '{name[:300]}' in this workspace")
    return found[0]


def _run_rows() -> Iterator[Route]:
    tag, top = "runs", f"{WORKSPACE}/runs"
    one = f"{top}/{{run_id}}"
    run = {"run": RunRecord}
    yield Route("GET", top, Operation("runs.search"), _READ, "Search runs", tag)
    yield Route("POST", top, Operation("runs.submit"), _CONTRIBUTE, "Submit a run", tag, types=run, largest_body=_LARGE)
    yield Route("GET", one, Operation("runs.get"), _READ, "One run", tag)
    yield Route("PATCH", one, Operation("runs.update"), _CONTRIBUTE, "Change name and description", tag)
    yield Route("DELETE", one, delete_run, _OWN, "Delete a run that has ended, with its files", tag)
    yield Route("POST", f"{one}/cancel", Operation("runs.cancel"), _CONTRIBUTE, "End a run", tag)
    yield Route("POST", f"{one}/finish", Operation("runs.finish"), _CONTRIBUTE, "End a run that has no job", tag)
    archived, restored = Operation("runs.archive", "run_ids"), Operation("runs.restore", "run_ids")
    yield Route("POST", f"{WORKSPACE}/archived-runs", archived, _CONTRIBUTE, "Leave ended runs out of lists", tag)
    yield Route("POST", f"{WORKSPACE}/restored-runs", restored, _CONTRIBUTE, "Show archived runs in lists again", tag)
    yield Route(
        "POST", f"{WORKSPACE}/deleted-runs", delete_runs, _OWN, "Delete runs that have ended, with their files", tag
    )
    yield Route("PATCH", f"{one}/tags", Operation("runs.tags.set"), _CONTRIBUTE, "Set tags", tag)
    yield Route("DELETE", f"{one}/tags", Operation("runs.tags.remove"), _CONTRIBUTE, "Remove tags", tag)
    yield Route("PATCH", f"{one}/properties", Operation("runs.properties.add"), _CONTRIBUTE, "Add properties", tag)
    yield Route("GET", f"{one}/children", list_children, _READ, "Child runs, newest first", tag)
    metrics = f"{one}/metrics"
    yield Route("GET", metrics, Operation("runs.series", "metrics"), _READ, "Metrics with their values", tag)
    compare = Operation("runs.compare", "metrics")
    yield Route("POST", f"{WORKSPACE}/metrics", compare, _READ, "One metric of many runs", tag, is_change=False)
    curves, lines = Operation("runs.curves", "curves"), Operation("runs.sparklines", "sparklines")
    several = "Several metrics of several runs, for charts"
    yield Route("POST", f"{WORKSPACE}/curves", curves, _READ, several, tag, is_change=False)
    yield Route(
        "POST", f"{WORKSPACE}/sparklines", lines, _READ, "A few points of metrics of runs", tag, is_change=False
    )
    outlines = Operation("runs.outlines", "runs")
    yield Route(
        "POST",
        f"{WORKSPACE}/run-outlines",
        outlines,
        _READ,
        "Several runs with their last values",
        tag,
        is_change=False,
    )
    fields, values = Operation("runs.fields"), Operation("runs.values", "values")
    yield Route("GET", f"{WORKSPACE}/run-fields", fields, _READ, "Names of arguments, metrics, tags, properties", tag)
    yield Route("GET", f"{WORKSPACE}/run-fields/values", values, _READ, "Values of a field, for completion", tag)
    differing = Operation("runs.differing")
    yield Route(
        "POST", f"{WORKSPACE}/run-fields/differing", differing, _READ, "Names that differ in runs", tag, is_change=False
    )
    yield Route("GET", f"{one}/metric-summaries", Operation("runs.metrics", "metrics"), _READ, "Last values", tag)
    yield Route("GET", f"{one}/metrics-by-rank", Operation("runs.metrics_by_rank", "metrics"), _READ, "By rank", tag)


async def delete_run(call: Call, run_id: str, dry_run: bool = False) -> Removal:
    """Delete a run."""
    return await delete_runs(call, [run_id], dry_run)


async def delete_runs(call: Call, run_ids: list[str], dry_run: bool = False) -> Removal:
    """Delete several runs."""
    if len(run_ids) > 1000:
        raise refuse(400, f"at most 1000 runs can be deleted at once, not {len(run_ids)}")
    found = await call.ask("runs.delete", run_ids=run_ids, dry_run=dry_run)
    return Removal(found["run_ids"], found["children"], found["bytes"], found["left"])


@dataclass(frozen=True)
class Removal:
    """What was deleted, or would be."""

    run_ids: tuple[str, ...]
    children: int
    bytes: int
    left: tuple[str, ...]
    """What could not be removed, each with the reason."""


@dataclass(frozen=True)
class Runs:
    """A page of runs."""

    runs: tuple[RunRecord, ...]
    next: int | None
    """Give it as `before` for the next page; null if there is none."""


async def list_children(
    call: Call, run_id: str, recursive: bool = False, limit: int = 100, before: int | None = None
) -> Runs:
    """Child runs."""
    await call.ask("runs.get", run_id=run_id)
    return Runs(*await _find_runs(call, limit, before, parent_id=run_id, recursive=recursive, include_children=True))


async def _find_runs(call: Call, limit: int, before: int | None, **query: Any) -> tuple[Any, int | None]:
    """A page of runs as plain data, and where the next one begins."""
    if not 1 <= limit <= 1000:
        raise refuse(400, f"limit must be between 1 and 1000, not {limit}")
    found = await call.ask("runs.list", query={**query, "limit": limit, "before_seq": before})
    return found, found[-1]["seq"] if len(found) == limit else None


def _environment_rows() -> Iterator[Route]:
    tag, top = "environments", f"{WORKSPACE}/environments"
    one = f"{top}/{{name}}"
    label = f"{one}/versions/{{version}}/labels"
    yield Route("GET", top, Operation("environments.list", tag), _READ, "Registered environments", tag)
    yield Route("GET", one, Operation("environments.get"), _READ, "One version of an environment", tag)
    versions = Operation("environments.versions", "versions")
    yield Route("GET", f"{one}/versions", versions, _READ, "All versions of an environment, newest first", tag)
    top = f"{WORKSPACE}/environment-builds"
    yield Route("GET", top, Operation("environments.builds", "builds"), _READ, "Builds, the last used first", tag)
    yield Route("GET", f"{top}/{{name}}/log", Operation("environments.read_log"), _READ, "The log of a build", tag)
    yield Route("PUT", one, Operation("environments.put"), _CONTRIBUTE, "Register a version", tag)
    yield Route("PUT", label, Operation("environments.label"), _CONTRIBUTE, "Set the labels of a version", tag)


def _target_rows() -> Iterator[Route]:
    tag, top = "targets", f"{WORKSPACE}/targets"
    one = f"{top}/{{name}}"
    yield Route("GET", top, Operation("targets.list", tag), _READ, "Compute targets", tag)
    yield Route("GET", one, get_target, _READ, "One compute target", tag, answer=TargetRecord)
    yield Route("PUT", one, put_target, _OWN, "Create or change a compute target", tag, answer=TargetRecord)
    yield Route("DELETE", one, Operation("targets.delete"), _OWN, "Delete a compute target", tag)
    yield Route("GET", f"{WORKSPACE}/machine-use", Operation("workspace.use"), _READ, "How busy its machine is", tag)
    yield Route("GET", f"{WORKSPACE}/queue", list_queue, _READ, "Runs that have not ended, and what they wait for", tag)


async def get_target(call: Call, name: str) -> Any:
    """One compute target."""
    for target in await call.ask("targets.list"):
        if target["name"] == name:
            return target
    raise refuse(404, f"there is no compute target '{name[:300]}' in this workspace")


async def put_target(
    call: Call,
    name: str,
    engine: str,
    nodes: int,
    cpus_per_node: int,
    gpus_per_node: int,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Create or change a target."""
    target = TargetRecord(name, engine, nodes, cpus_per_node, gpus_per_node, options or {})
    return await call.ask("targets.put", target=asdict(target))


@dataclass(frozen=True)
class QueueEntry:
    """A run that has not ended."""

    run_id: str
    experiment: str
    status: Status
    target: str
    nodes: tuple[int, ...]
    waiting_for: str
    submitted_by: str
    created_at: float
    display_name: str = ""
    started_at: float | None = None
    parent_id: str | None = None
    priority: int = 0


@dataclass(frozen=True)
class Queue:
    """The runs that have not ended, oldest first."""

    queue: tuple[QueueEntry, ...]


async def list_queue(call: Call, target: str | None = None) -> Queue:
    """Active runs, oldest first."""
    query = {"statuses": sorted(ACTIVE), "include_children": True, "target": target, "limit": 1000}
    found = await call.ask("runs.list", query=query)
    return Queue(tuple(_queue_entry(run) for run in reversed(found)))


def _queue_entry(run: Mapping[str, Any]) -> QueueEntry:
    names = [each.name for each in fields(QueueEntry) if each.name not in ("run_id", "priority")]
    priority = int(run["properties"].get(PRIORITY_PROPERTY, 0))
    return QueueEntry(run_id=run["id"], priority=priority, **{name: run[name] for name in names})


@dataclass(frozen=True)
class Sweeps:
    """A page of sweeps, newest first."""

    sweeps: tuple[SweepSummary, ...]
    next: int | None
    """Give it as `before` for the next page; null if there is none."""


def _sweep_rows() -> Iterator[Route]:
    tag, top = "sweeps", f"{WORKSPACE}/sweeps"
    one = f"{top}/{{run_id}}"
    run = {"run": RunRecord}
    yield Route("GET", top, list_sweeps, _READ, "Sweeps, newest first", tag)
    yield Route(
        "POST", top, Operation("sweeps.submit"), _CONTRIBUTE, "Submit a sweep", tag, types=run, largest_body=_LARGE
    )
    yield Route("GET", one, Operation("sweeps.view"), _READ, "A sweep and its trials", tag)
    yield Route("GET", f"{one}/changes", Operation("sweeps.changes"), _READ, "What changed since an answer", tag)
    yield Route("GET", f"{one}/importance", Operation("sweeps.importance"), _READ, "How much parameters matter", tag)
    yield Route("GET", f"{one}/decisions", Operation("sweeps.decisions"), _READ, "What the policy decided", tag)
    yield Route("GET", f"{one}/specification", Operation("sweeps.describe"), _READ, "As it was submitted", tag)
    yield Route(
        "GET", f"{one}/parameters", Operation("sweeps.parameters", "parameters"), _READ, "Parameters of trials", tag
    )
    yield Route("GET", f"{one}/metrics", Operation("sweeps.metrics", "metrics"), _READ, "Metrics of trials", tag)


async def list_sweeps(call: Call, experiment: str | None = None, limit: int = 100, before: int | None = None) -> Sweeps:
    """Sweeps, newest first."""
    query = {"experiment": experiment, "type": "hyperdrive", "include_children": True}
    runs, further = await _find_runs(call, limit, before, **query)
    return Sweeps(await call.ask("sweeps.summaries", run_ids=[run["id"] for run in runs]), further)


def _model_rows() -> Iterator[Route]:
    tag, top = "models", f"{WORKSPACE}/models"
    one = f"{top}/{{name}}"
    version = f"{one}/versions/{{version}}"
    listed = Operation("models.list", tag, by_name="query")
    yield Route("GET", top, listed, _READ, "Registered models, newest first", tag, types={"query": ModelQuery})
    yield Route(
        "POST",
        top,
        Operation("models.register"),
        _CONTRIBUTE,
        "Register a model whose files were uploaded",
        tag,
        types={"model": ModelRecord},
    )
    yield Route("GET", one, Operation("models.get"), _READ, "A model; the newest version if none is given", tag)
    yield Route("GET", version, Operation("models.get"), _READ, "One version of a model", tag)
    yield Route("PATCH", version, Operation("models.relabel"), _CONTRIBUTE, "Change tags and properties", tag)
    yield Route("DELETE", version, Operation("models.delete"), _OWN, "Delete one version of a model", tag)


def _service_rows() -> Iterator[Route]:
    tag, top = "services", f"{WORKSPACE}/services"
    one = f"{top}/{{name}}"
    deploy = Operation("services.deploy")
    yield Route("GET", top, Operation("services.list", tag), _READ, "Scoring services", tag)
    yield Route(
        "POST",
        top,
        deploy,
        _CONTRIBUTE,
        "Deploy a service",
        tag,
        types={"service": ServiceRecord},
        secret_arguments=True,
    )
    yield Route("GET", one, Operation("services.get"), _READ, "One service", tag)
    yield Route("PATCH", one, Operation("services.label"), _CONTRIBUTE, "Change tags and properties", tag)
    yield Route("DELETE", one, Operation("services.delete", "deleted"), _CONTRIBUTE, "Delete a service", tag)
    yield Route("GET", f"{one}/description", Operation("services.description"), _READ, "Its OpenAPI document", tag)
    yield Route("GET", f"{one}/traffic", Operation("services.traffic"), _READ, "Requests, latency, replicas", tag)
    yield Route("GET", f"{one}/keys", Operation("services.keys"), _CONTRIBUTE, "The keys of a service", tag)
    yield Route(
        "PUT",
        f"{one}/keys/{{which}}",
        Operation("services.set_key"),
        _CONTRIBUTE,
        "Replace a key",
        tag,
        secret_arguments=True,
    )


def _datastore_rows() -> Iterator[Route]:
    tag, top = "datastores", f"{WORKSPACE}/datastores"
    one = f"{top}/{{name}}"
    yield Route("GET", top, Operation("datastores.list", tag), _READ, "Datastores, without their keys", tag)
    yield Route("GET", one, get_datastore, _READ, "One datastore, without its keys", tag, answer=DatastoreRecord)
    yield Route(
        "PUT",
        one,
        put_datastore,
        _CONTRIBUTE,
        "Register a datastore",
        tag,
        secret_arguments=True,
        answer=DatastoreRecord,
    )
    yield Route("DELETE", one, Operation("datastores.delete"), _OWN, "Delete a datastore; the data stay", tag)
    yield Route("PUT", f"{WORKSPACE}/default-datastore", Operation("datastores.set_default"), _OWN, "Set it", tag)


async def get_datastore(call: Call, name: str) -> Any:
    """One datastore."""
    found = await call.ask("datastores.get", name=name)
    if found is None:
        raise refuse(404, f"there is no datastore '{name[:300]}' in this workspace")
    return found


async def put_datastore(
    call: Call, name: str, url: str, options: Mapping[str, Any] | None = None, overwrite: bool = False
) -> Any:
    """Register a datastore."""
    record = asdict(DatastoreRecord(name, url, options or {}))
    return await call.ask("datastores.put", record=record, overwrite=overwrite)


def _dataset_rows() -> Iterator[Route]:
    tag, top = "datasets", f"{WORKSPACE}/datasets"
    one = f"{top}/{{name}}"
    register = Operation("datasets.register")
    yield Route("GET", top, Operation("datasets.list", tag), _READ, "Registered datasets", tag)
    yield Route("POST", top, register, _CONTRIBUTE, "Register a dataset", tag, types={"dataset": DatasetRecord})
    yield Route("GET", one, get_dataset, _READ, "A dataset, by default the newest version", tag, answer=DatasetRecord)
    versions = Operation("datasets.versions", "versions")
    yield Route("GET", f"{one}/versions", versions, _READ, "All versions of a dataset, newest first", tag)
    yield Route("PATCH", f"{WORKSPACE}/dataset-ids/{{id}}", Operation("datasets.update"), _CONTRIBUTE, "Change", tag)
    yield Route("DELETE", one, Operation("datasets.delete"), _OWN, "Delete all versions of a name", tag)


async def get_dataset(call: Call, name: str, version: int | None = None) -> Any:
    """A dataset."""
    return await call.ask("datasets.get", name=name, version=version)


def _quota_rows() -> Iterator[Route]:
    tag, top = "quotas", f"{WORKSPACE}/quotas"
    yield Route("GET", top, Operation("quotas.list", tag), _READ, "Quotas, and what their owners use now", tag)
    yield Route("PATCH", top, Operation("quotas.set", tag), _OWN, "Set limits of a user or of the workspace", tag)


def _secret_rows() -> Iterator[Route]:
    tag, top = "secrets", f"{WORKSPACE}/secrets"
    one = f"{top}/{{name}}"
    yield Route("GET", top, Operation("secrets.list", tag), _READ, "The names of secrets, never their values", tag)
    yield Route("PUT", one, put_secret, _CONTRIBUTE, "Keep a secret", tag, secret_arguments=True)
    yield Route("DELETE", one, delete_secret, _CONTRIBUTE, "Delete a secret", tag)


async def put_secret(call: Call, name: str, value: str, content_type: str = "") -> None:
    """Keep a secret."""
    await call.ask("secrets.put", secrets={name: {"value": value, "content_type": content_type}})


async def delete_secret(call: Call, name: str) -> None:
    """Delete a secret."""
    await call.ask("secrets.delete", names=[name])

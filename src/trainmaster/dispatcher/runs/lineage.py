"""Where a run or a model comes from, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.dispatcher.runs.datasets import output_id
from trainmaster.dispatcher.runs.reruns import ORIGIN, RESUMED
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.logged_models import STATES, LoggedModel
from trainmaster.dispatcher.store.run_inputs import CONTEXT, DatasetInput, RunLinks
from trainmaster.environments.prefix import digest
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.records import DatasetRecord, ModelRecord, RunRecord, Status
from trainmaster.shared.service_spec import ServiceRecord, ServiceState

_MOST = 1000
"""Models and runs that a lineage lists."""


@dataclass(frozen=True)
class DatasetLink:
    """A dataset that a run reads or writes, or that a model refers to."""

    role: str
    """The name of the input or output in the run; the purpose in a model, such as training."""
    id: str = ""
    name: str = ""
    """Empty for one that is not registered."""
    version: int | None = None


@dataclass(frozen=True)
class DataLink:
    """A path of a datastore that a run uses."""

    name: str
    datastore: str
    path: str
    mode: str


@dataclass(frozen=True)
class RunLink:
    """A run."""

    run_id: str
    display_name: str
    experiment: str
    status: Status
    type: str


@dataclass(frozen=True)
class ModelLink:
    """A version of a registered model."""

    name: str
    version: int
    framework: str
    created_at: float
    services: tuple[str, ...] = ()
    """The services that use it."""


@dataclass(frozen=True)
class InputLink:
    """Data that a client of MLflow says a run has read."""

    name: str
    digest: str
    context: str
    """What it was for, such as training."""
    source_type: str
    source: str


@dataclass(frozen=True)
class LoggedModelLink:
    """A model that a client of MLflow has logged, which need not be registered."""

    model_id: str
    name: str
    status: str
    created_at: float


@dataclass(frozen=True)
class RunLineage:
    """Where a run comes from, and what came of it."""

    run_id: str
    snapshot_id: str
    environment: str
    """The digest of its environment; empty if it has none."""
    environment_name: str
    environment_version: str
    parent: RunLink | None = None
    origin: RunLink | None = None
    """The run that this one runs again."""
    origin_id: str = ""
    """Its id, even if that run was deleted."""
    is_resumed: bool = False
    """Whether this run continues its origin."""
    reruns: tuple[RunLink, ...] = ()
    """The runs that run this one again, newest first."""
    resumed_by: tuple[RunLink, ...] = ()
    """The runs that continue this one, newest first."""
    children: int = 0
    datasets_in: tuple[DatasetLink, ...] = ()
    datasets_out: tuple[DatasetLink, ...] = ()
    data: tuple[DataLink, ...] = ()
    models: tuple[ModelLink, ...] = ()
    """Registered from its files, newest first."""
    inputs: tuple[InputLink, ...] = ()
    """Data that MLflow knows of."""
    logged_models_in: tuple[str, ...] = ()
    """The ids of models that it has read."""
    logged_models: tuple[LoggedModelLink, ...] = ()
    """Models that it has logged, newest first."""


@dataclass(frozen=True)
class ModelLineage:
    """Where a model comes from, and what uses it."""

    name: str
    version: int
    run: RunLink | None = None
    """The run whose files it is made of, if it still exists."""
    run_id: str = ""
    experiment: str = ""
    snapshot_id: str = ""
    environment: str = ""
    datasets: tuple[DatasetLink, ...] = ()
    data: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    """All versions of its name, newest first."""


def trace_run(store: Store, run: RunRecord) -> RunLineage:
    """The lineage of a run."""
    spec = load_spec(run.spec) if run.spec else None
    origin_id = run.properties.get(ORIGIN, "")
    again = store.lineage.list_reruns(run.id, _MOST)
    links = store.run_inputs.read([run.seq]).get(run.seq, RunLinks())
    return RunLineage(
        run.id,
        run.snapshot_id,
        _digest_of(spec),
        spec.environment_name if spec else "",
        spec.environment_version if spec else "",
        parent=_find_run(store, run.parent_id),
        origin=_find_run(store, origin_id),
        origin_id=origin_id,
        is_resumed=RESUMED in run.properties,
        reruns=tuple(_link(each) for each in again if RESUMED not in each.properties),
        resumed_by=tuple(_link(each) for each in again if RESUMED in each.properties),
        children=store.lineage.count_children(run.id),
        datasets_in=_list_inputs(spec),
        datasets_out=_list_outputs(store, run, spec),
        data=tuple(DataLink(each.name, each.datastore, each.path, each.mode) for each in spec.data) if spec else (),
        models=tuple(_link_models(store, store.models.find(run_id=run.id)[:_MOST])),
        inputs=tuple(_link_input(each) for each in links.datasets[:_MOST]),
        logged_models_in=links.models_in[:_MOST],
        logged_models=tuple(_link_logged_model(each) for each in store.logged_models.list_made(run.id, _MOST)),
    )


def trace_model(store: Store, model: ModelRecord) -> ModelLineage:
    """The lineage of a model."""
    inputs = [
        DatasetLink(str(each.get("input", "")), str(each.get("id", "")), str(each.get("name", "")), each.get("version"))
        for each in model.lineage.get("datasets", ())
    ]
    named = [_link_dataset(use.purpose, store.datasets.get(use.dataset_id), use.dataset_id) for use in model.datasets]
    return ModelLineage(
        model.name,
        model.version,
        run=_find_run(store, model.run_id),
        run_id=model.run_id,
        experiment=model.experiment,
        snapshot_id=str(model.lineage.get("snapshot_id", "")),
        environment=str(model.lineage.get("environment", "")),
        datasets=(*inputs, *named),
        data=tuple(map(str, model.lineage.get("data", ()))),
        services=_users_of(store.services.list_all(), model.name, model.version),
        versions=tuple(each.version for each in store.models.find(name=model.name)),
    )


def _digest_of(spec: JobSpec | None) -> str:
    try:
        return digest(spec.environment) if spec and not spec.environment.user_managed else ""
    except TrainmasterError:
        # It cannot be built. The run may never have needed it.
        return ""


def _find_run(store: Store, run_id: str | None) -> RunLink | None:
    found = store.runs.get(run_id) if run_id else None
    return _link(found) if found else None


def _link(run: RunRecord) -> RunLink:
    return RunLink(run.id, run.display_name, run.experiment, run.status, run.type)


def _list_inputs(spec: JobSpec | None) -> tuple[DatasetLink, ...]:
    inputs = spec.dataset_inputs if spec else ()
    return tuple(DatasetLink(each.name, each.dataset_id, each.dataset_name, each.dataset_version) for each in inputs)


def _list_outputs(store: Store, run: RunRecord, spec: JobSpec | None) -> tuple[DatasetLink, ...]:
    found = []
    for output in spec.dataset_outputs if spec else ():
        dataset_id = output_id(run.id, output.name)
        found.append(_link_dataset(output.name, store.datasets.get(dataset_id), ""))
    return tuple(found)


def _link_dataset(role: str, record: DatasetRecord | None, dataset_id: str) -> DatasetLink:
    if record is None:
        return DatasetLink(role, dataset_id)
    return DatasetLink(role, record.id, record.name, record.version)


def _link_input(given: DatasetInput) -> InputLink:
    dataset = given.dataset
    context = given.tags.get(CONTEXT, "")
    return InputLink(dataset.name, dataset.digest, context, dataset.source_type, dataset.source)


def _link_logged_model(model: LoggedModel) -> LoggedModelLink:
    return LoggedModelLink(model.id, model.name, STATES[model.status], model.created_ms / 1000)


def _link_models(store: Store, models: list[ModelRecord]) -> list[ModelLink]:
    services = store.services.list_all() if models else []
    return [
        ModelLink(
            each.name, each.version, each.framework, each.created_at, _users_of(services, each.name, each.version)
        )
        for each in models
    ]


def _users_of(services: list[ServiceRecord], name: str, version: int) -> tuple[str, ...]:
    wanted = f"{name}:{version}"
    return tuple(
        each.name
        for each in services
        if each.state is not ServiceState.DELETING
        and any(wanted in spec.models for spec in (each.spec, *([each.served] if each.served else [])))
    )

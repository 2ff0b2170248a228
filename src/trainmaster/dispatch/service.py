"""The operations a dispatcher offers to clients. Each may be repeated without harm; see `trainmaster.client`."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from trainmaster import __version__
from trainmaster.dispatch import environments
from trainmaster.dispatch.capacity import check_fits
from trainmaster.dispatch.credentials import opened, sealed
from trainmaster.dispatch.datasets import Datasets, save_inputs
from trainmaster.dispatch.models import Models
from trainmaster.dispatch.sweeps import Sweeps
from trainmaster.dispatch.throw_away import target_for
from trainmaster.dispatch.yard import Yard
from trainmaster.environments.frameworks import on_cpu
from trainmaster.environments.prefix import check_buildable
from trainmaster.errors import (
    AzureMLException,
    ComputeTargetException,
    DatastoreException,
    RunNotFoundException,
    UserErrorException,
    WorkspaceException,
)
from trainmaster.job import THROW_AWAY, EnvironmentSpec, JobSpec, dump_spec, load_spec, stores_of
from trainmaster.plain import PlainDataError, from_plain, to_plain
from trainmaster.records import (
    TERMINAL,
    DatastoreRecord,
    EnvironmentRecord,
    RunError,
    RunQuery,
    RunRecord,
    Status,
    TargetRecord,
)
from trainmaster.vm_sizes import VmSizes, read_sizes

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")

Operation = Callable[..., Any]


class Service:
    """Every operation by its name."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._store = yard.store
        self._datasets = Datasets(yard.store)
        self._models = Models(yard)
        self._models.users.append(yard.services.users_of_model)
        self._sweeps = Sweeps(yard, lambda record: self._accepted(_checked(record)))
        yard.letters.answer_with(self.call, answer_error)
        self._operations: Mapping[str, Operation] = {
            "hello": self.hello,
            "status": self.status,
            "agent.notify": self.agent_notify,
            "experiments.ensure": self.ensure_experiment,
            "experiments.list": self.list_experiments,
            "experiments.update": self.update_experiment,
            "experiments.delete": self.delete_experiment,
            "runs.submit": self.submit,
            "runs.create": self.create_runs,
            "runs.get": self.get_run,
            "runs.list": self.list_runs,
            "runs.cancel": self.cancel,
            "runs.finish": self.finish,
            "runs.ingest": self.ingest,
            "runs.tags.set": self.set_tags,
            "runs.tags.remove": self.remove_tags,
            "runs.properties.add": self.add_properties,
            "runs.update": self.update_run,
            "runs.metrics": self.metrics,
            "runs.metrics_by_rank": self.metrics_by_rank,
            "runs.series": self.series,
            "environments.build": self.build_environment,
            "environments.in_use": self.environments_in_use,
            "environments.remove": self.remove_environments,
            "targets.list": self.list_targets,
            "targets.put": self.put_target,
            "targets.delete": self.delete_target,
            "environments.put": self.put_environment,
            "environments.get": self.get_environment,
            "environments.list": self.list_environments,
            "environments.label": self.label_environment,
            "secrets.put": self._yard.secrets.put,
            "secrets.get": self._yard.secrets.get,
            "secrets.delete": self._yard.secrets.delete,
            "secrets.list": self._yard.secrets.names,
            "secrets.fetch": self.fetch_secrets,
            "secrets.masks": self.secret_masks,
            "datastores.list": self.list_datastores,
            "datastores.get": self.get_datastore,
            "datastores.put": self.put_datastore,
            "datastores.delete": self.delete_datastore,
            "datastores.set_default": self.set_default_datastore,
            "datasets.register": self._datasets.register,
            "datasets.get": self._datasets.get,
            "datasets.list": self._datasets.list,
            "datasets.update": self._datasets.update,
            "datasets.delete": self._datasets.delete,
            "datasets.locate": self._datasets.locate,
            **yard.services.operations,
            **self._models.operations(),
            "sweeps.submit": self._sweeps.submit,
            "sweeps.describe": self._sweeps.describe,
            "sweeps.view": self._sweeps.view,
            "sweeps.changes": self._sweeps.changes,
            "sweeps.parameters": self._sweeps.parameters,
            "sweeps.metrics": self._sweeps.metrics,
        }

    async def call(self, op: str, args: Mapping[str, Any]) -> Any:
        """The plain result of one operation."""
        operation = self._operations.get(op)
        if operation is None:
            raise UserErrorException(f"there is no operation {op!r}")
        try:
            result = operation(**args)
            if isinstance(result, Awaitable):
                result = await result
        except PlainDataError as error:
            raise UserErrorException(f"{op}: the request cannot be used", cause=str(error)) from None
        return to_plain(result)

    # The dispatcher itself

    def hello(self, version: str) -> dict[str, Any]:
        return {"version": __version__, "pid": os.getpid()}

    def status(self) -> dict[str, Any]:
        services = [record.name for record in self._yard.services.list()]
        return {"version": __version__, "pid": os.getpid(), "active": self._store.active_runs(), "services": services}

    def agent_notify(self, run_id: str, node: int, event: str) -> None:
        self._yard.heard_from_agent(run_id, event)

    # Experiments

    def ensure_experiment(self, name: str) -> Any:
        return self._store.ensure_experiment(name, at=time.time())

    def list_experiments(self, **filters: Any) -> Any:
        return self._store.list_experiments(**filters)

    def update_experiment(self, name: str, **changes: Any) -> Any:
        return self._store.update_experiment(name, **changes)

    def delete_experiment(self, name: str) -> None:
        self._store.delete_experiment(name)

    # Runs

    def submit(self, run: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> RunRecord:
        """Queues a run durably; the same run again is the same run."""
        record = _checked(from_plain(RunRecord, run))
        known = self._store.get_run(record.id)
        if known is None:
            known = self._store.insert_run(self._accepted(record))
        self._yard.take(known, sources)
        return known

    def _accepted(self, record: RunRecord) -> RunRecord:
        """A new run as it will be kept; refused if it can never run."""
        spec = load_spec(record.spec)
        target = self._target_of(record, spec)
        if not target.gpus_per_node:
            spec = _without_gpus(spec)
        self._check_can_run(spec, target)
        save_inputs(spec, self._store)
        warnings = (*record.warnings, *_doubts(spec, target))
        return replace(record, status=Status.NOT_STARTED, spec=dump_spec(spec), warnings=warnings, target=target.name)

    def _check_can_run(self, spec: JobSpec, target: TargetRecord) -> None:
        check_buildable(spec.environment)
        check_fits(spec, target)
        # Refuses one that is not installed.
        self._yard.engine_named(target.engine)
        if spec.use_gpu and not target.gpus_per_node and self._sizes().strict:
            raise ComputeTargetException(
                f"use_gpu=True, but target '{target.name}' has no GPUs, and the table of sizes is strict",
                hint=f'Say "strict": false in {self._yard.folder.vm_sizes} to run on the CPU.',
            )
        stores = {store.name for store in self._store.list_datastores()}
        for name in stores_of(spec):
            if name not in stores:
                raise DatastoreException(
                    f"there is no datastore '{name}' in this workspace",
                    hint=f"Known: {', '.join(sorted(stores)) or 'none'}. Register it with Datastore.register(...).",
                )

    def _target_of(self, record: RunRecord, spec: JobSpec) -> TargetRecord:
        """Where a run is to run: a target of the workspace, or a cluster of its own."""
        own = target_for(record.id, spec, self._sizes()) if record.target == THROW_AWAY else None
        return own or self._target(record.target)

    def _sizes(self) -> VmSizes:
        return read_sizes(self._yard.folder)

    def create_runs(self, runs: list[Mapping[str, Any]]) -> list[RunRecord]:
        """Interactive runs and children: no job stands behind them."""
        records = [_checked(from_plain(RunRecord, run)) for run in runs]
        for record in records:
            self._yard.folder.run(record.id).journals.mkdir(parents=True, exist_ok=True)
            self._yard.folder.run(record.id).files.mkdir(parents=True, exist_ok=True)
        created = self._store.insert_runs(records)
        for record in created:
            self._yard.end_with_owner(record)
        return created

    def get_run(self, run_id: str) -> RunRecord:
        return self._yard.described(self._run(run_id))

    async def list_runs(self, query: Mapping[str, Any]) -> list[RunRecord]:
        found = await asyncio.to_thread(self._store.list_runs, from_plain(RunQuery, query))
        return [self._yard.described(record) for record in found]

    def cancel(self, run_id: str) -> RunRecord:
        """Asks a run to end; one without a job ends at once."""
        record = self._run(run_id)
        if record.status in TERMINAL:
            return record
        if not record.spec:
            return self._yard.move(run_id, Status.CANCELED) or self._run(run_id)
        self._yard.move(run_id, Status.CANCEL_REQUESTED)
        self._yard.cancel(run_id)
        return self._run(run_id)

    async def finish(self, run_id: str, status: str, error: Mapping[str, Any] | None = None) -> RunRecord:
        """Ends a run that has no job; what it logged is brought in first."""
        record = self._run(run_id)
        if record.spec:
            raise UserErrorException(
                f"run {run_id} is a submitted run: its state follows from its script's exit code",
                hint="Use cancel() to end it.",
            )
        await self._yard.bring_in(run_id)
        cause = from_plain(RunError, error) if error else None
        return self._yard.move(run_id, Status(status), error=cause) or self._run(run_id)

    async def ingest(self, run_id: str) -> None:
        self._run(run_id)
        await self._yard.bring_in(run_id)

    def set_tags(self, run_id: str, tags: Mapping[str, Any]) -> None:
        self._run(run_id)
        self._store.set_tags(run_id, tags)

    def remove_tags(self, run_id: str, names: list[str]) -> None:
        self._run(run_id)
        self._store.remove_tags(run_id, names)

    def add_properties(self, run_id: str, properties: Mapping[str, str]) -> None:
        self._run(run_id)
        self._store.add_properties(run_id, properties)

    def update_run(self, run_id: str, **changes: Any) -> None:
        self._run(run_id)
        self._store.update_run(run_id, **changes)

    async def metrics(self, run_id: str) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics, run_id)

    async def series(self, run_id: str, name: str | None = None, max_points: int | None = None) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.series, run_id, name, max_points=max_points)

    async def metrics_by_rank(self, run_id: str, name: str | None = None, max_points: int | None = None) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics_by_rank, run_id, name, max_points=max_points)

    def _run(self, run_id: str) -> RunRecord:
        record = self._store.get_run(run_id)
        if record is None:
            raise RunNotFoundException(
                f"there is no run '{run_id[:300]}' in this workspace", hint="'trainmaster runs' lists them."
            )
        return record

    # Environments

    async def build_environment(
        self, spec: Mapping[str, Any], sources: Mapping[str, str] | None = None, refresh: bool = False
    ) -> dict[str, Any]:
        """Builds an environment unless it is there; answers when it is."""
        return await environments.on_request(self._yard, from_plain(EnvironmentSpec, spec), sources, refresh)

    def environments_in_use(self) -> dict[str, list[str]]:
        return environments.in_use(self._yard)

    async def remove_environments(self, names: list[str]) -> list[str]:
        """Removes builds that no run needs; the names of those that are gone."""
        return await environments.remove(self._yard, names)

    # Targets

    def list_targets(self) -> list[TargetRecord]:
        return list(self._yard.targets().values())

    def put_target(self, target: Mapping[str, Any]) -> TargetRecord:
        record = from_plain(TargetRecord, target)
        known = self._store.get_target(record.name)
        record = replace(record, created_at=known.created_at if known else time.time())
        self._store.put_target(record)
        self._yard.targets_changed()
        return record

    def delete_target(self, name: str) -> None:
        self._target(name)
        users = [run.id for run in self._store.active_runs() if run.target == name]
        if users:
            raise ComputeTargetException(
                f"target '{name}' is in use by {users[0]}", hint="Cancel its runs first, or wait for them."
            )
        self._store.delete_target(name)
        self._yard.targets_changed()

    def _target(self, name: str) -> TargetRecord:
        targets = self._yard.targets()
        if name not in targets:
            raise ComputeTargetException(
                f"ComputeTargetNotFound: there is no compute target '{name[:300]}' in this workspace",
                hint=f"Known: {', '.join(sorted(targets))}. Create one with 'trainmaster compute create'.",
            )
        return targets[name]

    # Environments

    def put_environment(self, name: str, definition: Mapping[str, Any]) -> EnvironmentRecord:
        """Registers an environment; what the newest version says already is no new one."""
        _check_environment(name, definition)
        return self._store.put_environment(name, definition, at=time.time())

    def get_environment(self, name: str, version: int | None = None, label: str | None = None) -> EnvironmentRecord:
        found = self._store.get_environment(name, version, label)
        if found is None:
            wanted = f" of version {version}" if version is not None else f" with label {label!r}" if label else ""
            known = ", ".join(record.name for record in self._store.list_environments())
            raise UserErrorException(
                f"there is no environment '{str(name)[:300]}'{wanted} in this workspace",
                hint=f"Known: {known or 'none'}. Register one with environment.register(workspace).",
            )
        return found

    def list_environments(self) -> list[EnvironmentRecord]:
        return self._store.list_environments()

    def label_environment(self, name: str, version: int, labels: list[str]) -> EnvironmentRecord:
        self.get_environment(name, version)
        return self._store.label_environment(name, version, labels)

    # Secrets

    def fetch_secrets(self, run_id: str, names: list[str]) -> dict[str, str | None]:
        """Secrets for a job that runs."""
        record = self._run(run_id)
        if record.status in TERMINAL or not record.spec:
            raise UserErrorException(f"run {run_id} has no job that runs: it gets no secrets")
        return self._yard.secrets.fetch(self._yard.folder.run(run_id), names)

    def secret_masks(self, run_id: str) -> list[str]:
        """What has to be hidden when logs of this run are shown."""
        record = self._run(run_id)
        try:
            return self._yard.secrets.masks(self._yard.folder.run(run_id))
        except WorkspaceException:
            # The logs of a run that has ended were masked where they lie: a key that was lost since does no harm.
            if record.status in TERMINAL:
                return []
            raise

    # Datastores

    def list_datastores(self) -> list[DatastoreRecord]:
        return [opened(store, self._yard.secrets) for store in self._store.list_datastores()]

    def get_datastore(self, name: str | None = None) -> DatastoreRecord | None:
        stores = self._store.list_datastores()
        found = next((s for s in stores if (s.is_default if name is None else s.name == name)), None)
        return None if found is None else opened(found, self._yard.secrets)

    def put_datastore(self, record: Mapping[str, Any], overwrite: bool = False) -> DatastoreRecord:
        store = replace(from_plain(DatastoreRecord, record), created_at=time.time())
        known = self.get_datastore(store.name)
        if not overwrite and known is not None:
            raise UserErrorException(
                f"there is a datastore '{store.name}' already", hint="Give overwrite=True to replace it."
            )
        kept = replace(store, is_default=known.is_default if known else store.is_default)
        self._store.put_datastore(sealed(kept, self._yard.secrets))
        return store

    def delete_datastore(self, name: str) -> None:
        if self._datastore(name).is_default:
            raise UserErrorException(
                f"'{name}' is the default datastore", hint="Make another one the default first, then unregister it."
            )
        self._store.delete_datastore(name)

    def set_default_datastore(self, name: str) -> None:
        self._datastore(name)
        self._store.set_default_datastore(name)

    def _datastore(self, name: str) -> DatastoreRecord:
        found = self.get_datastore(name)
        if found is None:
            raise DatastoreException(f"there is no datastore '{name[:300]}' in this workspace")
        return found


def _without_gpus(spec: JobSpec) -> JobSpec:
    """For a target without GPUs: a build for the CPU, since the other is gigabytes, and may not even start."""
    if spec.environment.accelerator != "cuda":
        return spec
    packages = tuple(map(on_cpu, spec.environment.pip_packages))
    return replace(spec, environment=replace(spec.environment, accelerator="cpu", pip_packages=packages))


def _doubts(spec: JobSpec, target: TargetRecord) -> list[str]:
    """What is allowed but perhaps not meant."""
    if spec.use_gpu and not target.gpus_per_node:
        return [f"use_gpu=True, but target '{target.name}' has no GPUs: the script runs on the CPU"]
    return [f"target '{target.name}': {doubt}" for doubt in target.options.get("doubts", ())]


def _checked(record: RunRecord) -> RunRecord:
    """Ids become folder names: nothing else than plain names may pass."""
    if not _RUN_ID.fullmatch(record.id):
        raise UserErrorException(
            f"'{record.id[:100]}' cannot be a run id",
            hint="Use letters, digits, dots, dashes and underscores, 255 at most, a letter or digit first.",
        )
    return record


def _check_environment(name: Any, definition: Any) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > 255:
        raise UserErrorException(
            f"'{str(name)[:60]}' cannot be the name of an environment", hint="Use 1 to 255 characters."
        )
    if not isinstance(definition, Mapping):
        raise UserErrorException(f"the definition of environment '{name}' must be an object")


def answer_error(error: Exception) -> dict[str, Any]:
    """Any error as the client gets it."""
    if isinstance(error, AzureMLException):
        return error.to_wire()
    return {
        "type": "ServiceException",
        "headline": f"the dispatcher failed: {error!r}",
        "cause": "",
        "hint": "",
    }

"""The operations a dispatcher offers to clients. Each can be repeated without harm (`sdk/connection.py`)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from trainmaster import __version__
from trainmaster.dispatcher.api import environments
from trainmaster.dispatcher.api.datasets import Datasets
from trainmaster.dispatcher.api.datastores import Datastores
from trainmaster.dispatcher.api.models import Models
from trainmaster.dispatcher.api.registered_environments import RegisteredEnvironments
from trainmaster.dispatcher.api.targets import Targets
from trainmaster.dispatcher.arguments import Arguments
from trainmaster.dispatcher.assembly import Dispatcher
from trainmaster.dispatcher.own_code import OwnCode
from trainmaster.dispatcher.runs.accepting import accept, with_plain_id
from trainmaster.dispatcher.runs.dry_run import current_situation, plan_run
from trainmaster.dispatcher.runs.marks import STATES, Mark
from trainmaster.dispatcher.runs.storage_requests import StorageRequests
from trainmaster.dispatcher.store.experiments import View
from trainmaster.dispatcher.sweeps import Sweeps
from trainmaster.dispatcher.sweeps.driver import is_sweep
from trainmaster.job.errors import (
    RunNotFoundException,
    ServiceException,
    TrainmasterError,
    UserErrorException,
    WorkspaceException,
)
from trainmaster.shared.job_spec import EnvironmentSpec, load_spec
from trainmaster.shared.records import TERMINAL, RunError, RunQuery, RunRecord, Status
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

Operation = Callable[..., Any]
# The default of an argument that may also be null.
_UNCHANGED: Any = object()


class Service:
    """Every operation by its name."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        context = self._context = dispatcher.context
        scheduler = self._scheduler = dispatcher.scheduler
        updates = self._updates = dispatcher.updates
        runs = self._runs = dispatcher.runs
        services = self._services = dispatcher.services
        self._store = context.store
        self._code = OwnCode()
        self._datasets = Datasets(context.store)
        self._models = Models(context, updates)
        self._models.users.append(services.users_of_model)
        self._sweeps = Sweeps(context, runs, updates, partial(accept, context, scheduler))
        dispatcher.job_requests.answer_with(self.call, answer_error)
        self._operations: Mapping[str, Operation] = {
            "hello": self.hello,
            "status": self.status,
            "agent.notify": self.agent_notify,
            "experiments.ensure": self.ensure_experiment,
            "experiments.list": self.list_experiments,
            "experiments.update": self.update_experiment,
            "experiments.delete": self.delete_experiment,
            "runs.submit": self.submit,
            "runs.plan": self.plan,
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
            "secrets.put": self._context.secrets.put,
            "secrets.get": self._context.secrets.get,
            "secrets.delete": self._context.secrets.delete,
            "secrets.list": self._context.secrets.names,
            "secrets.fetch": self.fetch_secrets,
            "secrets.masks": self.secret_masks,
            "datasets.register": self._datasets.register,
            "datasets.get": self._datasets.get,
            "datasets.list": self._datasets.list,
            "datasets.update": self._datasets.update,
            "datasets.delete": self._datasets.delete,
            "datasets.locate": self._datasets.locate,
            **Targets(context, scheduler).operations,
            **RegisteredEnvironments(context.store).operations,
            **Datastores(context).operations,
            **StorageRequests(context).operations,
            **services.operations,
            **dispatcher.removal.operations,
            **self._models.operations,
            "sweeps.submit": self._sweeps.submit,
            "sweeps.describe": self._sweeps.describe,
            "sweeps.view": self._sweeps.view,
            "sweeps.summaries": self._sweeps.summaries,
            "sweeps.changes": self._sweeps.changes,
            "sweeps.parameters": self._sweeps.parameters,
            "sweeps.metrics": self._sweeps.metrics,
        }
        self._arguments: dict[str, Arguments] = {}

    async def call(self, op: str, args: Mapping[str, Any]) -> Any:
        """The plain result of one operation."""
        operation = self._operations.get(op) if isinstance(op, str) else None
        if operation is None:
            raise UserErrorException(f"there is no operation {str(op)[:60]!r}")
        try:
            result = operation(**self._checked(op, operation, args))
            if isinstance(result, Awaitable):
                result = await result
        except (PlainDataError, OverflowError, UnicodeError, RecursionError) as error:
            # A number that is too large, half a character, a list in a list in a list ...
            raise _unusable(op, error) from None
        return to_plain(result)

    def watched(self, args: Any) -> str:
        """The run of `runs.watch`, which the server answers itself."""
        try:
            return str(self._checked("runs.watch", self.get_run, args)["run_id"])
        except PlainDataError as error:
            raise _unusable("runs.watch", error) from None

    def _checked(self, op: str, operation: Operation, args: Any) -> Mapping[str, Any]:
        if op not in self._arguments:
            self._arguments[op] = Arguments(operation)
        return self._arguments[op].check(args)

    # The dispatcher itself

    def hello(self, version: str) -> dict[str, Any]:
        return {"version": __version__, "pid": os.getpid(), "outdated": self._code.has_changed()}

    def status(self) -> dict[str, Any]:
        services = [record.name for record in self._services.list()]
        return {
            "version": __version__,
            "pid": os.getpid(),
            "active": self._store.runs.list_active(),
            "services": services,
        }

    def agent_notify(self, run_id: str, node: int, event: str) -> None:
        self._runs.hear_from_agent(run_id, event)

    # Experiments

    def ensure_experiment(self, name: str) -> Any:
        return self._store.experiments.ensure(name, at=time.time())

    def list_experiments(
        self, name: str | None = None, view: View = "active", tags: Mapping[str, Any] | None = None
    ) -> Any:
        return self._store.experiments.find(name, view, tags)

    def update_experiment(
        self, name: str, tags: Mapping[str, Any] = _UNCHANGED, archived_at: float | None = _UNCHANGED
    ) -> Any:
        changes = {"tags": tags, "archived_at": archived_at}
        given = {field: value for field, value in changes.items() if value is not _UNCHANGED}
        return self._store.experiments.update(name, **given)

    def delete_experiment(self, name: str) -> None:
        self._store.experiments.delete(name)

    # Runs

    async def submit(self, run: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> RunRecord:
        """Queues a run durably; the same run again is the same run."""
        record = with_plain_id(from_plain(RunRecord, run))
        known = self._store.runs.get(record.id)
        if known is None:
            new = await accept(self._context, self._scheduler, record, sources)
            known = self._store.runs.get(record.id) or self._store.runs.add(new)
        self._runs.take(known, sources)
        return known

    async def plan(self, experiment: str, spec: str) -> dict[str, Any]:
        """What submitting this job would do; nothing is written."""
        situation = current_situation(self._context, self._scheduler)
        return await asyncio.to_thread(plan_run, load_spec(spec), experiment, situation)

    def create_runs(self, runs: list[Mapping[str, Any]]) -> list[RunRecord]:
        """Interactive runs and children: no job stands behind them."""
        records = [with_plain_id(from_plain(RunRecord, run)) for run in runs]
        for record in records:
            self._context.folder.run(record.id).journals.mkdir(parents=True, exist_ok=True)
            self._context.folder.run(record.id).files.mkdir(parents=True, exist_ok=True)
        created = self._store.runs.add_many(records)
        for record in created:
            self._runs.end_with_owner(record)
        return created

    def get_run(self, run_id: str) -> RunRecord:
        return self._runs.describe(self._run(run_id))

    async def list_runs(self, query: Mapping[str, Any]) -> list[RunRecord]:
        found = await asyncio.to_thread(self._store.runs.find, from_plain(RunQuery, query))
        return [self._runs.describe(record) for record in found]

    def cancel(self, run_id: str) -> RunRecord:
        """Asks a run to end; one without a job ends at once."""
        record = self._run(run_id)
        if record.status in TERMINAL:
            return record
        if not record.spec:
            return self._updates.move(run_id, Status.CANCELED) or self._run(run_id)
        self._updates.move(run_id, Status.CANCEL_REQUESTED)
        self._runs.cancel(run_id)
        return self._run(run_id)

    async def finish(self, run_id: str, status: str, error: Mapping[str, Any] | None = None) -> RunRecord:
        """Ends a run that has no job, or marks one that has; what was logged from outside is brought in first."""
        record = self._run(run_id)
        if status not in STATES:
            raise UserErrorException(f"a run is ended as {' or '.join(sorted(STATES))}, not as {status!r:.40}")
        if is_sweep(record):
            raise UserErrorException(f"sweep {run_id} ends with its trials", hint="Use cancel() to end it now.")
        await self._updates.bring_in(run_id)
        mark = Mark(Status(status), from_plain(RunError, error) if error else None)
        if record.spec:
            self._runs.mark(run_id, mark)
            return self._run(run_id)
        return self._updates.move(run_id, mark.status, error=mark.error) or self._run(run_id)

    async def ingest(self, run_id: str) -> None:
        self._run(run_id)
        await self._updates.bring_in(run_id)

    def set_tags(self, run_id: str, tags: Mapping[str, Any]) -> None:
        self._run(run_id)
        self._store.runs.set_tags(run_id, tags)

    def remove_tags(self, run_id: str, names: list[str]) -> None:
        self._run(run_id)
        self._store.runs.remove_tags(run_id, names)

    def add_properties(self, run_id: str, properties: Mapping[str, str]) -> None:
        self._run(run_id)
        self._store.runs.add_properties(run_id, properties)

    def update_run(
        self,
        run_id: str,
        display_name: str = _UNCHANGED,
        description: str = _UNCHANGED,
        snapshot_id: str = _UNCHANGED,
    ) -> None:
        record = self._run(run_id)
        if snapshot_id is not _UNCHANGED:
            with_plain_id(replace(record, snapshot_id=snapshot_id))
        changes = {"display_name": display_name, "description": description, "snapshot_id": snapshot_id}
        self._store.runs.update(run_id, **{field: value for field, value in changes.items() if value is not _UNCHANGED})

    async def metrics(self, run_id: str) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.summarize, run_id)

    async def series(self, run_id: str, name: str | None = None, max_points: int | None = None) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.read, run_id, name, max_points=max_points)

    async def metrics_by_rank(self, run_id: str, name: str | None = None, max_points: int | None = None) -> Any:
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.read_by_rank, run_id, name, max_points=max_points)

    def _run(self, run_id: str) -> RunRecord:
        record = self._store.runs.get(run_id)
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
        return await environments.on_request(self._context, from_plain(EnvironmentSpec, spec), sources, refresh)

    def environments_in_use(self) -> dict[str, list[str]]:
        return environments.in_use(self._context, self._services.environments_in_use())

    async def remove_environments(self, names: list[str]) -> list[str]:
        """Removes builds that no run needs; the names of those that are gone."""
        return await environments.remove(self._context, self._services.environments_in_use(), names)

    # Secrets

    def fetch_secrets(self, run_id: str, names: list[str]) -> dict[str, str | None]:
        """Secrets for a job that runs."""
        record = self._run(run_id)
        if record.status in TERMINAL or not record.spec:
            raise UserErrorException(f"run {run_id} has no job that runs: it gets no secrets")
        return self._context.secrets.fetch(self._context.folder.run(run_id), names)

    def secret_masks(self, run_id: str) -> list[str]:
        """What has to be hidden when logs of this run are shown."""
        record = self._run(run_id)
        try:
            return self._context.secrets.masks(self._context.folder.run(run_id))
        except WorkspaceException:
            # The logs of a run that has ended were masked where they lie: a key that was lost since does no harm.
            if record.status in TERMINAL:
                return []
            raise


def _unusable(op: str, error: Exception) -> UserErrorException:
    return UserErrorException(f"{op}: the request cannot be used", cause=str(error)[:300])


def answer_error(error: Exception) -> dict[str, Any]:
    """Any error as the client gets it."""
    if isinstance(error, TrainmasterError):
        return error.to_wire()
    if isinstance(error, OSError):
        # The disk is full, a file cannot be read ...
        place = f"{error.filename}: " if error.filename else ""
        return ServiceException("the dispatcher could not do this", cause=f"{place}{error.strerror or error}").to_wire()
    return {
        "type": "ServiceException",
        "headline": f"the dispatcher failed: {error!r}",
        "cause": "",
        "hint": "",
    }

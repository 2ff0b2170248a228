"""All operations that clients can call, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import cache, partial
from typing import Any

from trainmaster.dispatcher.api.charts import ChartOperations
from trainmaster.dispatcher.api.datasets import DatasetOperations
from trainmaster.dispatcher.api.datastore_files import DatastoreFiles
from trainmaster.dispatcher.api.datastores import DatastoreOperations
from trainmaster.dispatcher.api.dispatcher import DispatcherOperations
from trainmaster.dispatcher.api.environments import EnvironmentOperations
from trainmaster.dispatcher.api.experiments import ExperimentOperations
from trainmaster.dispatcher.api.fields import FieldOperations
from trainmaster.dispatcher.api.machine_use import MachineUseOperations
from trainmaster.dispatcher.api.metrics import MetricOperations
from trainmaster.dispatcher.api.mlflow import MlflowOperations
from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.api.notifications import NotificationOperations
from trainmaster.dispatcher.api.quotas import QuotaOperations
from trainmaster.dispatcher.api.reruns import RerunOperations
from trainmaster.dispatcher.api.run_insights import RunInsights
from trainmaster.dispatcher.api.runs import RunOperations
from trainmaster.dispatcher.api.search import SearchOperations
from trainmaster.dispatcher.api.secrets import SecretOperations
from trainmaster.dispatcher.api.targets import TargetOperations
from trainmaster.dispatcher.api.views import ViewOperations
from trainmaster.dispatcher.api.workspace import WorkspaceOperations
from trainmaster.dispatcher.arguments import Arguments
from trainmaster.dispatcher.assembly import Dispatcher
from trainmaster.dispatcher.operation import (
    Operation,
    is_from_journals,
    is_from_store,
    operations_in,
    operations_of,
)
from trainmaster.dispatcher.runs.accepting import accept
from trainmaster.dispatcher.runs.removal import Removal
from trainmaster.dispatcher.runs.retention import Retention
from trainmaster.dispatcher.runs.storage_requests import StorageRequests
from trainmaster.dispatcher.services.conversions import Conversions
from trainmaster.dispatcher.services.following import ServiceFollowing
from trainmaster.dispatcher.services.images import Images
from trainmaster.dispatcher.services.inspection import ServiceInspection
from trainmaster.dispatcher.services.operations import Services
from trainmaster.dispatcher.services.packages import Packages
from trainmaster.dispatcher.sweeps import Sweeps
from trainmaster.job.errors import ServiceException, TrainmasterError, UserErrorException
from trainmaster.shared.records import RunRecord
from trainmaster.shared.serialization import PlainDataError, to_plain

_PARTS = (
    DispatcherOperations,
    WorkspaceOperations,
    ExperimentOperations,
    RunOperations,
    SearchOperations,
    QuotaOperations,
    Removal,
    Retention,
    NotificationOperations,
    MetricOperations,
    Sweeps,
    EnvironmentOperations,
    SecretOperations,
    DatasetOperations,
    DatastoreOperations,
    DatastoreFiles,
    StorageRequests,
    TargetOperations,
    ModelOperations,
    Conversions,
    Services,
    Images,
    ServiceFollowing,
    ServiceInspection,
    Packages,
    ViewOperations,
    RerunOperations,
    RunInsights,
    ChartOperations,
    FieldOperations,
    MachineUseOperations,
    MlflowOperations,
)
"""The classes that have operations."""


@cache
def list_operations() -> Mapping[str, Operation]:
    """Every operation as a function without its object, for those who only need names and signatures."""
    return operations_in(*_PARTS)


class Operations:
    """Checks and calls operations."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        context, updates, services = dispatcher.context, dispatcher.updates, dispatcher.services
        self._runs = RunOperations(dispatcher)
        sweeps = Sweeps(context, dispatcher.runs, updates, partial(accept, context, dispatcher.scheduler))
        models = ModelOperations(context, updates, services.users_of_model)
        metrics = MetricOperations(context.store, updates)
        self._operations = operations_of(
            DispatcherOperations(context.store, dispatcher.runs, services),
            WorkspaceOperations(context),
            ExperimentOperations(context),
            self._runs,
            SearchOperations(context.store, dispatcher.runs, context.changes),
            QuotaOperations(context.store, dispatcher.scheduler),
            dispatcher.removal,
            dispatcher.retention,
            NotificationOperations(context, dispatcher.outbox),
            metrics,
            sweeps,
            EnvironmentOperations(context, services, dispatcher.work),
            SecretOperations(context),
            DatasetOperations(context.store),
            DatastoreOperations(context),
            DatastoreFiles(context),
            StorageRequests(context),
            TargetOperations(context, dispatcher.scheduler),
            models,
            Conversions(context, models, dispatcher.work),
            services,
            services.images,
            ServiceFollowing(context, services),
            ServiceInspection(context, services),
            Packages(context, dispatcher.work),
            ViewOperations(context.store),
            RerunOperations(context, self._runs, sweeps),
            RunInsights(context, dispatcher.runs, models, metrics),
            ChartOperations(context.store, updates),
            FieldOperations(context.store),
            MachineUseOperations(context, dispatcher.scheduler),
            MlflowOperations(context, updates, dispatcher.metric_log, models),
        )
        assert self._operations.keys() == list_operations().keys(), "add the new class to _PARTS"
        self._arguments: dict[str, Arguments] = {}
        self._store = context.store
        dispatcher.job_requests.answer_with(self.call, answer_error)

    async def call(self, op: str, args: Mapping[str, Any]) -> Any:
        """The plain result of one operation."""
        operation = self._operations.get(op) if isinstance(op, str) else None
        if operation is None:
            raise UserErrorException(f"there is no operation {str(op)[:60]!r}")
        try:
            result = operation(**self._check(op, operation, args))
            if isinstance(result, Awaitable):
                result = await result
        except (PlainDataError, OverflowError, UnicodeError, RecursionError) as error:
            # A number that is too large, half of a surrogate pair, a list nested too deep.
            raise _unusable(op, error) from None
        return to_plain(result)

    @property
    def version(self) -> int:
        """Another number after each change of the store."""
        return self._store.version

    def is_from_store(self, op: str, args: Mapping[str, Any], result: Any) -> bool:
        """Whether this result stays right until the store changes."""
        return is_from_store(self._operations[op], args, result)

    def is_from_journals(self, op: str) -> bool:
        """Whether its results stay right until the store or the journals of the run change."""
        return is_from_journals(self._operations[op])

    def read_watch_request(self, args: Any) -> str:
        """The id in a request for `runs.watch`, which the server answers itself."""
        try:
            return str(self._check("runs.watch", self._runs.get, args)["run_id"])
        except PlainDataError as error:
            raise _unusable("runs.watch", error) from None

    def get_run(self, run_id: str) -> RunRecord:
        """The run with this id, as clients see it."""
        return self._runs.get(run_id)

    def _check(self, op: str, operation: Operation, args: Any) -> Mapping[str, Any]:
        if op not in self._arguments:
            self._arguments[op] = Arguments(operation)
        return self._arguments[op].check(args)


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
    return ServiceException(f"the dispatcher failed: {error!r}").to_wire()

"""Puts the parts of a dispatcher together."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.long_work import LongWork
from trainmaster.dispatcher.mlflow.metric_log import MetricLog
from trainmaster.dispatcher.notifications.outbox import Outbox
from trainmaster.dispatcher.runs.active import ActiveRuns
from trainmaster.dispatcher.runs.engines import Engines
from trainmaster.dispatcher.runs.job_requests import JobRequests
from trainmaster.dispatcher.runs.removal import Removal
from trainmaster.dispatcher.runs.retention import Retention
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.dispatcher.secrets import Secrets
from trainmaster.dispatcher.services import Services
from trainmaster.dispatcher.store import Store
from trainmaster.engines import EngineContext, make_engine
from trainmaster.shared.folders import WorkspaceFolder


@dataclass(frozen=True)
class Dispatcher:
    """The parts of a dispatcher."""

    context: Context
    scheduler: Scheduler
    watchers: Watchers
    updates: RunUpdates
    runs: ActiveRuns
    services: Services
    work: LongWork
    removal: Removal
    retention: Retention
    outbox: Outbox
    job_requests: JobRequests
    metric_log: MetricLog

    @property
    def is_busy(self) -> bool:
        """Whether a run is active, a client or a notification waits, or services have to be kept alive."""
        return self.runs.is_busy or self.context.activity.is_busy or self.services.busy or self.outbox.is_busy

    def resume(self) -> None:
        """Continues everything that an earlier dispatcher had begun."""
        for record in self.context.store.runs.list_active():
            if record.spec:
                self.runs.take(record)
            else:
                self.runs.end_with_owner(record)
        # Runs of the last dispatcher may have ended without having been measured.
        self.scheduler.quotas_changed()
        self.services.resume()
        self.metric_log.resume()
        self.runs.start("removal", self.removal.resume)
        self.retention.resume()
        self.outbox.resume()

    async def close(self) -> None:
        """Stops all parts; runs and services go on by themselves."""
        await self.retention.close()
        await self.runs.close()
        await self.outbox.close()
        await self.metric_log.close()
        await self.scheduler.disk_use.close()
        self.updates.close()
        await self.job_requests.close()
        await self.services.close()
        await self.work.close()
        await self.context.engines.close()


def assemble(folder: WorkspaceFolder, store: Store) -> Dispatcher:
    """A dispatcher for a workspace. Nothing happens before `resume` or the first operation."""
    secrets = Secrets(folder, store)
    job_requests = JobRequests(folder)

    def hear_from_agent(run_id: str, event: str) -> None:
        runs.hear_from_agent(run_id, event)

    for_engines = EngineContext(folder, hear_from_agent, secrets.value, job_requests.receive)
    context = Context(folder, store, secrets, Engines(lambda name: make_engine(name, for_engines)))
    watchers = Watchers()
    watchers.add_listener(context.changes)
    scheduler = Scheduler(context)
    watchers.add_listener(scheduler.disk_use)
    updates = RunUpdates(context, watchers)
    runs = ActiveRuns(context, scheduler, updates, watchers)
    removal = Removal(context, runs.wait_until_left, scheduler.quotas_changed)
    retention = Retention(context, removal)
    watchers.add_listener(retention)
    outbox = Outbox(context)
    watchers.add_listener(outbox)
    return Dispatcher(
        context=context,
        scheduler=scheduler,
        watchers=watchers,
        updates=updates,
        runs=runs,
        services=Services(context),
        work=LongWork(context.activity),
        removal=removal,
        retention=retention,
        outbox=outbox,
        job_requests=job_requests,
        metric_log=MetricLog(folder, updates),
    )

"""Operations on quotas."""

from __future__ import annotations

import builtins
from dataclasses import replace

from trainmaster.dispatcher.arguments import UNCHANGED, changes_in
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.quotas import find_full_disk
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import Quota, QuotaReport

_LONGEST_NAME = 255


class QuotaOperations:
    """Operations on quotas."""

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self._store = store
        self._scheduler = scheduler

    @operation("quotas.list")
    def list(self) -> builtins.list[QuotaReport]:
        """All quotas, and what their owners use now."""
        return self._scheduler.report_quotas()

    @operation("quotas.check_disk")
    def check_disk(self, user: str) -> str:
        """Why this user may not store more files; empty if they may."""
        return find_full_disk(self._scheduler.quotas(), user)

    @operation("quotas.files_changed")
    def files_changed(self, run_id: str = "", model_id: str = "") -> None:
        """Measure again the files of a run, of a logged model, or those that belong to neither."""
        if model_id:
            run_id = self._store.quotas.find_run_of_model(model_id)
        self._scheduler.disk_use.files_changed(run_id)

    @operation("quotas.set")
    def set(
        self,
        owner: str = "",
        runs: int | None = UNCHANGED,
        nodes: int | None = UNCHANGED,
        gpus: int | None = UNCHANGED,
        disk_bytes: int | None = UNCHANGED,
    ) -> builtins.list[QuotaReport]:
        """Set the limits that are given; null is no limit.

        `owner` is a user, `*` for each user without a quota of their own, or empty for the whole workspace.
        """
        limits = changes_in(runs=runs, nodes=nodes, gpus=gpus, disk_bytes=disk_bytes)
        for name, limit in limits.items():
            if limit is not None and limit < 0:
                raise UserErrorException(f"{name} must be at least 0, not {limit}")
        if len(owner) > _LONGEST_NAME:
            raise UserErrorException(f"the name of a user has at most {_LONGEST_NAME} characters")
        known = {quota.owner: quota for quota in self._store.quotas.list_all()}
        self._store.quotas.put(replace(known.get(owner, Quota(owner)), **limits))
        self._scheduler.quotas_changed()
        return self.list()

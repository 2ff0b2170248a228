"""Experiment: a named group of runs, and the one call that starts them."""

from __future__ import annotations

import builtins
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.job.script.labels import as_filter, check_tags, check_text, tag_names
from trainmaster.sdk.html_table import html_table
from trainmaster.sdk.submission import compile_config
from trainmaster.shared.job_spec import JobSpec, dump_spec, load_spec
from trainmaster.shared.records import ExperimentRecord, RunRecord, Status
from trainmaster.shared.run_ids import make_run_id
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.retention import Retention
    from trainmaster.sdk.run.listing import RunList
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.tuning.spec import SweepSpec

_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,254}", re.ASCII)


class ViewType:
    """Which experiments `Experiment.list` gives."""

    ActiveOnly = "ActiveOnly"
    ArchivedOnly = "ArchivedOnly"
    All = "All"


class Experiment:
    """A named group of runs in a workspace, made when it does not exist yet.

    >>> run = Experiment(ws, "mnist").submit(estimator)     # doctest: +SKIP
    >>> run.wait_for_completion(show_output=True)           # doctest: +SKIP
    """

    def __init__(self, workspace: Workspace | None = None, name: str = "", **kwargs: Any) -> None:
        # The name of the parameter in 2018.
        workspace = kwargs.get("workspace_object") if workspace is None else workspace
        if not hasattr(workspace, "connection"):
            raise UserErrorException(
                f"workspace must be a Workspace, not {workspace!r:.60}",
                hint="Write Experiment(workspace=ws, name='mine').",
            )
        assert workspace is not None
        self._workspace = workspace
        self._record: ExperimentRecord = kwargs.get("_record") or _ensure_experiment(workspace, name)

    @property
    def workspace(self) -> Workspace:
        """The workspace of the experiment."""
        return self._workspace

    workspace_object = workspace

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self._record.name

    @property
    def id(self) -> str:
        """The id of the experiment."""
        return self._record.id

    @property
    def archived_time(self) -> float | None:
        """When it was archived; None if it is not."""
        return self._record.archived_at

    @property
    def tags(self) -> dict[str, Any]:
        """The tags of the experiment."""
        return dict(self._record.tags)

    @property
    def retention(self) -> Retention:
        """Which runs of the experiment are kept."""
        from trainmaster.sdk.retention import Retention

        return Retention(self)

    def submit(self, config: Any, tags: Mapping[str, Any] | None = None, **kwargs: Any) -> Run:
        """Takes a snapshot of the folder and queues the run. Returns when the run is stored in the queue.

        `config` is an estimator, a ScriptRunConfig or a HyperDriveConfig. The run continues when this program ends.
        `display_name` is the name of the run for people; `notify` names channels that are told when it ends.
        """
        from trainmaster.sdk.run.channels import notification_tags
        from trainmaster.sdk.run.run import ScriptRun

        display_name = check_text("display_name", kwargs.pop("display_name", None) or "")
        tags = check_tags(tags or {}) | notification_tags(self._workspace, kwargs.pop("notify", None) or ())
        with self._workspace.backend.pythons():
            spec = compile_config(config, kwargs)
        if isinstance(spec, JobSpec):
            return ScriptRun(self, _record=self.send(spec, tags, "azureml.scriptrun", display_name=display_name))
        from trainmaster.sdk.sweeps.run import HyperDriveRun

        return HyperDriveRun(self, hyperdrive_config=config, _record=self._send_sweep(spec, tags, display_name))

    def send(
        self,
        spec: JobSpec,
        tags: Mapping[str, Any],
        run_type: str,
        parent_id: str | None = None,
        display_name: str = "",
    ) -> RunRecord:
        """Takes a snapshot for a compiled job and queues it."""
        record = self._new_run(spec, tags, run_type, parent_id)
        return self._queue("runs.submit", replace(record, display_name=display_name))

    def _send_sweep(self, spec: SweepSpec, tags: Mapping[str, Any], display_name: str) -> RunRecord:
        """Takes a snapshot for a compiled sweep, which its trials share, and queues it."""
        from trainmaster.tuning.spec import dump_sweep
        from trainmaster.tuning.tags import sweep_tags

        record = self._new_run(spec.job, {**sweep_tags(spec), **tags}, "hyperdrive", run_id=spec.custom_run_id)
        if spec.custom_run_id:
            self._check_unused(spec.custom_run_id)
        job = load_spec(record.spec)
        return self._queue(
            "sweeps.submit",
            replace(record, spec="", display_name=display_name),
            sweep=dump_sweep(replace(spec, job=job)),
        )

    def _check_unused(self, run_id: str) -> None:
        with suppress(RunNotFoundException):
            self._workspace.connection.call("runs.get", run_id=run_id)
            raise UserErrorException(f"run '{run_id}' already exists", hint="Choose another custom_run_id.")

    def _queue(self, op: str, record: RunRecord, **more: Any) -> RunRecord:
        from trainmaster.environments.sources import source_variables

        answer = self._workspace.connection.call(op, run=to_plain(record), sources=source_variables(os.environ), **more)
        return from_plain(RunRecord, answer)

    def _new_run(
        self, spec: JobSpec, tags: Mapping[str, Any], run_type: str, parent_id: str | None = None, run_id: str = ""
    ) -> RunRecord:
        from trainmaster.snapshots import start_git_properties

        self._workspace.backend.check_job(spec)
        source = Path(spec.source_directory)
        git = start_git_properties(source)
        snapshot = self._workspace.backend.contents.take_snapshot(source)
        spec = replace(spec, snapshot_id=snapshot.id)
        return RunRecord(
            id=run_id or make_run_id(self.name),
            experiment=self.name,
            status=Status.NOT_STARTED,
            created_at=time.time(),
            type=run_type,
            parent_id=parent_id,
            target=spec.target,
            spec=dump_spec(spec),
            snapshot_id=snapshot.id,
            warnings=snapshot.warnings,
            submitted_by=user_name(),
            tags=check_tags(tags),
            properties={"ContentSnapshotId": snapshot.id, **git.result()},
        )

    def start_logging(self, *args: Any, **kwargs: Any) -> Run:
        """A run without a job, for notebooks. Log to it and call `complete()`, or use it in a `with` block.

        `outputs` is a folder to collect at the end; `snapshot_directory` a folder to take a snapshot of (default '.',
        None for no snapshot). `display_name` and `tags` are those of the run.
        """
        from trainmaster.sdk.run.interactive import start_logging

        return start_logging(self, *args, **kwargs)

    def get_runs(
        self,
        type: str | None = None,
        tags: str | Mapping[str, Any] | None = None,
        properties: str | Mapping[str, Any] | None = None,
        include_children: bool = False,
    ) -> RunList[Run]:
        """The runs, newest first. `tags` and `properties` filter by a name, or by a dict of names and values.

        `experiment.get_runs().to_pandas()` gives them as a table.
        """
        from trainmaster.sdk.run.run import Run

        return Run.list(self, type=type, tags=tags, properties=properties, include_children=include_children)

    @staticmethod
    def list(
        workspace: Workspace,
        experiment_name: str | None = None,
        view_type: str = "ActiveOnly",
        tags: str | Mapping[str, Any] | None = None,
    ) -> builtins.list[Experiment]:
        """The experiments of a workspace; `view_type` is ActiveOnly, ArchivedOnly or All."""
        views = {"ActiveOnly": "active", "ArchivedOnly": "archived", "All": "all"}
        if view_type not in views:
            raise UserErrorException(f"view_type must be one of {', '.join(views)}, not {view_type!r}")
        found = workspace.connection.call(
            "experiments.list", name=experiment_name, view=views[view_type], tags=as_filter(tags) or None
        )
        records = [from_plain(ExperimentRecord, each) for each in found]
        return [Experiment(workspace, record.name, _record=record) for record in records]

    def tag(self, key: str, value: Any = None) -> None:
        """Sets one label."""
        self.set_tags({key: value})

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        """Sets labels."""
        self._update(tags={**self._fresh().tags, **check_tags(tags)})

    def remove_tags(self, tags: str | Sequence[str]) -> None:
        """Removes labels."""
        dropped = tag_names(tags)
        self._update(tags={key: value for key, value in self._fresh().tags.items() if key not in dropped})

    def archive(self) -> None:
        """Hides the experiment from lists. Its runs stay."""
        self._update(archived_at=time.time())

    def reactivate(self, new_name: str | None = None) -> None:
        """Undoes `archive`."""
        if new_name is not None:
            raise UserErrorException("an experiment cannot be renamed", hint="Leave new_name out.")
        self._update(archived_at=None)

    @staticmethod
    def from_directory(path: str | os.PathLike[str], auth: object = None) -> Experiment:
        """Not here: v1's deprecated way to find an experiment by a folder."""
        raise NotImplementedError(
            "Experiment.from_directory: Trainmaster does not tie folders to experiments. "
            "Use Experiment(Workspace.from_config(path), name)."
        )

    @staticmethod
    def delete(workspace: Workspace, experiment_id: str) -> None:
        """Deletes an experiment that has no runs, by its id or name."""
        every = Experiment.list(workspace, view_type="All")
        name = next((each.name for each in every if experiment_id in (each.id, each.name)), experiment_id)
        workspace.connection.call("experiments.delete", name=name)

    def refresh(self) -> None:
        """Reads the experiment again."""
        self._fresh()

    def get_portal_url(self) -> str:
        """The address of the page with its runs in the studio; of the folder of runs if no studio runs."""
        backend = self._workspace.backend
        return backend.find_page(self._page_path()) or f"{backend.address}/runs"

    def _page_path(self) -> str:
        """Where the studio shows its runs, within the workspace."""
        from urllib.parse import quote

        name = self.name.replace("\\", "\\\\").replace("'", "\\'")
        condition = f"experiment = '{name}'"
        return f"runs?filter={quote(condition, safe='')}"

    def _fresh(self) -> ExperimentRecord:
        answer = self._workspace.connection.call("experiments.ensure", name=self.name)
        self._record = from_plain(ExperimentRecord, answer)
        return self._record

    def _update(self, **changes: Any) -> None:
        self._workspace.connection.call("experiments.update", name=self.name, **changes)
        self._fresh()

    def __repr__(self) -> str:
        return f"Experiment(Name: {self.name}, Workspace: {self._workspace.name})"

    def _repr_html_(self) -> str:
        columns = {"Name": self.name, "Workspace": self._workspace.name, "Report Page": self.get_portal_url()}
        return html_table(columns)


def _ensure_experiment(workspace: Workspace, name: str) -> ExperimentRecord:
    """The experiment, created if there is none. One that MLflow's clients have created may have any name."""
    try:
        check_experiment_name(name)
    except UserErrorException:
        found = workspace.connection.call("experiments.list", name=name, view="all") if isinstance(name, str) else []
        if not found:
            raise
        return from_plain(ExperimentRecord, found[0])
    return from_plain(ExperimentRecord, workspace.connection.call("experiments.ensure", name=name))


def check_experiment_name(name: Any) -> None:
    """Refuses a name that no experiment can have: it becomes part of folder names."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserErrorException(
            f"{str(name)[:60]!r} cannot be the name of an experiment",
            hint="Use 1 to 255 letters, digits, dashes or underscores, beginning with a letter or digit.",
        )

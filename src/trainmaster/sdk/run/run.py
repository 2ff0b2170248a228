"""Run: one execution with its state, logs, metrics and files, as a program outside of the job sees it."""

from __future__ import annotations

import builtins
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import RunNotFoundException, TrainmasterError, UserErrorException
from trainmaster.job.script.files import walk_files
from trainmaster.job.script.labels import check_tags
from trainmaster.job.script.metrics import metric_value
from trainmaster.job.script.tracked_run import TrackedRun
from trainmaster.sdk.html_table import html_table
from trainmaster.sdk.nouns import noun
from trainmaster.sdk.run import files as run_files
from trainmaster.sdk.run import records as run_records
from trainmaster.sdk.run.channels import notification_tags
from trainmaster.sdk.run.details import run_details
from trainmaster.sdk.run.listing import RunList
from trainmaster.sdk.submission import compile_config
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.notices import warn
from trainmaster.shared.records import (
    TERMINAL,
    MetricSeries,
    RankMetric,
    RunError,
    RunQuery,
    RunRecord,
    Status,
    SystemSeries,
)
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.job.script.metrics import Reference
    from trainmaster.sdk.backend.backend import RunFiles, RunJournal
    from trainmaster.sdk.environment.definition import Environment
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace

_CHILD_TYPE = "azureml.scriptrun"


class Run(TrackedRun):
    """A run of an experiment, by its id.

    >>> run.get_status()                            # doctest: +SKIP
    'Running'
    >>> run.get_metrics()                           # doctest: +SKIP
    {'loss': [0.9, 0.5, 0.3]}
    """

    def __init__(
        self,
        experiment: Experiment,
        run_id: str | None = None,
        outputs: str | os.PathLike[str] | bool | None = None,
        **kwargs: Any,
    ) -> None:
        self._experiment = experiment
        record = kwargs.get("_record")
        if record is None:
            record = run_records.fetch(experiment.workspace, str(run_id))
            if record.experiment != experiment.name:
                raise RunNotFoundException(
                    f"run '{record.id}' is not in experiment '{experiment.name}'",
                    hint=f"It is in '{record.experiment}'; workspace.get_run(run_id) finds it wherever it is.",
                )
        self._record: RunRecord = record
        self._outputs = _outputs_folder(outputs)
        self._own_journal: RunJournal | None = None

    # Finding runs

    @classmethod
    def get_context(cls, allow_offline: bool = True, used_for_context_manager: bool = False, **kwargs: Any) -> Any:
        """The run of this job; outside of a job an offline run that prints, or an error without `allow_offline`."""
        from trainmaster.job.script import Run as JobRun

        return JobRun.get_context(allow_offline=allow_offline)

    @classmethod
    def get_submitted_run(cls, **kwargs: Any) -> Any:
        """The run of this job, by the old name; an error outside of a job."""
        return cls.get_context(allow_offline=False)

    @staticmethod
    def get(workspace: Workspace, run_id: str) -> Run:
        """The run with this id."""
        record = run_records.fetch(workspace, run_id)
        return _as_run(noun("Experiment")(workspace, record.experiment), record)

    @staticmethod
    def list(
        experiment: Experiment,
        type: str | None = None,
        tags: str | Mapping[str, Any] | None = None,
        properties: str | Mapping[str, Any] | None = None,
        status: str | Sequence[str] | None = None,
        include_children: bool = False,
    ) -> RunList[Run]:
        """The runs of an experiment, newest first. `Run.list(experiment).to_pandas()` gives them as a table."""
        query = run_records.query(
            type, tags, properties, status, experiment=experiment.name, include_children=include_children
        )
        return _runs(experiment.workspace, query)

    @staticmethod
    def list_by_compute(
        compute: Any,
        type: str | None = None,
        tags: str | Mapping[str, Any] | None = None,
        properties: str | Mapping[str, Any] | None = None,
        status: str | Sequence[str] | None = None,
    ) -> RunList[Run]:
        """The runs on a compute target, newest first."""
        query = run_records.query(type, tags, properties, status, target=compute.name, include_children=True)
        return _runs(compute.workspace, query)

    @staticmethod
    def add_type_provider(runtype: str, run_factory: Callable[..., Run]) -> None:
        """Makes `run_factory(experiment, run_dto, **kwargs)` create the objects for runs of the type `runtype`."""
        _PROVIDERS[str(runtype)] = run_factory

    # What it is

    @property
    def experiment(self) -> Experiment:
        """The experiment it belongs to."""
        return self._experiment

    @property
    def id(self) -> str:
        """The id."""
        return self._record.id

    @property
    def number(self) -> int:
        """The number within the experiment."""
        return self._record.number

    @property
    def type(self) -> str:
        """What kind of run it is."""
        return self._record.type

    @property
    def parent(self) -> Run | None:
        """The run of which it is a child, or None."""
        parent = self._record.parent_id
        return Run.get(self._experiment.workspace, parent) if parent else None

    @property
    def status(self) -> str:
        """The last known state; `get_status` asks for the current one."""
        return str(self._record.status)

    # Labels

    def _get_text(self, name: str) -> str:
        return str(getattr(self._record, name))

    def _set_text(self, name: str, text: str) -> None:
        self._call("runs.update", **{name: text})
        self._refresh()

    def _get_tags(self) -> dict[str, Any]:
        return dict(self._record.tags)

    def _get_properties(self) -> dict[str, str]:
        return dict(self._record.properties)

    def _refresh_labels(self) -> None:
        self._call("runs.ingest")
        self._refresh()

    def _add_tags(self, tags: dict[str, str | None]) -> None:
        self._call("runs.tags.set", tags=tags)
        self._refresh()

    def _drop_tags(self, names: builtins.list[str]) -> None:
        self._call("runs.tags.remove", names=names)
        self._refresh()

    def _add_properties(self, properties: dict[str, str]) -> None:
        self._call("runs.properties.add", properties=properties)
        self._refresh()

    def notify(self, *channels: str) -> None:
        """Tells these channels when the run ends, beside those that hear of all runs; see `trainmaster notify add`.

        >>> run.notify("team")                          # doctest: +SKIP
        """
        self.set_tags(notification_tags(self._experiment.workspace, channels))

    def archive(self) -> None:
        """Leaves the ended run and its children out of lists. Nothing is deleted; `restore` undoes it."""
        self._experiment.workspace.connection.call("runs.archive", run_ids=[self.id])
        self._refresh()

    def restore(self) -> None:
        """Shows the archived run and its children in lists again."""
        self._experiment.workspace.connection.call("runs.restore", run_ids=[self.id])
        self._refresh()

    # Its state

    def get_status(self) -> str:
        """The current state."""
        return str(self._refresh().status)

    def get_detailed_status(self) -> dict[str, Any]:
        """The state and, while the run waits, what it waits for."""
        record = self._refresh()
        return {"status": str(record.status), "details": record.waiting_for}

    def get_details(self) -> dict[str, Any]:
        """Definition, state, error and logs as a dict with v1's keys."""
        details = run_details(self._refresh(), self._files)
        if details["inputDatasets"] or details["outputDatasets"]:
            from trainmaster.sdk.datasets.run_datasets import with_datasets

            return with_datasets(details, self.experiment.workspace)
        return details

    def get_details_with_logs(self) -> dict[str, Any]:
        """`get_details` with the text of each log instead of its address."""
        details = self.get_details()
        logs = {name: run_files.read_text(self._files, name) for name in details["logFiles"]}
        return {**details, "logFiles": logs}

    def wait_for_completion(
        self, show_output: bool = False, wait_post_processing: bool = False, raise_on_error: bool = True
    ) -> dict[str, Any]:
        """Returns `get_details()` when the run has ended; with `show_output` its logs are printed as they grow.

        A failed run raises ActivityFailedException, unless `raise_on_error=False`. Ctrl-C ends only the waiting.
        """
        from trainmaster.sdk.run.waiting import wait_for

        return wait_for(self, show_output=show_output, raise_on_error=raise_on_error)

    def cancel(self) -> None:
        """Ends the run and all its processes; it is Canceled when all of them have ended."""
        self._record = from_plain(RunRecord, self._call("runs.cancel"))

    def start(self) -> None:
        """Marks a run without a job as started, which it already is."""

    def complete(self, _set_status: bool = True) -> None:
        """Marks the run as Completed: at once, or for a submitted run when its script ends."""
        self._close_journal()
        self._refresh()
        self._collect_outputs()
        self._finish(Status.COMPLETED)

    def fail(self, error_details: Any = None, error_code: str | None = None, _set_status: bool = True) -> None:
        """Marks the run as Failed: at once, or for a submitted run when its script ends. `cancel()` ends that now."""
        self._close_journal()
        has_script = bool(self._refresh().spec)
        self._collect_outputs()
        error = RunError(error_code or "UserError", str(error_details or "the run was failed"))
        # Without a reason given here, the error of the script is the better reason.
        is_said = error_details is not None or error_code is not None
        self._finish(Status.FAILED, error if is_said or not has_script else None)

    def _collect_outputs(self) -> None:
        """Keeps the files in the folder `outputs` with a run that has no script, when it ends."""
        if self._outputs is not None and not self._record.spec and self._record.status not in TERMINAL:
            found = [path for path in map(Path, walk_files(self._outputs)) if not self._is_replaced(path)]
            self._keep_files(sorted(found), self._outputs, "outputs")

    def _is_replaced(self, path: Path) -> bool:
        """Whether this output is older than the run, and the run has uploaded another file of that name."""
        return False

    def _keep_files(self, paths: Sequence[Path], folder: Path, prefix: str) -> None:
        """Copies files of a folder to the run's files; warns about each file that cannot be kept."""
        for path in paths:
            try:
                self._files.add(f"{prefix}/{path.relative_to(folder).as_posix()}", path)
            except (TrainmasterError, OSError) as error:
                warn(f"{path} is not among the files of run {self.id}: {error}")

    def _finish(self, status: Status, error: RunError | None = None) -> None:
        if not self._record.spec:
            # The files of the run are on the disk before its state says that it has ended.
            self._files.flush_all()
        answer = self._call("runs.finish", status=str(status), error=to_plain(error) if error else None)
        self._record = from_plain(RunRecord, answer)

    def clean(self) -> None:
        """Removes the working folder of an ended run; its files, logs and metrics stay."""
        self._call("runs.clean")

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None or (isinstance(error, SystemExit) and error.code in (0, None)):
            self.complete()
            return error is not None
        self.fail(error_details=f"{type(error).__name__}: {error}", error_code=type(error).__name__)
        return False

    # Again

    def rerun(
        self,
        arguments: Sequence[Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        fresh_code: bool = False,
        fresh_env: bool = False,
        source_directory: str | os.PathLike[str] | None = None,
    ) -> Run:
        """Submits the run again, with the same code and exactly the same packages; ours, not v1's.

        `arguments` replace all arguments of the script. `settings` change single ones, and also `target`, `nodes`,
        `name`, `tag.NAME`, `env.NAME`, `max_seconds`, `max_retries` and `hang_seconds`. `fresh_code` takes the source
        folder (or `source_directory`) as it is now, and `fresh_env` resolves the packages anew. The property `origin`
        of the new run is the id of this one.

            >>> again = run.rerun(settings={"lr": 0.01})            # doctest: +SKIP
        """
        from trainmaster.sdk.run.repeating import find_source, refresh_environment

        record = self._refresh()
        if fresh_env:
            refresh_environment(self._experiment.workspace, record, lambda part: None)
        source = find_source(record, source_directory) if fresh_code or source_directory else ""
        return self._send_again(
            arguments=arguments,
            settings=settings or {},
            tags=tags,
            source_directory=source,
            fresh_environment=fresh_env,
        )

    def resume(self, arguments: Sequence[Any] | None = None, settings: Mapping[str, Any] | None = None) -> Run:
        """Submits a run that continues in a copy of the working folder of this one, which has ended; ours, not v1's.

        The script finds its outputs, checkpoints and all other files as it left them, and the variable
        `TRAINMASTER_RESUMED_FROM` with the id of this run. `arguments` and `settings` are those of `rerun`.

            >>> longer = run.resume(settings={"epochs": 50})        # doctest: +SKIP
        """
        self._refresh()
        return self._send_again(arguments=arguments, settings=settings or {}, resume=True)

    def _send_again(self, **changes: Any) -> Run:
        from trainmaster.sdk.run.repeating import Repetition, send_again

        record = send_again(self._experiment.workspace, self._record, Repetition(**changes))
        return _as_run(self._experiment, record)

    # Children

    def child_run(
        self, name: str | None = None, run_id: str | None = None, outputs: str | os.PathLike[str] | None = None
    ) -> Run:
        """A child without a job, already running."""
        record = self._child(run_id or str(uuid.uuid4()), name or "", {})
        return Run(self._experiment, outputs=outputs, _record=self._create([record])[0])

    def _create_children(self, tags: builtins.list[dict[str, Any]]) -> builtins.list[Run]:
        records = [self._child(str(uuid.uuid4()), "", each) for each in tags]
        return [Run(self._experiment, _record=record) for record in self._create(records)]

    def submit_child(self, config: Any, tags: Mapping[str, Any] | None = None, **kwargs: Any) -> Run:
        """Submits a configuration as a child of this run."""
        spec = compile_config(config, kwargs)
        if not isinstance(spec, JobSpec):
            raise UserErrorException(
                "a sweep cannot be the child of a run", hint="Submit it with experiment.submit(config)."
            )
        return ScriptRun(
            self._experiment, _record=self._experiment.send(spec, tags or {}, _CHILD_TYPE, parent_id=self.id)
        )

    def get_children(
        self,
        recursive: bool = False,
        tags: str | Mapping[str, Any] | None = None,
        properties: str | Mapping[str, Any] | None = None,
        type: str | None = None,
        status: str | Sequence[str] | None = None,
    ) -> RunList[Run]:
        """The children, newest first."""
        self._call("runs.ingest")
        query = run_records.query(
            type, tags, properties, status, parent_id=self.id, recursive=recursive, include_children=True
        )
        return _runs(self._experiment.workspace, query)

    def _child(self, run_id: str, name: str, tags: Mapping[str, Any]) -> RunRecord:
        now = time.time()
        return RunRecord(
            id=run_id,
            experiment=self._experiment.name,
            status=Status.RUNNING,
            created_at=now,
            started_at=now,
            type=_CHILD_TYPE,
            parent_id=self.id,
            display_name=name,
            submitted_by=self._record.submitted_by,
            tags=check_tags(tags),
            properties=self._experiment.workspace.backend.owner(),
        )

    def _create(self, records: builtins.list[RunRecord]) -> builtins.list[RunRecord]:
        answer = self._workspace_call("runs.create", runs=[to_plain(record) for record in records])
        created = [from_plain(RunRecord, each) for each in answer]
        for record in created:
            if record.parent_id != self.id:
                raise UserErrorException(
                    f"run '{record.id}' already exists, and is not a child of {self.id}",
                    hint="Choose another run_id, or leave it out.",
                )
        return created

    # Metrics

    def _read_metrics(self, name: str | None, reference: Reference) -> dict[str, Any]:
        found = [from_plain(MetricSeries, each) for each in self._call("runs.series", name=name)]
        return {each.name: metric_value(each.name, each.kind, each.values, reference) for each in found}

    def get_metrics_by_rank(self, name: str | None = None) -> dict[int | None, dict[str, Any]]:
        """Rank to what `get_metrics` would return if only that process had logged; ours, not v1's.

        What came from outside of the job's processes is under None.

            >>> run.get_metrics_by_rank("loss")              # doctest: +SKIP
            {0: {'loss': [0.5, 0.25]}, 1: {'loss': [0.6, 0.3]}}
        """
        found: dict[int | None, dict[str, Any]] = {}
        for each in self._call("runs.metrics_by_rank", name=name):
            metric = from_plain(RankMetric, each)
            series = metric.series
            found.setdefault(metric.rank, {})[series.name] = metric_value(series.name, series.kind, series.values)
        return dict(sorted(found.items(), key=lambda item: -1 if item[0] is None else item[0]))

    def get_system_metrics(self, name: str | None = None) -> dict[str, dict[int, SystemSeries]]:
        """What the run used of its machines: name of the metric to rank to what was measured; ours, not v1's.

        Metrics `system/node/...` are of whole nodes and have their numbers in place of ranks. All are listed in the
        guide. `get_metrics` does not return them.

            >>> run.get_system_metrics()["system/memory_gb"][0].peak        # doctest: +SKIP
            3.2
        """
        found: dict[str, dict[int, SystemSeries]] = {}
        for each in self._call("runs.metrics_by_rank", name=name, system=True):
            metric = from_plain(RankMetric, each)
            series = metric.series
            if series.kind == "system":
                found.setdefault(series.name, {})[metric.rank or 0] = SystemSeries(series.times, series.values)
        return found

    def flush(self, timeout_seconds: float = 300) -> None:
        """Returns when others can read everything that was logged."""
        self._call("runs.ingest")

    # Files

    def get_file_names(self) -> builtins.list[str]:
        """The names of all files of the run."""
        return self._files.names()

    def _read_file(self, name: str) -> bytes:
        return self._files.read(name)

    def _list_files(self, prefix: str) -> builtins.list[str]:
        return run_files.names_with_prefix(self._files, prefix)

    def _copy_file(self, name: str, target: str) -> None:
        self._files.copy(name, Path(target))

    def get_all_logs(self, destination: str | os.PathLike[str] | None = None) -> builtins.list[str]:
        """Copies all logs to `destination` (default: here) and returns their paths."""
        return run_files.download_logs(self._files, Path(destination or "."))

    # Snapshot and environment

    def get_snapshot_id(self) -> str:
        """The id of its snapshot."""
        return self._record.snapshot_id

    def restore_snapshot(self, snapshot_id: str | None = None, path: str | os.PathLike[str] | None = None) -> str:
        """Writes the snapshot as a zip to `path` (default: here) and returns the zip's path."""
        wanted = snapshot_id or self._record.snapshot_id
        if not wanted:
            raise UserErrorException(f"run {self.id} has no snapshot")
        return str(self._experiment.workspace.backend.contents.write_archive(wanted, Path(path or ".")))

    def take_snapshot(self, file_or_folder_path: str | os.PathLike[str]) -> str:
        """Takes a snapshot of a folder, or of one file, for this run and returns its id."""
        import tempfile

        with tempfile.TemporaryDirectory() as around:
            source = Path(file_or_folder_path)
            if source.is_file():
                shutil.copy2(source, around)
                source = Path(around)
            snapshot = self._experiment.workspace.backend.contents.take_snapshot(source)
        self._call("runs.update", snapshot_id=snapshot.id)
        self._refresh()
        return snapshot.id

    def to_job_file(self, path: str | os.PathLike[str]) -> str:
        """Writes the job of the run as a [job file](../../guide/job-files.md); returns its path.

        `trainmaster submit job.yaml` runs it again: the same settings, with the code that is in the folder then.
        """
        from trainmaster.sdk.job_files.writing import write_run

        return str(write_run(Path(path), self._refresh()))

    def get_environment(self) -> Environment | None:
        """Its environment, to be used for another run, with the exact packages that were installed in `lock`.

        None for a run without a job.
        """
        from trainmaster.sdk.environment.definition import Environment
        from trainmaster.shared.job_spec import load_spec

        if not self._refresh().spec:
            return None
        environment = Environment.from_job(load_spec(self._record.spec), f"environment of {self.id}")
        environment.lock = self._files.read_environment_lock()
        return environment

    # Models and secrets

    @staticmethod
    def _model_class() -> builtins.type[Model]:
        from trainmaster.sdk.models.model import Model

        return Model

    def get_secret(self, name: str) -> str | None:
        """A secret of the workspace; None, with a warning, for a name that it does not have."""
        return self.experiment.workspace.get_default_keyvault().get_secret(name)

    def get_secrets(self, secrets: builtins.list[str]) -> dict[str, str | None]:
        """Name to secret of the workspace; None, with a warning, for a name that it does not have."""
        return self.experiment.workspace.get_default_keyvault().get_secrets(secrets)

    def get_portal_url(self) -> str:
        """The address of the run's page in the studio; of a report of the run as it is now if no studio runs.

        The report is an HTML file in the run's folder, which is written when it is asked for.
        """
        workspace = self._experiment.workspace
        page = workspace.backend.find_page(self._page_path())
        if page:
            return page
        from trainmaster.sdk.report.keeping import keep_report

        return keep_report(workspace, self._record)

    def _page_path(self) -> str:
        """Where the studio shows it, within the workspace."""
        return f"runs/{self.id}"

    # For the base classes

    def _journal(self) -> Any:
        if self._own_journal is None:
            self._own_journal = self._files.open_journal(f"client-{os.getpid()}-{os.urandom(4).hex()}")
        return self._own_journal

    def _close_journal(self) -> None:
        if self._own_journal is not None:
            self._own_journal.close()
            self._own_journal = None

    def _open_files(self) -> RunFiles:
        return self._files

    @property
    def _files(self) -> RunFiles:
        return self._experiment.workspace.backend.run_files(self.id)

    def _workspace_call(self, op: str, **args: Any) -> Any:
        return self._experiment.workspace.connection.call(op, **args)

    def _call(self, op: str, **args: Any) -> Any:
        return self._workspace_call(op, run_id=self.id, **args)

    def _refresh(self) -> RunRecord:
        self._record = run_records.fetch(self._experiment.workspace, self.id)
        return self._record

    def _repr_html_(self) -> str:
        columns = {"Experiment": self._experiment.name, "Id": self.id, "Type": self.type, "Status": self.status}
        return html_table({**columns, "Details Page": self.get_portal_url()})


class ScriptRun(Run):
    """A run of a script; `directory`, the source folder in v1, is accepted and has no effect."""

    def __init__(
        self, experiment: Experiment, run_id: str | None = None, directory: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(experiment, run_id, **kwargs)


def get_run(experiment: Experiment, run_id: str, rehydrate: bool = True, clean_up: bool = True) -> Run:
    """The run of this experiment with this id; `rehydrate` and `clean_up` are v1's and have no effect."""
    return _as_run(experiment, Run(experiment, run_id)._record)


_PROVIDERS: dict[str, Callable[..., Run]] = {}


def _as_run(experiment: Experiment, record: RunRecord) -> Run:
    provider = _PROVIDERS.get(record.type)
    if provider is not None:
        return provider(experiment, to_plain(record), run_id=record.id)
    if record.type == "hyperdrive":
        return noun("HyperDriveRun")(experiment, _record=record)
    kind = ScriptRun if record.spec or record.type == "azureml.scriptrun" else Run
    return kind(experiment, _record=record)


def _outputs_folder(outputs: str | os.PathLike[str] | bool | None) -> Path | None:
    """The absolute path of the folder, because the program may change its current folder later."""
    if outputs is None or isinstance(outputs, bool):
        return Path.cwd() / "outputs" if outputs else None
    return Path.cwd() / outputs


def _runs(workspace: Workspace, query: RunQuery) -> RunList[Run]:
    return RunList(workspace, _find_runs(workspace, query))


def _find_runs(workspace: Workspace, query: RunQuery) -> Iterator[Run]:
    experiments: dict[str, Experiment] = {}
    for record in run_records.pages(workspace, query):
        if record.experiment not in experiments:
            experiments[record.experiment] = noun("Experiment")(workspace, record.experiment)
        yield _as_run(experiments[record.experiment], record)

"""The store: what the dispatcher keeps and asks. Each method is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.store import (
    datasets,
    environments,
    experiments,
    ingest,
    labels,
    listing,
    models,
    opening,
    places,
    removal,
    runs,
    schema,
    series,
    services,
    sweeps,
)
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.experiments import View
from trainmaster.dispatcher.store.ingest import Batch, Record
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import (
    DatasetRecord,
    DatastoreRecord,
    EnvironmentRecord,
    ExperimentRecord,
    MetricSeries,
    MetricSummary,
    ModelRecord,
    RankMetric,
    RunQuery,
    RunRecord,
    Status,
    SweepRecord,
    TargetRecord,
    TrialRecord,
)
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord


class Store:
    """A workspace's database. Any thread may read and write; who writes has it alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def create(cls, path: Path) -> Store:
        """A new, empty store in the file `path`, which must not be there yet."""
        return cls(opening.create_database(path))

    @classmethod
    def open(cls, path: Path) -> Store:
        """The store in the file `path`; one of an older Trainmaster is copied, then migrated."""
        return cls(opening.open_database(path))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    # Experiments

    def ensure_experiment(self, name: str, at: float) -> ExperimentRecord:
        """The experiment of this name, made at need."""
        with self._database.writing() as connection:
            return experiments.ensure(connection, name, at)

    def get_experiment(self, name: str) -> ExperimentRecord | None:
        """The experiment of this name."""
        with self._database.glancing() as connection:
            return experiments.get(connection, name)

    def list_experiments(
        self, name: str | None = None, view: View = "active", tags: Mapping[str, Any] | None = None
    ) -> list[ExperimentRecord]:
        """Experiments, oldest first. A tag asked for with None only has to be there."""
        with self._database.glancing() as connection:
            return experiments.find(connection, name, view, tags or {})

    def update_experiment(self, name: str, **changes: Any) -> ExperimentRecord:
        """Set `tags` (all of them) or `archived_at` (None to reactivate)."""
        unknown = sorted(set(changes) - {"tags", "archived_at"})
        if unknown:
            raise UserErrorException(f"An experiment's {', '.join(unknown)} cannot be changed")
        with self._database.writing() as connection:
            return experiments.change(connection, name, changes)

    def delete_experiment(self, name: str) -> None:
        """Delete an experiment that has no runs."""
        with self._database.writing() as connection:
            experiments.remove(connection, name)

    # Runs

    def insert_run(self, run: RunRecord) -> RunRecord:
        """Insert a run; the record with its seq and number. One that is there already stays as it is."""
        with self._database.writing() as connection:
            return runs.add(connection, run)

    def insert_runs(self, new: Iterable[RunRecord]) -> list[RunRecord]:
        """Insert several runs, all or none."""
        with self._database.writing() as connection:
            return [runs.add(connection, run) for run in new]

    def get_run(self, run_id: str) -> RunRecord | None:
        """The run of this id."""
        with self._database.glancing() as connection:
            return runs.get(connection, run_id)

    def get_runs(self, run_ids: Sequence[str]) -> list[RunRecord]:
        """The runs of these ids, in their order; one that is not there is left out."""
        with self._database.reading() as connection:
            return runs.get_many(connection, run_ids)

    def list_runs(self, query: RunQuery) -> list[RunRecord]:
        """A page of runs, newest first, without `spec`; `before_seq` its last one gives the next."""
        with self._database.glancing() as connection:
            return listing.find(connection, query)

    def active_runs(self) -> list[RunRecord]:
        """All runs that have not ended, oldest first."""
        with self._database.glancing() as connection:
            return runs.active(connection)

    def move(
        self,
        run_id: str,
        to: Status,
        *,
        expect: Collection[Status] | None = None,
        at: float,
        jot: bool = False,
        **changes: Any,
    ) -> RunRecord | None:
        """Move a run to the state `to`, if it is in one that `to` may follow (and in `expect`, if given).

        The run as it is afterwards, or None when it was in another state: then nothing was changed.
        `started_at` is set when it begins to run, `ended_at` when it ends, and the fields in `changes`. What is only
        jotted down may be forgotten in a power cut.
        """
        with self._database.jotting() if jot else self._database.writing() as connection:
            return runs.move(connection, run_id, to, expect, at, changes)

    def finish_run(
        self,
        run_id: str,
        to: Status,
        *,
        at: float,
        batches: Sequence[Batch] = (),
        warnings: Sequence[str] = (),
        **changes: Any,
    ) -> RunRecord | None:
        """The last of a run in one step: what its journals still had, its warnings and its terminal state.

        None, and nothing done, if a journal was read further meanwhile, or the run has ended already. After a power
        cut the run may have to be brought to its end again.
        """
        try:
            with self._database.jotting() as connection:
                return ingest.finish(connection, run_id, to, at, batches, warnings, changes)
        except ingest.Overtaken:
            return None

    def has_active_children(self, run_id: str) -> bool:
        """Whether a child of this run has not ended."""
        with self._database.glancing() as connection:
            return runs.has_active_children(connection, run_id)

    def update_run(self, run_id: str, **changes: Any) -> RunRecord:
        """Set fields that do not belong to the state, such as `waiting_for`, `nodes` or `display_name`."""
        with self._database.writing() as connection:
            return runs.change(connection, run_id, changes)

    def add_warnings(self, run_id: str, *texts: str) -> None:
        """Append warnings that the run does not have yet."""
        with self._database.writing() as connection:
            runs.add_warnings(connection, runs.seq_of(connection, run_id), texts)

    def replace_warning(self, run_id: str, beginning: str, text: str) -> None:
        """Append a warning in the place of those that begin with `beginning`."""
        with self._database.writing() as connection:
            runs.add_warnings(connection, runs.seq_of(connection, run_id), [text], beginning)

    def set_tags(self, run_id: str, tags: Mapping[str, Any]) -> None:
        """Merge `tags` into those of the run; a value may be None."""
        with self._database.writing() as connection:
            labels.set_tags(connection, runs.seq_of(connection, run_id), tags)

    def remove_tags(self, run_id: str, names: Collection[str]) -> None:
        """Drop these tags; one that is not there is fine."""
        with self._database.writing() as connection:
            labels.remove_tags(connection, runs.seq_of(connection, run_id), names)

    def add_properties(self, run_id: str, properties: Mapping[str, Any]) -> None:
        """Add write-once properties: the same value again is fine, another one is an error and adds none."""
        with self._database.writing() as connection:
            taken = labels.add_properties(connection, runs.seq_of(connection, run_id), properties)
            if taken:
                raise UserErrorException(
                    f"The run {run_id!r} has another value for {', '.join(map(repr, taken))} already",
                    cause="Properties are written once.",
                    hint="Choose another name, or use tags, which can change.",
                )

    # Removing runs

    def run_family(self, run_id: str) -> list[tuple[str, Status]]:
        """A run with all its descendants and their states, parents first; empty if there is no such run."""
        with self._database.reading() as connection:
            return removal.family(connection, run_id)

    def remove_points(self, run_ids: Sequence[str], most: int = 50_000) -> bool:
        """Remove about `most` points of what these runs logged; whether there may be more."""
        with self._database.writing() as connection:
            return removal.remove_points(connection, run_ids, most)

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs whose points and children are removed, all or none."""
        with self._database.writing() as connection:
            removal.remove(connection, run_ids)

    def needed_snapshots(self) -> set[str]:
        """The ids of all snapshots that something in the workspace was made of."""
        with self._database.reading() as connection:
            return removal.needed_snapshots(connection)

    def runs_with_models(self) -> set[str]:
        """The runs from which models were registered that are still there."""
        with self._database.reading() as connection:
            return removal.runs_with_models(connection)

    def continued_runs(self) -> set[str]:
        """The runs whose files sweeps that have not ended go on with."""
        with self._database.reading() as connection:
            return removal.continued_runs(connection)

    # Metrics

    def journal_offsets(self, run_id: str) -> dict[str, int]:
        """How far each journal of the run is read, by the journal's name."""
        with self._database.reading() as connection:
            return ingest.offsets(connection, runs.seq_of(connection, run_id))

    def ingest(self, run_id: str, journal: str, start: int, end: int, records: Sequence[Record]) -> bool:
        """Apply the records that lie from `start` to `end` in a journal of the run, all or none.

        False, and nothing done, unless the journal is read exactly up to `start`. A record that cannot be
        applied is passed over and counted in the run's warnings. After a power cut it may have to be applied again:
        how far the journal is read is forgotten with it.
        """
        with self._database.streaming() as connection:
            run = runs.get(connection, run_id)
            if run is None:
                runs.seq_of(connection, run_id)
                return False
            return ingest.ingest(connection, run, journal, start, end, records)

    def metrics(self, run_id: str) -> list[MetricSummary]:
        """The run's metrics without their history, in the order they were first logged."""
        with self._database.reading() as connection:
            return series.summaries(connection, runs.seq_of(connection, run_id))

    def series(self, run_id: str, name: str | None = None, *, max_points: int | None = None) -> list[MetricSeries]:
        """The values of the run's metrics, or of the one called `name`.

        With `max_points`, a longer series is thinned to at most that many of its own points: its first and
        last, and the smallest and the largest number of each of `(max_points - 2) // 2` parts of about equal
        length (the first point of a part that has no numbers). `index` says where in the full series each is.
        """
        with self._database.reading() as connection:
            return series.read(connection, runs.seq_of(connection, run_id), name, max_points)

    def metrics_by_rank(
        self, run_id: str, name: str | None = None, *, max_points: int | None = None
    ) -> list[RankMetric]:
        """The same apart for each rank that logged to a metric; values that no rank logged come first."""
        with self._database.reading() as connection:
            return series.read_by_rank(connection, runs.seq_of(connection, run_id), name, max_points)

    # Compute targets, datastores

    def put_target(self, target: TargetRecord) -> None:
        """Add the target, or put it in the place of the one of its name."""
        with self._database.writing() as connection:
            places.put_target(connection, target)

    def get_target(self, name: str) -> TargetRecord | None:
        """The target of this name."""
        with self._database.reading() as connection:
            return next(iter(places.find_targets(connection, name)), None)

    def list_targets(self) -> list[TargetRecord]:
        """All targets, by name."""
        with self._database.reading() as connection:
            return places.find_targets(connection)

    def delete_target(self, name: str) -> bool:
        """Delete the target; whether it was there."""
        with self._database.writing() as connection:
            return places.remove(connection, schema.targets, name)

    def put_datastore(self, datastore: DatastoreRecord) -> None:
        """Add the datastore, or put it in the place of the one of its name; at most one is the default."""
        with self._database.writing() as connection:
            places.put_datastore(connection, datastore)

    def get_datastore(self, name: str) -> DatastoreRecord | None:
        """The datastore of this name."""
        with self._database.reading() as connection:
            return next(iter(places.find_datastores(connection, name)), None)

    def list_datastores(self) -> list[DatastoreRecord]:
        """All datastores, by name."""
        with self._database.reading() as connection:
            return places.find_datastores(connection)

    def delete_datastore(self, name: str) -> bool:
        """Delete the datastore; whether it was there."""
        with self._database.writing() as connection:
            return places.remove(connection, schema.datastores, name)

    def set_default_datastore(self, name: str) -> None:
        """Make this datastore the default, and no other."""
        with self._database.writing() as connection:
            places.set_default_datastore(connection, name)

    # Environments

    def put_environment(self, name: str, definition: Mapping[str, Any], at: float) -> EnvironmentRecord:
        """Register an environment: a new version, unless the newest says the same."""
        with self._database.writing() as connection:
            return environments.put(connection, name, definition, at)

    def get_environment(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> EnvironmentRecord | None:
        """The environment of this version or label; of neither: its newest version."""
        with self._database.reading() as connection:
            return environments.get(connection, name, version, label)

    def list_environments(self) -> list[EnvironmentRecord]:
        """The newest version of each environment, by name."""
        with self._database.reading() as connection:
            return environments.newest(connection)

    def label_environment(self, name: str, version: int, labels: Collection[str]) -> EnvironmentRecord:
        """Give these labels to a version, and take them from the others of its name."""
        with self._database.writing() as connection:
            return environments.label(connection, name, version, labels)

    # Datasets

    def save_dataset(self, dataset: DatasetRecord) -> DatasetRecord:
        """Keep a dataset that has no name, once."""
        with self._database.writing() as connection:
            return datasets.save(connection, dataset)

    def register_dataset(self, dataset: DatasetRecord) -> DatasetRecord:
        """Keep a dataset as the next version of its name; the same id again is the same dataset."""
        with self._database.writing() as connection:
            return datasets.register(connection, dataset)

    def get_dataset(self, dataset_id: str) -> DatasetRecord | None:
        """The dataset of this id."""
        with self._database.reading() as connection:
            return datasets.get(connection, dataset_id)

    def find_dataset(self, name: str, version: int | None = None) -> DatasetRecord | None:
        """The dataset of this name and version; without one, the newest."""
        with self._database.reading() as connection:
            return datasets.by_name(connection, name, version)

    def list_datasets(self) -> list[DatasetRecord]:
        """The newest version of each registered dataset, by name."""
        with self._database.reading() as connection:
            return datasets.newest(connection)

    def update_dataset(
        self, dataset_id: str, description: str | None = None, tags: Mapping[str, Any] | None = None
    ) -> None:
        """Set the description or all tags."""
        with self._database.writing() as connection:
            datasets.change(connection, dataset_id, description, tags)

    def forget_dataset(self, name: str) -> int:
        """Drop all versions of a name; how many there were."""
        with self._database.writing() as connection:
            return datasets.forget(connection, name)

    # Sweeps

    def insert_sweep(self, run: RunRecord, spec: str) -> RunRecord:
        """Insert the run of a sweep with the sweep's description; one that is there already stays as it is."""
        with self._database.writing() as connection:
            return sweeps.add(connection, run, spec)

    def get_sweep(self, run_id: str) -> SweepRecord | None:
        """The sweep that the run of this id is; None if it is none."""
        with self._database.reading() as connection:
            return sweeps.get(connection, run_id)

    def list_trials(self, run_id: str) -> list[TrialRecord]:
        """All trials of a sweep, by number."""
        with self._database.reading() as connection:
            return sweeps.find_trials(connection, run_id)

    def count_trials(self, run_id: str) -> dict[tuple[Status, bool], int]:
        """How many trials of a sweep are in which state; apart those that its policy cut (True)."""
        with self._database.reading() as connection:
            return sweeps.count_trials(connection, run_id)

    def best_trial(self, run_id: str, metric: str, *, largest: bool) -> TrialRecord | None:
        """The trial of a sweep with the largest or smallest number in a metric; of equal ones the first."""
        with self._database.reading() as connection:
            return sweeps.best_trial(connection, run_id, metric, largest)

    def trial_parameters(self, run_id: str) -> dict[str, Any] | None:
        """What was sampled for a run; None if it is no trial."""
        with self._database.glancing() as connection:
            return sweeps.parameters_of(connection, run_id)

    def add_trials(self, sweep_id: str, new: Sequence[tuple[TrialRecord, RunRecord]]) -> list[RunRecord]:
        """Insert trials with their runs, all or none.

        After a power cut the sweep may have to start them again; then they are the same.
        """
        with self._database.jotting() as connection:
            return sweeps.add_trials(connection, sweep_id, new)

    def judge_trials(self, sweep_id: str, decided: Sequence[tuple[int, int, str]], at: float) -> list[RunRecord]:
        """Keep what a policy said of trials: number, interval, and its words if the trial is to end.

        Those that had not ended yet are CancelRequested afterwards, and returned.
        """
        with self._database.writing() as connection:
            return sweeps.judge(connection, sweep_id, decided, at)

    def set_sweep_ending(self, run_id: str, status: Status, reason: str) -> None:
        """Settle how a sweep ends."""
        with self._database.writing() as connection:
            sweeps.set_ending(connection, run_id, str(status), reason)

    def metric_numbers(self, run_id: str, name: str, first: int = 0) -> sweeps.Numbers:
        """Of the points of a metric from the `first` on: up to which they go, and those that are numbers."""
        with self._database.glancing() as connection:
            return sweeps.numbers(connection, run_id, name, first)

    def trial_numbers(self, sweep_id: str, name: str) -> dict[int, sweeps.Numbers]:
        """The same for all trials of a sweep that have any, by the trial's number."""
        with self._database.reading() as connection:
            return sweeps.numbers_of_trials(connection, sweep_id, name)

    # Models

    def register_model(self, model: ModelRecord) -> ModelRecord:
        """Keep a model as the next version of its name; the same key again is the same model."""
        with self._database.writing() as connection:
            return models.register(connection, model)

    def model_of_key(self, key: str) -> ModelRecord | None:
        """The model of this registration."""
        with self._database.reading() as connection:
            return models.by_key(connection, key)

    def get_model(self, name: str, version: int) -> ModelRecord | None:
        """The model of this name and version."""
        with self._database.reading() as connection:
            return models.get(connection, name, version)

    def find_models(self, **equal: Any) -> list[ModelRecord]:
        """The models with these values, newest first."""
        with self._database.reading() as connection:
            return models.find(connection, equal)

    def change_model(self, name: str, version: int, **values: Any) -> None:
        """Set fields of a model."""
        with self._database.writing() as connection:
            models.change(connection, name, version, values)

    def relabel_model(
        self,
        model: ModelRecord,
        tags: Mapping[str, str],
        dropped: Iterable[str],
        properties: Mapping[str, str],
        facts: Mapping[str, Any],
    ) -> None:
        """Add tags, properties and facts and drop tags, all or nothing; a property that is there cannot change."""
        with self._database.writing() as connection:
            models.merge(connection, model, "properties", properties, (), fixed=True)
            models.merge(connection, model, "tags", tags, dropped, fixed=False)
            models.merge(connection, model, "facts", facts, (), fixed=False)

    def forget_model(self, name: str, version: int) -> None:
        """Hide a model for ever; its number is never given again."""
        with self._database.writing() as connection:
            models.forget(connection, name, version)

    def model_manifests(self) -> set[str]:
        """The contents that models have."""
        with self._database.reading() as connection:
            return models.manifests(connection)

    # Services

    def add_service(self, service: ServiceRecord) -> ServiceRecord:
        """Keep a service that is new."""
        with self._database.writing() as connection:
            return services.add(connection, service)

    def get_service(self, name: str) -> ServiceRecord | None:
        """The service of this name."""
        with self._database.reading() as connection:
            return services.get(connection, name)

    def list_services(self) -> list[ServiceRecord]:
        """All services, by name."""
        with self._database.reading() as connection:
            return services.find_all(connection)

    def change_service(self, name: str, expect: int | None = None, **changes: Any) -> ServiceRecord | None:
        """Set fields; with `expect` only while that is the generation which was asked for last (None if it was not).

        A service that is being deleted is not asked for any more.
        """
        with self._database.writing() as connection:
            return services.change(connection, name, changes, expect)

    def forget_service(self, name: str) -> bool:
        """Drop a service; whether there was one."""
        with self._database.writing() as connection:
            return services.remove(connection, name)

    def add_image(self, image: ImageRecord) -> ImageRecord:
        """Keep an image as the next version of its name; the same token again is the same image."""
        with self._database.writing() as connection:
            return services.add_image(connection, image)

    def find_images(self, name: str | None = None) -> list[ImageRecord]:
        """The images of a name, or all; newest first within each name."""
        with self._database.reading() as connection:
            return services.find_images(connection, name)

    def change_image(self, name: str, version: int, **changes: Any) -> None:
        """Set fields of an image."""
        with self._database.writing() as connection:
            services.change_image(connection, name, version, changes)

    def forget_image(self, name: str, version: int) -> bool:
        """Drop an image; whether there was one."""
        with self._database.writing() as connection:
            return services.remove_image(connection, name, version)

    # Facts

    def get_fact(self, key: str) -> Any:
        """What `put_fact` kept under this key, or None."""
        with self._database.reading() as connection:
            return places.get_fact(connection, key)

    def put_fact(self, key: str, value: Any) -> None:
        """Keep any JSON value under this key."""
        with self._database.writing() as connection:
            places.put_fact(connection, key, value)

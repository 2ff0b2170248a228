"""HyperDriveRun: a sweep, as the user sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import HyperDriveNotImplementedException, RunNotFoundException, UserErrorException
from trainmaster.job.script.metrics import metric_value
from trainmaster.sdk.run.run import Run
from trainmaster.shared.notices import warn
from trainmaster.shared.records import TERMINAL, MetricSeries
from trainmaster.shared.serialization import from_plain
from trainmaster.tuning.spec import SweepSpec
from trainmaster.tuning.tags import trial_tags
from trainmaster.tuning.view import SweepView, best_of, rank_trials

if TYPE_CHECKING:
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.sweeps.config import HyperDriveConfig
    from trainmaster.sdk.sweeps.pictures.drawing import Drawing


class HyperDriveRun(Run):
    """A sweep. Its trials are its children, with the ids `<sweep's id>_0`, `<sweep's id>_1` and so on.

    >>> best = sweep.get_best_run_by_primary_metric()       # doctest: +SKIP
    >>> best.get_metrics(), best.get_details()["runDefinition"]["arguments"]   # doctest: +SKIP
    """

    def __init__(
        self, experiment: Experiment, run_id: str | None = None, hyperdrive_config: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(experiment, run_id, **kwargs)
        self._config: HyperDriveConfig | None = hyperdrive_config

    @property
    def hyperdrive_config(self) -> HyperDriveConfig:
        """The submitted configuration, rebuilt from the sweep if another program submitted it."""
        if self._config is None:
            from trainmaster.sdk.sweeps.rebuilt import config_of

            self._config = config_of(from_plain(SweepSpec, self._call("sweeps.describe")))
        return self._config

    def _page_path(self) -> str:
        return f"sweeps/{self.id}"

    def get_view(self) -> SweepView:
        """The sweep and all its trials as plain data."""
        return from_plain(SweepView, self._call("sweeps.view"))

    def watch(self) -> Iterator[SweepView]:
        """The sweep now, at each change (at most a few per second), and once more when it has ended."""
        looking = Looking(self._call)
        with self.experiment.workspace.connection.watch(self.id) as watch:
            for _ in watch:
                yield looking.now()

    # The best trials

    def get_best_run_by_primary_metric(
        self, include_failed: bool = True, include_canceled: bool = True, include_resume_from_runs: bool = True
    ) -> Run | None:
        """The trial that reported the best value of the primary metric; None if no trial reported one.

        With `include_resume_from_runs`, the trials of the sweeps that this one resumes from are included.
        """
        views = [self.get_view(), *(self._earlier() if include_resume_from_runs else ())]
        best = best_of(views, include_failed, include_canceled)
        return None if best is None else Run.get(self.experiment.workspace, best.run_id)

    def _earlier(self) -> list[SweepView]:
        spec = self._call("sweeps.describe")
        found = []
        for run_id in spec["resume_from"]:
            # A sweep that was deleted has no trials.
            with suppress(RunNotFoundException):
                found.append(from_plain(SweepView, self._workspace_call("sweeps.view", run_id=run_id)))
        return found

    def get_children_sorted_by_primary_metric(
        self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
    ) -> list[dict[str, Any]]:
        """The trials, best first (with `reverse`, worst first), `top` of them or all; those without a value last.

        Each is a dict of `run_id`, `hyperparameters` (JSON text), `best_primary_metric` and `status`.
        """
        if isinstance(top, bool) or not isinstance(top, int):
            raise UserErrorException(f"top must be a whole number, not {top!r}", hint="0 gives all.")
        trials = rank_trials(self.get_view())
        with_value = [trial for trial in trials if trial.best is not None]
        without = [] if discard_no_metric else [trial for trial in trials if trial.best is None]
        found = [*(reversed(with_value) if reverse else with_value), *without]
        return [
            {
                "run_id": trial.run_id,
                "hyperparameters": json.dumps(dict(trial.parameters)),
                "best_primary_metric": trial.best,
                "status": str(trial.status),
            }
            for trial in (found[:top] if top > 0 else found)
        ]

    # Parameters and metrics

    def get_hyperparameters(self) -> dict[str, str]:
        """A trial's run id to its sampled parameters, as JSON text."""
        return trial_tags(self._call("sweeps.parameters"))

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: str | None = None, populate: bool = False
    ) -> dict[str, dict[str, Any]]:
        """A trial's run id to its metrics."""
        found: dict[str, dict[str, Any]] = {}
        for run_id, metrics in self._call("sweeps.metrics").items():
            series = [from_plain(MetricSeries, each) for each in metrics]
            found[run_id] = {
                each.name: metric_value(each.name, each.kind, each.values)
                for each in series
                if name in (None, each.name)
            }
        return found

    @property
    def tags(self) -> dict[str, Any]:
        """The labels, as last read. They include one for each trial, with its sampled parameters."""
        return {**super().tags, **self.get_hyperparameters()}

    def get_tags(self) -> dict[str, Any]:
        """The labels, read again."""
        return {**super().get_tags(), **self.get_hyperparameters()}

    # Pictures

    def plot(self, kind: str = "parallel") -> Drawing:
        """A picture of the sweep for notebooks, or to `save("sweep.svg")` (or .png). `kind` is parallel or scatter."""
        from trainmaster.sdk.sweeps.pictures import picture

        return picture(self.get_view(), kind)

    # Not supported

    def get_diagnostics(self) -> None:
        """Not supported, as in v1."""
        raise HyperDriveNotImplementedException("get_diagnostics is not supported for a sweep")

    def complete(self, _set_status: bool = True) -> None:
        """Has no effect: a sweep ends with its trials, or by `cancel`."""
        self._close_journal()
        self._call("runs.ingest")
        if self.get_status() not in TERMINAL:
            warn(f"complete() has no effect on sweep {self.id}: a sweep ends with its trials. cancel() ends it now")

    def fail(self, error_details: Any = None, error_code: str | None = None, _set_status: bool = True) -> None:
        """Not supported, as in v1: a sweep ends with its trials, or by `cancel`."""
        raise HyperDriveNotImplementedException("fail is not supported for a sweep", hint="Use cancel().")


class Looking:
    """Reads a sweep repeatedly, each time only what has changed."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._version = ""
        self._view: SweepView | None = None

    def now(self) -> SweepView:
        """The sweep and all its trials."""
        answer = self._call("sweeps.changes", since=self._version)
        view = from_plain(SweepView, answer["view"])
        if not answer["whole"] and self._view is not None:
            trials = {trial.number: trial for trial in (*self._view.trials, *view.trials)}
            view = replace(view, trials=tuple(trials[number] for number in sorted(trials)))
        self._version, self._view = answer["version"], view
        return view

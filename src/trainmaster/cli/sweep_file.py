"""sweep.yaml: a sweep as a file. Every error names the line, the key and what to write instead."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.cli.job_places import add_place_of_key
from trainmaster.cli.opening import LazyWorkspace
from trainmaster.cli.sweep_space import add_place, expression_of
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display.text import experiment_name
from trainmaster.sdk.job_files import values
from trainmaster.sdk.job_files.building import build_estimator
from trainmaster.sdk.job_files.keys import KEYS, OF_RUN
from trainmaster.sdk.job_files.mistakes import Mistakes
from trainmaster.sdk.job_files.reading import read_job
from trainmaster.sdk.sweeps.config import HyperDriveConfig
from trainmaster.shared.marked_yaml import Marked, read_marked
from trainmaster.shared.spelling import guess
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.policies import POLICIES, EarlyTerminationPolicy
from trainmaster.tuning.sampling import SAMPLINGS, HyperParameterSampling

EXAMPLE = """\
job:                        # what every trial runs, with the options of 'trainmaster submit'
  folder: .                 # relative to this file
  script: train.py
  arguments: --epochs 10
  pip: [torch]
space:
  --lr: loguniform(-7, -1)  # the limits are exponents of e
  --batch-size: [16, 32, 64]
sampling: random
policy: {kind: bandit, slack_factor: 0.1, delay_evaluation: 5}
metric: accuracy            # what the script logs with run.log
goal: maximize
max_total_runs: 40
max_concurrent_runs: 4
"""

KEYS_OF_SWEEP = {
    "job", "space", "sampling", "policy", "metric", "goal", "max_total_runs", "max_concurrent_runs",
    "max_duration_minutes", "max_failures_in_a_row", "resume_from", "resume_child_runs", "experiment", "tags",
}  # fmt: skip
NEEDED_KEYS = ("job", "space", "metric", "goal", "max_total_runs")
_LIMITS = ("max_total_runs", "max_concurrent_runs", "max_duration_minutes", "max_failures_in_a_row")
_JOB_KEYS = [key.name for key in KEYS if key.name not in OF_RUN]


@dataclass(frozen=True)
class SweepFile:
    """The content of the file."""

    experiment: str
    config: HyperDriveConfig
    tags: Mapping[str, str]


def read_sweep_file(path: Path, workspace: LazyWorkspace | None = None) -> SweepFile:
    """The sweep that the file describes."""
    if path.is_dir():
        raise UserErrorException(f"{path} is a folder", hint=f"Name the file: {path / 'sweep.yaml'}")
    if not path.exists():
        raise UserErrorException(f"file {path} does not exist", hint=f"Such a file looks like this:\n\n{EXAMPLE}")
    document = read_marked(path)
    keys = values.mapping(document)
    values.check_keys(keys, KEYS_OF_SWEEP)
    for name in NEEDED_KEYS:
        if name not in keys:
            raise document.error(f"{name} is missing", hint=f"Such a file looks like this:\n\n{EXAMPLE}")
    estimator = _job(keys["job"], path.parent, workspace or LazyWorkspace(None))
    config = _config(document, keys, estimator)
    folder = Path(config.source_directory).resolve().name
    experiment = _name(keys["experiment"]) if "experiment" in keys else experiment_name(folder)
    return SweepFile(experiment, config, _tags(keys.get("tags")))


def _config(document: Marked, keys: dict[str, Marked], estimator: Any) -> HyperDriveConfig:
    given = {
        "hyperparameter_sampling": _sampling(keys.get("sampling"), keys["space"]),
        "primary_metric_name": _name(keys["metric"]),
        "primary_metric_goal": _goal(keys["goal"]),
        "policy": _policy(keys.get("policy")),
        "estimator": estimator,
        **{name: keys[name].plain() for name in (*_LIMITS, "resume_from", "resume_child_runs") if name in keys},
    }
    try:
        return HyperDriveConfig(**given)
    except TrainmasterError as error:
        # The headline begins with the name of the parameter.
        first = error.headline.split()[0].rstrip(":").removeprefix("primary_").removesuffix("_name")
        raise add_place(keys.get(first, document), error) from None


def _job(section: Marked, folder: Path, workspace: LazyWorkspace) -> Any:
    mistakes = Mistakes(section.file)
    job = read_job(section, folder, _JOB_KEYS, mistakes)
    mistakes.raise_any()
    try:
        estimator = build_estimator(job, workspace.open, is_here=workspace.is_here)
        with warnings.catch_warnings():
            # Compiled only to find errors now, while their lines are known.
            warnings.simplefilter("ignore")
            estimator.compile({})
        return estimator
    except TrainmasterError as error:
        raise add_place_of_key(section, error) from None


def _sampling(section: Marked | None, space: Marked) -> HyperParameterSampling:
    kind, keys = ("random", {}) if section is None else _kind(section, SAMPLINGS)
    known = {*SAMPLINGS[kind].OPTIONS}
    if section is not None:
        values.check_keys(keys, known)
    expressions = {name: expression_of(item) for name, item in values.mapping(space).items()}
    try:
        return SAMPLINGS[kind](expressions, {name: item.plain() for name, item in keys.items()} or None)
    except TrainmasterError as error:
        raise add_place(_find_parameter(space, error) or section or space, error) from None


def _find_parameter(space: Marked, error: TrainmasterError) -> Marked | None:
    """The parameter that an error is about: the first that its headline names."""
    named = {error.headline.find(repr(name)): item for name, item in space.value.items()}
    places = [place for place in named if place >= 0]
    return named[min(places)] if places else None


def _policy(section: Marked | None) -> EarlyTerminationPolicy | None:
    if section is None:
        return None
    kind, keys = _kind(section, POLICIES)
    parameters = inspect.signature(POLICIES[kind]).parameters
    values.check_keys(keys, parameters)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in keys:
            raise section.error(f"{name} is missing", hint=f"Write {{kind: {kind}, {name}: ...}}.")
    try:
        return POLICIES[kind](**{name: item.plain() for name, item in keys.items()})
    except TrainmasterError as error:
        raise add_place(keys.get(error.headline.split()[0], section), error) from None


def _kind(section: Marked, known: Mapping[str, Any]) -> tuple[str, dict[str, Marked]]:
    """The kind, which stands alone or as the key `kind`, and the other keys."""
    hint = f"Known: {', '.join(known)}. Write {{kind: {next(iter(known))}}} to add more."
    if not isinstance(section.value, str | dict):
        raise section.error("must be a kind, alone or with more keys", hint=hint)
    keys = dict(section.value) if isinstance(section.value, dict) else {}
    if keys and "kind" not in keys:
        raise section.error("kind is missing", hint=hint)
    kind = keys.pop("kind") if keys else section
    if not isinstance(kind.value, str) or kind.value.lower() not in known:
        raise kind.error(f"unknown kind {kind.plain()!r}", hint=f"{guess(str(kind.plain()), known)}{hint}")
    return kind.value.lower(), keys


def _goal(given: Marked) -> PrimaryMetricGoal:
    try:
        return PrimaryMetricGoal(str(given.plain()).upper())
    except ValueError:
        raise given.error(
            f"must be maximize or minimize, not {given.plain()!r}", hint="Write goal: maximize, or goal: minimize."
        ) from None


def _name(given: Marked) -> str:
    values.check_kind(given, str)
    return str(given.value)


def _tags(given: Marked | None) -> dict[str, str]:
    return {} if given is None else values.pairs(given)

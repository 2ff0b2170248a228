"""sweep.yaml: a sweep as a file. Every error names the line, the key and what to write instead."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.cli.marked_yaml import Marked, read_marked
from trainmaster.cli.parsing import Options
from trainmaster.cli.sweep_space import add_place, expression_of
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display.text import experiment_name
from trainmaster.sdk.sweeps.config import HyperDriveConfig
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

_KEYS = {
    "job", "space", "sampling", "policy", "metric", "goal", "max_total_runs", "max_concurrent_runs",
    "max_duration_minutes", "max_failures_in_a_row", "resume_from", "resume_child_runs", "experiment", "tags",
}  # fmt: skip
_NEEDED = ("job", "space", "metric", "goal", "max_total_runs")
_LIMITS = ("max_total_runs", "max_concurrent_runs", "max_duration_minutes", "max_failures_in_a_row")
_JOB_KEYS: dict[str, type | tuple[type, ...]] = {
    "folder": str, "script": str, "arguments": (str, list), "target": str, "env": dict, "pip": (str, list),
    "pip_file": str, "python": str, "user_managed": bool, "max_seconds": int, "max_retries": int,
    "hang_seconds": (int, float),
}  # fmt: skip
_TYPE_NAMES = {
    "str": "text",
    "list": "a list",
    "dict": "names and values",
    "bool": "true or false",
    "int": "a whole number",
}


@dataclass(frozen=True)
class SweepFile:
    """The content of the file."""

    experiment: str
    config: HyperDriveConfig
    tags: Mapping[str, str]


def read_sweep_file(path: Path) -> SweepFile:
    """The sweep that the file describes."""
    if path.is_dir():
        raise UserErrorException(f"{path} is a folder", hint=f"Name the file: {path / 'sweep.yaml'}")
    if not path.exists():
        raise UserErrorException(f"file {path} does not exist", hint=f"Such a file looks like this:\n\n{EXAMPLE}")
    document = read_marked(path)
    keys = _mapping(document, _KEYS)
    for name in _NEEDED:
        if name not in keys:
            raise document.error(f"{name} is missing", hint=f"Such a file looks like this:\n\n{EXAMPLE}")
    run_config = _job(keys["job"], path.parent)
    config = _config(document, keys, run_config)
    folder = Path(config.source_directory).resolve().name
    experiment = _text(keys["experiment"]) if "experiment" in keys else experiment_name(folder)
    return SweepFile(experiment, config, _tags(keys.get("tags")))


def _config(document: Marked, keys: dict[str, Marked], run_config: Any) -> HyperDriveConfig:
    given = {
        "hyperparameter_sampling": _sampling(keys.get("sampling"), keys["space"]),
        "primary_metric_name": _text(keys["metric"]),
        "primary_metric_goal": _goal(keys["goal"]),
        "policy": _policy(keys.get("policy")),
        "run_config": run_config,
        **{name: keys[name].plain() for name in (*_LIMITS, "resume_from", "resume_child_runs") if name in keys},
    }
    try:
        return HyperDriveConfig(**given)
    except TrainmasterError as error:
        # The headline begins with the name of the parameter.
        first = error.headline.split()[0].rstrip(":").removeprefix("primary_").removesuffix("_name")
        raise add_place(keys.get(first, document), error) from None


def _job(section: Marked, folder: Path) -> Any:
    from trainmaster.cli.submit import script_run_config

    keys = _mapping(section, set(_JOB_KEYS))
    for name, item in keys.items():
        _check_kind(item, _JOB_KEYS[name])
    if "script" not in keys:
        raise section.error("script is missing", hint="Write script: train.py")
    plain = {name: item.plain() for name, item in keys.items()}
    options = Options(
        folder=str(_resolve(folder, plain.get("folder", "."))),
        script=plain["script"],
        arguments=_words(keys, "arguments"),
        target=plain.get("target", "local"),
        env=[f"{name}={_to_text(value)}" for name, value in plain.get("env", {}).items()],
        pip=_words(keys, "pip"),
        pip_file=str(_resolve(folder, plain["pip_file"])) if "pip_file" in plain else None,
        python=_python(folder, plain.get("python")),
        user_managed=plain.get("user_managed", False),
        max_seconds=plain.get("max_seconds"),
        max_retries=plain.get("max_retries", 0),
        hang_seconds=plain.get("hang_seconds"),
    )
    try:
        config = script_run_config(options)
        with warnings.catch_warnings():
            # Compiled only to find errors now, while their lines are known.
            warnings.simplefilter("ignore")
            config.compile({})
        return config
    except TrainmasterError as error:
        raise _name_key(section, keys, error) from None


def _name_key(section: Marked, keys: dict[str, Marked], error: TrainmasterError) -> UserErrorException:
    """The error about an option of 'trainmaster submit', with the key of the file in place of the option."""
    for name, item in keys.items():
        option = f"--{name.replace('_', '-')}"
        if option in error.headline.split():
            return item.error(error.headline.replace(option, name), error.cause, error.hint.replace(option, name))
    return add_place(section, error)


def _resolve(folder: Path, given: str) -> Path:
    return folder / Path(given).expanduser()


def _python(folder: Path, given: str | None) -> str | None:
    """A path is relative to the file's folder; a bare name is found on the PATH."""
    return str(_resolve(folder, given)) if given is not None and "/" in given else given


def _words(keys: dict[str, Marked], name: str) -> list[str]:
    """A list of words, or a text that is split as by a shell."""
    import shlex

    if name not in keys:
        return []
    given = keys[name].plain()
    try:
        return shlex.split(given) if isinstance(given, str) else [_to_text(word) for word in given]
    except ValueError as error:
        raise keys[name].error(f"{given!r} cannot be split into words", cause=str(error)) from None


def _to_text(value: Any) -> str:
    """A value as it is written in YAML."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sampling(section: Marked | None, space: Marked) -> HyperParameterSampling:
    kind, keys = ("random", {}) if section is None else _kind(section, SAMPLINGS)
    known = {*SAMPLINGS[kind].OPTIONS}
    if section is not None:
        _check_keys(section, keys, known)
    expressions = {name: expression_of(item) for name, item in _mapping(space, None).items()}
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
    _check_keys(section, keys, set(parameters))
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


def _tags(given: Marked | None) -> dict[str, str]:
    return {} if given is None else {name: _to_text(item.plain()) for name, item in _mapping(given, None).items()}


def _mapping(given: Marked, known: set[str] | None) -> dict[str, Marked]:
    if not isinstance(given.value, dict) or not given.value:
        raise given.error("must be names and values", hint="Write 'name: value', one per line.")
    found: dict[str, Marked] = given.value
    if known is not None:
        _check_keys(given, found, known)
    return found


def _check_keys(section: Marked, keys: Mapping[str, Marked], known: set[str]) -> None:
    for name, item in keys.items():
        if name not in known:
            hint = f"{guess(name, known)}Known: {', '.join(sorted(known)) or 'none'}."
            raise item.error("unknown key", hint=hint)


def _check_kind(given: Marked, kinds: type | tuple[type, ...]) -> None:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(given.value, wanted) and not (isinstance(given.value, bool) and bool not in wanted):
        return
    words = " or ".join(dict.fromkeys(_TYPE_NAMES.get(kind.__name__, "a number") for kind in wanted))
    raise given.error(f"must be {words}, not {given.plain()!r}")


def _text(given: Marked) -> str:
    _check_kind(given, str)
    return str(given.value)

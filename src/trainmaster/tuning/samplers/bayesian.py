"""Bayesian sampling with Optuna, one trial at a time.

Nothing of Optuna is stored: each call creates a study in memory from our own records, with random numbers that depend
on the seed and the trial. So the same records always give the same parameters, even after a dispatcher was killed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.samplers import draw
from trainmaster.tuning.samplers.observation import Observation
from trainmaster.tuning.space import (
    Branches,
    Constant,
    Leaf,
    Parameters,
    Space,
    branch_of,
    is_conditional,
    round_to,
)
from trainmaster.tuning.spec import SamplingSpec

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

# Limits the quantiles of recorded values to those with a finite value.
_LEAST_QUANTILE = 1e-12


def propose(
    space: Space, sampling: SamplingSpec, goal: PrimaryMetricGoal, index: int, observations: Sequence[Observation]
) -> Parameters:
    """The parameters of trial `index`, based on the observations of the others."""
    check_installed(sampling.algorithm)
    import optuna

    study = optuna.create_study(
        storage=optuna.storages.InMemoryStorage(),
        sampler=_sampler(space, sampling, index),
        direction="maximize" if goal == PrimaryMetricGoal.MAXIMIZE else "minimize",
        # A fixed name: Optuna would otherwise create and log a random one.
        study_name="sweep",
    )
    study.add_trials([_trial(space, each) for each in observations])
    return _sample(study.ask(), space, "")


def check_installed(algorithm: str) -> None:
    """Raises an error if the packages of this algorithm are not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise HyperDriveConfigException(
            "Bayesian sampling needs Optuna, which is not installed", hint="pip install 'trainmaster[tuning]'"
        )
    missing = [name for name in ("scipy", "torch") if importlib.util.find_spec(name) is None]
    if algorithm == "gp" and missing:
        raise HyperDriveConfigException(
            f"the algorithm 'gp' needs {' and '.join(missing)}, which is not installed",
            hint=f"pip install {' '.join(missing)}, or use the algorithm 'tpe'.",
        )


def _sampler(space: Space, sampling: SamplingSpec, index: int) -> BaseSampler:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = draw.number(sampling.seed, "bayesian", index, bits=32)
    if sampling.algorithm == "gp":
        return optuna.samplers.GPSampler(seed=seed)
    # Conditional parameters can only be sampled independently.
    return optuna.samplers.TPESampler(seed=seed, multivariate=not is_conditional(space), constant_liar=True)


def _sample(trial: Trial, space: Space, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, node in space.items():
        if isinstance(node, Constant):
            found[name] = node.value
        elif isinstance(node, Branches):
            chosen = _suggest(trial, path + name, _categories(len(node.options)))
            found[name] = _sample(trial, node.options[chosen], f"{path}{name}/{chosen}/")
        else:
            found[name] = _to_value(node, _suggest(trial, path + name, _distribution(node)))
    return found


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step)
    assert isinstance(distribution, FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def _trial(space: Space, observation: Observation) -> FrozenTrial:
    from optuna.trial import TrialState, create_trial

    answers = list(_answers(space, observation.parameters, ""))
    state, value = TrialState.RUNNING, None
    if observation.outcome != "going":
        usable = observation.value is not None and math.isfinite(observation.value)
        state, value = (TrialState.COMPLETE, observation.value) if usable else (TrialState.FAIL, None)
    return create_trial(
        state=state,
        value=value,
        params={name: answer for name, answer, _ in answers},
        distributions={name: distribution for name, _, distribution in answers},
    )


def _answers(space: Space, parameters: Parameters, path: str) -> Iterator[tuple[str, Any, BaseDistribution]]:
    """What Optuna would have suggested for recorded `parameters`; those outside of this space are left out."""
    for name, node in space.items():
        if name not in parameters or isinstance(node, Constant):
            continue
        value = parameters[name]
        if isinstance(node, Branches):
            chosen = branch_of(node, value)
            if chosen is not None:
                yield path + name, chosen, _categories(len(node.options))
                yield from _answers(node.options[chosen], value, f"{path}{name}/{chosen}/")
        else:
            answer = _to_answer(node, value)
            if answer is not None:
                yield path + name, answer, _distribution(node)


def _categories(count: int) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution

    return CategoricalDistribution(tuple(range(count)))


def _distribution(leaf: Leaf) -> BaseDistribution:
    """The distribution of `leaf` for Optuna: options by number, and normal distributions by quantile."""
    from optuna.distributions import FloatDistribution, IntDistribution

    kind, arguments = leaf.kind, leaf.arguments
    if kind == "choice":
        return _categories(len(leaf.options))
    if kind == "randint":
        return IntDistribution(0, arguments[0] - 1)
    if kind == "quniform":
        values = _multiples(leaf)
        return IntDistribution(values[0], values[-1], step=values.step)
    if kind == "uniform":
        return FloatDistribution(arguments[0], arguments[1])
    if kind.endswith("loguniform"):
        return FloatDistribution(*_bounds(leaf), log=True)
    return FloatDistribution(_LEAST_QUANTILE, 1 - _LEAST_QUANTILE)


def _to_value(leaf: Leaf, answer: Any) -> Any:
    kind, arguments = leaf.kind, leaf.arguments
    if kind == "choice":
        return leaf.options[answer]
    if kind.endswith("normal"):
        answer = _value_at(leaf, answer)
    return round_to(answer, arguments[2]) if kind in ("qloguniform", "qnormal", "qlognormal") else answer


def _to_answer(leaf: Leaf, value: Any) -> Any:
    """The suggestion that leads to `value`; None if there is none."""
    kind, arguments = leaf.kind, leaf.arguments
    if kind == "choice":
        return leaf.options.index(value) if value in leaf.options else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "randint":
        return value if value in range(arguments[0]) else None
    if kind == "quniform":
        return value if value in _multiples(leaf) else None
    if kind == "uniform":
        return float(value) if arguments[0] <= value <= arguments[1] else None
    if kind.endswith("loguniform"):
        # A rounded value may be slightly outside.
        low, high = _bounds(leaf)
        return min(max(float(value), low), high)
    return _quantile(leaf, value)


def _multiples(leaf: Leaf) -> range:
    """The values of a `quniform`, without those that only a single point is rounded to."""
    low, high, q = leaf.arguments
    return range(math.floor(low / q + 0.5) * q, math.ceil(high / q - 0.5) * q + 1, q)


def _bounds(leaf: Leaf) -> tuple[float, float]:
    return math.exp(leaf.arguments[0]), math.exp(leaf.arguments[1])


def _value_at(leaf: Leaf, quantile: float) -> float:
    mu, sigma = leaf.arguments[:2]
    number = NormalDist(mu, sigma).inv_cdf(quantile) if sigma else mu
    return math.exp(number) if leaf.kind.endswith("lognormal") else float(number)


def _quantile(leaf: Leaf, value: float) -> float:
    mu, sigma = leaf.arguments[:2]
    if leaf.kind.endswith("lognormal"):
        value = math.log(value) if value > 0 else -math.inf
    quantile = NormalDist(mu, sigma).cdf(value) if sigma else 0.5
    return min(max(quantile, _LEAST_QUANTILE), 1 - _LEAST_QUANTILE)

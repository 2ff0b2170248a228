"""How the parameters of trials are chosen, as users write it. `samplers/` does the work.

`properties` (reserved in v1) may have `seed`, an integer: the same seed gives the same trials. Without it, every sweep
gets a random seed, which is stored with it. Bayesian sampling also takes `algorithm`: `tpe` or `gp`. `gp` needs scipy
and torch, and does not support parameters that depend on others.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.shared.notices import warn
from trainmaster.tuning import checks
from trainmaster.tuning.space import Leaf, Space, is_conditional, leaves, plain_space, read_space
from trainmaster.tuning.spec import SamplingKind, SamplingSpec

_MAX_POINTS = 100_000
_SEED_BITS = 32


class HyperParameterSampling:
    """The base class of all kinds of sampling; use one of the others."""

    KIND: ClassVar[SamplingKind]
    OPTIONS: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(self, parameter_space: Mapping[str, Any], properties: Mapping[str, Any] | None = None) -> None:
        self._space = plain_space(parameter_space)
        self._properties = _properties(type(self), properties)
        self._check(read_space(self._space))

    @property
    def parameter_space(self) -> dict[str, Any]:
        """Parameter name to expression."""
        return dict(self._space)

    @property
    def parameter_count(self) -> int:
        """The number of parameters, including those of branches."""
        return sum(1 for _ in leaves(read_space(self._space)))

    def compile(self) -> SamplingSpec:
        """The kind of sampling as plain data, with a new seed if none was given."""
        seed = self._properties.get("seed")
        return SamplingSpec(
            kind=self.KIND,
            seed=secrets.randbits(_SEED_BITS) if seed is None else checks.check_integer("seed", seed, 0),
            algorithm=self._properties.get("algorithm", "tpe"),
        )

    def _check(self, space: Space) -> None:
        """Raises an error for a space that this kind of sampling does not support."""


class RandomParameterSampling(HyperParameterSampling):
    """Chooses parameters at random, independently for each trial; every expression is allowed."""

    KIND = "random"


class GridParameterSampling(HyperParameterSampling):
    """Tries every combination of the given values once; only `choice` is allowed."""

    KIND = "grid"

    def _check(self, space: Space) -> None:
        for name, leaf in leaves(space):
            if leaf.kind != "choice":
                raise HyperDriveConfigException(
                    f"GridParameterSampling allows only choice, but parameter {name!r} is {leaf.kind}",
                    hint="Give its values with choice(...), or use RandomParameterSampling.",
                )


class BayesianParameterSampling(HyperParameterSampling):
    """Chooses parameters based on the results of earlier trials.

    Unlike in v1, every expression and an early termination policy are allowed. A trial that was cut counts with its
    best value.
    """

    KIND = "bayesian"
    OPTIONS = ("seed", "algorithm")

    def _check(self, space: Space) -> None:
        for name, leaf in leaves(space):
            if leaf.kind == "choice":
                _check_values(name, leaf)
            if leaf.kind == "quniform":
                _check_points(name, leaf)
        algorithm = self._properties.get("algorithm", "tpe")
        if algorithm not in ("tpe", "gp"):
            raise HyperDriveConfigException(f"algorithm must be 'tpe' or 'gp', not {algorithm!r}")
        if algorithm == "gp" and is_conditional(space):
            raise HyperDriveConfigException(
                "the algorithm 'gp' does not support parameters that depend on others", hint="Use the algorithm 'tpe'."
            )


SAMPLINGS: Mapping[str, type[HyperParameterSampling]] = {
    each.KIND: each for each in (RandomParameterSampling, GridParameterSampling, BayesianParameterSampling)
}
"""The samplings by their kinds; the options of each are fields of SamplingSpec."""


def _properties(kind: type[HyperParameterSampling], given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise HyperDriveConfigException(f"properties must be a dict, not {given!r}")
    if given.get("seed") is not None:
        checks.check_integer("seed", given["seed"], 0)
    unknown = sorted(str(name) for name in given if name not in kind.OPTIONS)
    if unknown:
        warn(f"properties of {kind.__name__}: {', '.join(unknown)} is unknown and ignored")
    return {name: value for name, value in given.items() if name in kind.OPTIONS}


def _check_values(name: str, leaf: Leaf) -> None:
    kinds = {isinstance(option, str) for option in leaf.options}
    wrong = [option for option in leaf.options if not isinstance(option, int | float | str)]
    if wrong:
        raise HyperDriveConfigException(
            f"BayesianParameterSampling: parameter {name!r} has a value that is neither a number nor text: {wrong[0]!r}"
        )
    if len(kinds) > 1:
        raise HyperDriveConfigException(
            f"BayesianParameterSampling: parameter {name!r} mixes numbers and text",
            hint="Write all of its values as numbers, or all as text.",
        )


def _check_points(name: str, leaf: Leaf) -> None:
    low, high, q = leaf.arguments
    if not (float(low).is_integer() and float(high).is_integer()):
        raise HyperDriveConfigException(
            f"BayesianParameterSampling: the limits of quniform must be integers, but {name!r} has {low} and {high}"
        )
    points = int((high - low) // q) + 1
    if points > _MAX_POINTS:
        raise HyperDriveConfigException(
            f"BayesianParameterSampling: quniform may have {_MAX_POINTS} values, but {name!r} has {points}",
            hint="Use a larger q, or uniform.",
        )

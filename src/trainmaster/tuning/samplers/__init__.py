"""From a space, a seed and the number of a trial to its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.tuning.samplers.observation import Observation
from trainmaster.tuning.space import Parameters
from trainmaster.tuning.spec import SweepSpec

__all__ = ["Observation", "next_parameters"]


def next_parameters(spec: SweepSpec, index: int, observations: Sequence[Observation]) -> Parameters | None:
    """The parameters of the `index`-th sampled trial; None if the space is exhausted (a grid).

    The same arguments give the same parameters. Bayesian sampling needs `observations` of the earlier trials, including
    the running ones; random and grid sampling ignore them.
    """
    sampling, space = spec.sampling, spec.nodes
    if sampling.kind == "grid":
        from trainmaster.tuning.samplers import grid

        return grid.parameters_at(space, index)
    if sampling.kind == "random":
        from trainmaster.tuning.samplers import random

        return random.parameters_at(space, sampling.seed, index)
    from trainmaster.tuning.samplers import bayesian

    return bayesian.propose(space, sampling, spec.goal, index, observations)

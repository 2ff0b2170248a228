"""Every policy and sampler of ours does what `trainmaster.testing` asks of all of them."""

from __future__ import annotations

import pytest

from trainmaster.testing import PolicyConformance, SamplerConformance
from trainmaster.tuning.parameter_expressions import (
    choice,
    lognormal,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
)
from trainmaster.tuning.policies import (
    POLICIES,
    BanditPolicy,
    EarlyTerminationPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    TruncationSelectionPolicy,
)
from trainmaster.tuning.sampling import (
    SAMPLINGS,
    BayesianParameterSampling,
    GridParameterSampling,
    HyperParameterSampling,
    RandomParameterSampling,
)

OUR_POLICIES = {
    "none": NoTerminationPolicy(),
    "bandit by factor": BanditPolicy(slack_factor=0.1),
    "bandit by amount": BanditPolicy(evaluation_interval=2, slack_amount=0.2, delay_evaluation=3),
    "median": MedianStoppingPolicy(),
    "median later": MedianStoppingPolicy(evaluation_interval=2, delay_evaluation=4),
    "truncation": TruncationSelectionPolicy(40),
    "truncation of nearly all": TruncationSelectionPolicy(99, evaluation_interval=3),
    "hyperband": HyperbandPolicy(),
    "hyperband with brackets": HyperbandPolicy(min_intervals=2, reduction_factor=2, brackets=3),
}
NUMBERS = {
    "--randint": randint(7),
    "--uniform": uniform(-1, 1),
    "--quniform": quniform(1, 20, 3),
    "--loguniform": loguniform(-5, 0),
    "--qloguniform": qloguniform(0, 4, 2),
    "--normal": normal(3, 2),
    "--constant": normal(3, 0),
    "--qnormal": qnormal(30, 9, 5),
    "--lognormal": lognormal(0, 1),
    "--qlognormal": qlognormal(1, 1, 2),
}
CHOICES = {"--optimizer": choice("sgd", "adam"), "--batch": choice(16, 32, 64), "--flag": choice(0, 1)}
BRANCHES = {
    "--lr": choice(0.1, 0.01),
    "optimizer": choice({"--name": "sgd", "--momentum": choice(0.5, 0.9)}, {"--name": "adam"}),
}
SEED = {"seed": 7}
OUR_SAMPLINGS = {
    "random": RandomParameterSampling({**NUMBERS, **CHOICES}, properties=SEED),
    "random with branches": RandomParameterSampling(BRANCHES, properties=SEED),
    "grid": GridParameterSampling(CHOICES),
    "grid with branches": GridParameterSampling(BRANCHES),
    "bayesian": BayesianParameterSampling({**NUMBERS, **CHOICES}, properties=SEED),
    "bayesian with branches": BayesianParameterSampling(BRANCHES, properties=SEED),
}


class TestOurPolicies(PolicyConformance):
    @pytest.fixture(params=OUR_POLICIES.values(), ids=OUR_POLICIES.keys())
    def policy(self, request: pytest.FixtureRequest) -> EarlyTerminationPolicy:
        policy: EarlyTerminationPolicy = request.param
        return policy


class TestOurSamplers(SamplerConformance):
    @pytest.fixture(params=OUR_SAMPLINGS.values(), ids=OUR_SAMPLINGS.keys())
    def sampling(self, request: pytest.FixtureRequest) -> HyperParameterSampling:
        sampling: HyperParameterSampling = request.param
        return sampling


def test_every_kind_is_tested() -> None:
    assert {policy.compile().kind for policy in OUR_POLICIES.values()} == set(POLICIES)
    assert {sampling.KIND for sampling in OUR_SAMPLINGS.values()} == set(SAMPLINGS)

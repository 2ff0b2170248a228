"""Sweeps as a person describes and holds them. Each name is loaded when it is first used."""

from importlib import import_module
from typing import Any

_HOMES = {
    "BanditPolicy": "trainmaster.tuning.policies",
    "BayesianParameterSampling": "trainmaster.tuning.sampling",
    "EarlyTerminationPolicy": "trainmaster.tuning.policies",
    "GridParameterSampling": "trainmaster.tuning.sampling",
    "HyperDriveConfig": "trainmaster.sdk.sweeps.config",
    "HyperDriveRun": "trainmaster.sdk.sweeps.run",
    "HyperDriveRunConfig": "trainmaster.sdk.sweeps.config",
    "HyperParameterSampling": "trainmaster.tuning.sampling",
    "HyperbandPolicy": "trainmaster.tuning.policies",
    "MedianStoppingPolicy": "trainmaster.tuning.policies",
    "NoTerminationPolicy": "trainmaster.tuning.policies",
    "PrimaryMetricGoal": "trainmaster.tuning.goal",
    "RandomParameterSampling": "trainmaster.tuning.sampling",
    "TruncationSelectionPolicy": "trainmaster.tuning.policies",
    "choice": "trainmaster.tuning.parameter_expressions",
    "lognormal": "trainmaster.tuning.parameter_expressions",
    "loguniform": "trainmaster.tuning.parameter_expressions",
    "normal": "trainmaster.tuning.parameter_expressions",
    "qlognormal": "trainmaster.tuning.parameter_expressions",
    "qloguniform": "trainmaster.tuning.parameter_expressions",
    "qnormal": "trainmaster.tuning.parameter_expressions",
    "quniform": "trainmaster.tuning.parameter_expressions",
    "randint": "trainmaster.tuning.parameter_expressions",
    "uniform": "trainmaster.tuning.parameter_expressions",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value

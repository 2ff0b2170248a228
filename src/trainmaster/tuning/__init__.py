"""Sweeps: spaces, sampling, policies, and what to do next. Each name is loaded when it is first used."""

from importlib import import_module
from typing import Any

_HOMES = {
    "BanditPolicy": "policies",
    "BayesianParameterSampling": "sampling",
    "EarlyTerminationPolicy": "policies",
    "GridParameterSampling": "sampling",
    "HyperDriveConfig": "config",
    "HyperDriveRun": "run",
    "HyperDriveRunConfig": "config",
    "HyperParameterSampling": "sampling",
    "HyperbandPolicy": "policies",
    "MedianStoppingPolicy": "policies",
    "NoTerminationPolicy": "policies",
    "PrimaryMetricGoal": "goal",
    "RandomParameterSampling": "sampling",
    "TruncationSelectionPolicy": "policies",
    "choice": "parameter_expressions",
    "lognormal": "parameter_expressions",
    "loguniform": "parameter_expressions",
    "normal": "parameter_expressions",
    "qlognormal": "parameter_expressions",
    "qloguniform": "parameter_expressions",
    "qnormal": "parameter_expressions",
    "quniform": "parameter_expressions",
    "randint": "parameter_expressions",
    "uniform": "parameter_expressions",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"trainmaster.tuning.{home}"), name)
    return value

"""What v1 could do and this release cannot yet: the one place where that is said.

The classes and functions of sweeps, models and services can be imported by their names; whoever uses one is told in
which release it comes.
"""

from __future__ import annotations

from typing import Any, NoReturn

_SWEEPS = ("0.2", "sweeps", "Until then submit one run for each set of parameters.")
_MODELS = ("0.3", "models", "Until then the files of a run can be had with run.download_file(name).")
_SERVICES = ("0.3", "services", "Until then load the files of the run in a program of your own.")

_LATER = {
    "HyperDriveConfig": _SWEEPS,
    "HyperDriveRunConfig": _SWEEPS,
    "HyperDriveRun": _SWEEPS,
    "PrimaryMetricGoal": _SWEEPS,
    "HyperParameterSampling": _SWEEPS,
    "RandomParameterSampling": _SWEEPS,
    "GridParameterSampling": _SWEEPS,
    "BayesianParameterSampling": _SWEEPS,
    "EarlyTerminationPolicy": _SWEEPS,
    "BanditPolicy": _SWEEPS,
    "MedianStoppingPolicy": _SWEEPS,
    "TruncationSelectionPolicy": _SWEEPS,
    "NoTerminationPolicy": _SWEEPS,
    "choice": _SWEEPS,
    "randint": _SWEEPS,
    "uniform": _SWEEPS,
    "quniform": _SWEEPS,
    "loguniform": _SWEEPS,
    "qloguniform": _SWEEPS,
    "normal": _SWEEPS,
    "qnormal": _SWEEPS,
    "lognormal": _SWEEPS,
    "qlognormal": _SWEEPS,
    "Model": _MODELS,
    "ModelPackage": _MODELS,
    "ResourceConfiguration": _MODELS,
    "InferenceConfig": _SERVICES,
    "Image": _SERVICES,
    "ContainerImage": _SERVICES,
    "Webservice": _SERVICES,
    "AciWebservice": _SERVICES,
    "AksWebservice": _SERVICES,
    "LocalWebservice": _SERVICES,
}


class _Later(type):
    """A class that can be imported, named in annotations and asked for with isinstance, and not used."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(cls.__name__, *_LATER[cls.__name__])

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            # Python itself, notebooks and documentation tools ask for these.
            raise AttributeError(name)
        refuse(f"{cls.__name__}.{name}", *_LATER[cls.__name__])


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    version, what, _ = _LATER[name]
    value = globals()[name] = _Later(name, (), {"__doc__": f"Comes with {what} in Trainmaster {version}."})
    return value


def refuse(used: str, version: str, what: str, instead: str) -> NoReturn:
    """Says that `used` is not in this release."""
    raise NotImplementedError(f"{used}: {what} arrive in Trainmaster {version}. {instead}")


def register_model() -> NoReturn:
    """Models have a release of their own."""
    refuse("run.register_model", *_MODELS)


def secrets(method: str) -> NoReturn:
    """Secrets come with the workspace's key store."""
    raise NotImplementedError(
        f"{method}: secrets arrive in a later release of Trainmaster. "
        "Until then hand them to the job in environment_variables."
    )


def mlflow_tracking() -> NoReturn:
    """MLflow speaks to a server."""
    raise NotImplementedError(
        "workspace.get_mlflow_tracking_uri: MLflow tracking arrives in a later release of Trainmaster. "
        "Until then log with run.log(name, value)."
    )

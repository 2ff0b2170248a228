"""Azure's curated environments: their names, and the packages and Python that replace them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from trainmaster.environments import pythons
from trainmaster.environments.frameworks import CHAINER, PYTORCH, SKLEARN, TENSORFLOW, Framework, Release, release_of
from trainmaster.environments.requirement import package_name
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.hardware import gpus
from trainmaster.shared.job_spec import Accelerator

_PREFIXES = ("azureml", "microsoft")
_FRAMEWORKS = (
    ("pytorch", PYTORCH),
    ("tensorflow", TENSORFLOW),
    ("chainer", CHAINER),
    ("scikit-learn", SKLEARN),
    ("sklearn", SKLEARN),
)
_EMPTY = "azureml-minimal"
_NUMBER = r"(?:-(\d+\.\d+(?:\.\d+)?))?"


@dataclass(frozen=True)
class Time:
    """The further packages of Azure's environments in one period."""

    pythons: str
    """The Pythons, best first."""
    companions: tuple[str, ...]


_2019 = Time("3.7 3.6", ("numpy<1.17", "pandas<1", "scipy<1.4"))
_2020 = Time("3.7 3.6", ("numpy<1.20", "pandas<1.2", "scipy<1.6"))
_2021 = Time("3.7 3.8", ("numpy<1.22", "pandas<1.4", "scipy<1.8"))
_2022 = Time("3.8", ("numpy<1.24", "pandas<1.6", "scipy<1.11"))
_2024 = Time("3.10", ("numpy<2", "pandas<2.3", "scipy<1.14"))
_NOW = Time("", ("numpy", "pandas", "scipy"))
# The first release of each framework in each period, oldest first.
_TIMES: dict[str, tuple[tuple[str, Time], ...]] = {
    "PyTorch": (("0", _2019), ("1.4", _2020), ("1.8", _2021), ("1.11", _2022), ("2.1", _2024), ("2.6", _NOW)),
    "TensorFlow": (("0", _2019), ("2.0", _2020), ("2.4", _2021), ("2.8", _2022), ("2.13", _2024), ("2.19", _NOW)),
    "SKLearn": (("0", _2019), ("0.22", _2020), ("0.24", _2021), ("1.1", _2022), ("1.3", _2024), ("1.6", _NOW)),
    "Chainer": (("0", _2019),),
}
# Azure's environments without one of these frameworks: the package in the name, and its period.
_TUTORIAL = ("scikit-learn<0.23", "matplotlib<3.3", "tqdm")
_OTHERS = (
    ("lightgbm", (("0", _2021), ("3.3", _2022), ("4", _2024))),
    ("xgboost", (("0", _2020), ("1.3", _2021), ("1.6", _2022), ("2", _2024))),
    ("onnxruntime", (("0", _2021), ("1.11", _2022), ("1.16", _2024))),
)
NAMES = [
    "AzureML-Chainer-5.1.0-CPU",
    "AzureML-Chainer-5.1.0-GPU",
    "AzureML-Minimal",
    "AzureML-PyTorch-1.0-CPU",
    "AzureML-PyTorch-1.0-GPU",
    "AzureML-PyTorch-1.1-CPU",
    "AzureML-PyTorch-1.1-GPU",
    "AzureML-PyTorch-1.2-CPU",
    "AzureML-PyTorch-1.2-GPU",
    "AzureML-PyTorch-1.3-CPU",
    "AzureML-PyTorch-1.3-GPU",
    "AzureML-PyTorch-1.4-CPU",
    "AzureML-PyTorch-1.4-GPU",
    "AzureML-PyTorch-1.5-CPU",
    "AzureML-PyTorch-1.5-GPU",
    "AzureML-PyTorch-1.6-CPU",
    "AzureML-PyTorch-1.6-GPU",
    "AzureML-Scikit-learn-0.20.3",
    "AzureML-TensorFlow-1.10-CPU",
    "AzureML-TensorFlow-1.10-GPU",
    "AzureML-TensorFlow-1.12-CPU",
    "AzureML-TensorFlow-1.12-GPU",
    "AzureML-TensorFlow-1.13-CPU",
    "AzureML-TensorFlow-1.13-GPU",
    "AzureML-TensorFlow-2.0-CPU",
    "AzureML-TensorFlow-2.0-GPU",
    "AzureML-TensorFlow-2.1-CPU",
    "AzureML-TensorFlow-2.1-GPU",
    "AzureML-TensorFlow-2.2-CPU",
    "AzureML-TensorFlow-2.2-GPU",
    "AzureML-TensorFlow-2.3-CPU",
    "AzureML-TensorFlow-2.3-GPU",
    "AzureML-Tutorial",
    "AzureML-lightgbm-3.2-ubuntu18.04-py37-cpu",
    "AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu",
    "AzureML-pytorch-1.8-ubuntu18.04-py37-cuda11-gpu",
    "AzureML-pytorch-1.9-ubuntu18.04-py37-cuda11-gpu",
    "AzureML-pytorch-1.10-ubuntu18.04-py38-cuda11-gpu",
    "AzureML-sklearn-0.24-ubuntu18.04-py37-cpu",
    "AzureML-sklearn-1.0-ubuntu20.04-py38-cpu",
    "AzureML-tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu",
    "AzureML-tensorflow-2.5-ubuntu20.04-py38-cuda11-gpu",
    "AzureML-tensorflow-2.6-ubuntu20.04-py38-cuda11-gpu",
    "AzureML-tensorflow-2.7-ubuntu20.04-py38-cuda11-gpu",
    "AzureML-ACPT-pytorch-1.11-py38-cuda11.3-gpu",
    "AzureML-ACPT-pytorch-1.12-py38-cuda11.6-gpu",
    "azureml-sklearn-1.1",
    "azureml-sklearn-1.5",
    "azureml-tensorflow-2.16",
]
"""The best known of Azure's names, for lists. `stand_in` accepts others of the same form."""


@dataclass(frozen=True)
class StandIn:
    """What replaces a curated environment."""

    packages: tuple[str, ...] = ()
    python: str = ""
    """The Python; empty for the one that submits."""
    accelerator: Accelerator = "cpu"
    optional: tuple[str, ...] = ()
    """Packages that are installed if the package index has them."""


def is_curated(name: str) -> bool:
    """Whether Azure reserved this name for its own environments.

    >>> [is_curated(name) for name in ("AzureML-Minimal", "mine")]
    [True, False]
    """
    return name.lower().startswith(_PREFIXES)


def stand_in(name: str) -> StandIn:
    """The framework in a curated name, in that release, with the packages and the Python of its period.

    Names without a known framework are refused.

    >>> stand_in("AzureML-Minimal").packages
    ()
    """
    lower = name.lower()
    if lower.startswith(_EMPTY):
        return StandIn(python=_choose_python(_python_in_name(lower).split()))
    if lower == "azureml-tutorial":
        return StandIn((*_TUTORIAL, *_2020.companions), _choose_python(_2020.pythons.split()))
    framework, version = _find_framework(name)
    if framework is not None and version:
        return _stand_in_for_framework(lower, release_of(framework, version))
    for package, times in _OTHERS:
        found = re.search(rf"{package}{_NUMBER}", lower)
        if found and found[1]:
            return _stand_in_for_package(lower, package, found[1], _time_of(found[1], times))
    raise _refusal(name)


def _stand_in_for_framework(name: str, release: Release) -> StandIn:
    time = _time_of(release.name, _TIMES[release.framework.name])
    use_gpu = name.endswith("gpu") and bool(gpus())
    wanted = [each for each in f"{_python_in_name(name)} {time.pythons}".split() if each in release.pythons]
    return StandIn(
        packages=_together(release.packages(use_gpu), time.companions),
        python=_choose_python([*wanted, *([] if wanted else [pythons.running_version()]), *release.pythons]),
        accelerator="cuda" if use_gpu else "cpu",
        optional=release.optional_beside(()),
    )


def _stand_in_for_package(name: str, package: str, version: str, time: Time) -> StandIn:
    wanted = f"{_python_in_name(name)} {time.pythons}".split()
    return StandIn((f"{package}=={version}.*", "scikit-learn", *time.companions), _choose_python(wanted))


def _together(packages: Collection[str], companions: Collection[str]) -> tuple[str, ...]:
    """The packages of a release, and the further packages that it does not include."""
    named = {package_name(package) for package in packages}
    return (*packages, *(each for each in companions if package_name(each) not in named))


def _python_in_name(name: str) -> str:
    """The Python in a name: `3.7` of `...-py37-cpu`."""
    found = re.search(r"-py3(\d+)(?:-|$)", name)
    return f"3.{found[1]}" if found else ""


def _choose_python(wanted: list[str]) -> str:
    """The first Python that this machine has, else the first; empty for the running one."""
    chosen = next((each for each in wanted if each in pythons.all_pythons()), wanted[0] if wanted else "")
    return "" if chosen == pythons.running_version() else chosen


def _time_of(version: str, times: Collection[tuple[str, Time]]) -> Time:
    return [time for since, time in times if _order(since) <= _order(version)][-1]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def horovod_for(name: str) -> str:
    """The release of Horovod in a curated environment, for runs under MPI; empty if it had none.

    >>> horovod_for("AzureML-PyTorch-1.6-GPU"), horovod_for("mine")
    ('0.19.5', '')
    """
    framework, version = _find_framework(name) if is_curated(name) else (None, "")
    return release_of(framework, version).era.horovod if framework is not None and version else ""


def _find_framework(name: str) -> tuple[Framework | None, str]:
    for part, framework in _FRAMEWORKS:
        found = re.search(rf"{part}{_NUMBER}", name.lower())
        if found:
            return framework, found[1] or ""
    return None, ""


def _refusal(name: str) -> UserErrorException:
    return UserErrorException(
        f"{name!r} is a curated environment of Azure whose packages are not known",
        hint="Environment.list(workspace) names the known ones. Or use Environment('my-environment') with "
        "CondaDependencies.create(pip_packages=[...]).",
    )

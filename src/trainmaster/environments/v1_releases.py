"""Limits packages without a version to the releases that scripts for v1's estimators were written for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from trainmaster.environments.requirement import is_open, package_name
from trainmaster.shared.job_spec import EnvironmentSpec

PYTHONS = ("3.8", "3.7", "3.6")
"""The Pythons for which these releases have builds, best first."""

# Newer releases removed np.float and sklearn.externals.joblib, among others.
_LIMITS = {
    "matplotlib": "matplotlib<3.4",
    "numpy": "numpy<1.20",
    "pandas": "pandas<1.2",
    "scikit-learn": "scikit-learn<0.23",
    "scipy": "scipy<1.6",
}
_BELOW_ALL = ("numpy", "scipy")
# Frameworks are gigabytes per release; their own estimators choose the release.
_TORCH = ("pytorch", "torch", "torchaudio", "torchtext", "torchvision")
_TENSORFLOW = ("keras", "tensorflow", "tensorflow-cpu", "tensorflow-gpu")
_FRAMEWORKS = frozenset((*_TORCH, *_TENSORFLOW, "horovod", "mxnet"))


def are_of_v1(spec: EnvironmentSpec) -> bool:
    """Whether an environment leaves open the versions of packages that v1 scripts depend on.

    >>> are_of_v1(EnvironmentSpec(conda_packages=("scikit-learn",))), are_of_v1(EnvironmentSpec(pip_packages=("tqdm",)))
    (True, False)
    """
    named = [each for each in (*spec.pip_packages, *spec.conda_packages) if not each.startswith("-")]
    names = {package_name(each) for each in named}
    is_ours = not (spec.user_managed or spec.container or spec.python_version or spec.exclude_newer or spec.horovod)
    return is_ours and all(map(is_open, named)) and not names.isdisjoint(_LIMITS) and names.isdisjoint(_FRAMEWORKS)


def limit_to_v1_releases(spec: EnvironmentSpec, found: Collection[str]) -> EnvironmentSpec | None:
    """Limit an environment to the releases of v1's time; None if none of the Pythons `found` can run them.

    >>> limited = limit_to_v1_releases(EnvironmentSpec(conda_packages=("scikit-learn", "tqdm")), ["3.7", "3.11"])
    >>> limited.python_version, limited.conda_packages
    ('3.7', ('scikit-learn<0.23', 'tqdm', 'numpy<1.20', 'scipy<1.6'))
    """
    python = next((each for each in PYTHONS if each in found), None)
    if python is None:
        return None
    names = {package_name(each) for each in (*spec.pip_packages, *spec.conda_packages)}
    below = tuple(_LIMITS[each] for each in _BELOW_ALL if each not in names)
    of_conda, of_pip = _limit(spec.conda_packages), _limit(spec.pip_packages)
    return replace(
        spec,
        python_version=python,
        # Dependencies come from the same source as the packages: pip must not overwrite conda packages.
        conda_packages=(*of_conda, *below) if spec.conda_packages else (),
        pip_packages=of_pip if spec.conda_packages else (*of_pip, *below),
    )


def _limit(packages: Sequence[str]) -> tuple[str, ...]:
    return tuple(_LIMITS.get(package_name(each), each) for each in packages)

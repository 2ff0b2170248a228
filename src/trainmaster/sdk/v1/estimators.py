"""The estimators under v1's import names.

Their default release is v1's, because scripts were written for it. If that release cannot run on this machine, they use
today's, as the classes of `trainmaster` do. The same applies to packages without a version in an `Estimator`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.environments import pythons
from trainmaster.environments.conda_names import needs_conda
from trainmaster.environments.frameworks import (
    CHAINER,
    PYTORCH,
    SKLEARN,
    TENSORFLOW,
    Release,
    choose_python,
    release_of,
    why_not_runnable,
)
from trainmaster.environments.requirement import is_open
from trainmaster.environments.v1_releases import are_of_v1, limit_to_v1_releases
from trainmaster.job.errors import EnvironmentException
from trainmaster.sdk.estimators import chainer, estimator, pytorch, sklearn, tensorflow
from trainmaster.sdk.estimators.distribution import distribution_of
from trainmaster.sdk.estimators.framework import FrameworkEstimator
from trainmaster.shared.job_spec import EnvironmentSpec, JobSpec
from trainmaster.shared.notices import warn


class _WithDefaultOfV1(FrameworkEstimator):
    def _default_release(self) -> Release:
        """v1's release, or today's if v1's cannot run on this machine."""
        wanted = super()._default_release()
        if not self._brings_framework():
            return wanted
        reason, remedy = self._why_not(wanted)
        if not reason:
            return wanted
        today = release_of(self.FRAMEWORK, self.FRAMEWORK.default)
        if self._why_not(today)[0]:
            # If neither can run, the error is about the release that the script was written for.
            return wanted
        warn(f"{today} is used instead of v1's {wanted.name}: {reason}. {remedy}")
        return today

    def _why_not(self, release: Release) -> tuple[str, str]:
        """Why a release cannot run on this machine, and what to do about it; both empty if it can."""
        packages = self.conda_dependencies
        named = ".".join(packages.get_python_version().split(".")[:2])
        # Conda installs its own Python.
        found = release.pythons if needs_conda(packages.conda_packages) else tuple(pythons.all_pythons())
        if named and named not in release.pythons:
            return f"{release} does not run on Python {named}", f"Request Python {release.pythons[0]} to use it."
        reason = "" if named else why_not_runnable(release, found)
        if reason:
            return reason, f"'pyenv install {release.pythons[0]}', for example, installs one."
        return self._why_no_horovod(release, named or choose_python(release, pythons.running_version(), found))

    def _why_no_horovod(self, release: Release, python: str) -> tuple[str, str]:
        if not release.era.horovod or distribution_of(self._run_config).kind != "mpi":
            return "", ""
        from trainmaster.environments import compiled

        spec = EnvironmentSpec(
            python_version=python, pip_packages=release.packages(False), horovod=release.era.horovod, open_mpi=True
        )
        try:
            compiled.check(spec, os.environ)
        except EnvironmentException as error:
            return error.headline, error.hint
        return "", ""


class Estimator(estimator.Estimator):
    """`trainmaster.Estimator`. Packages such as numpy or scikit-learn without a version are those of v1's time."""

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        spec = super().compile(overrides)
        given = self._settings
        if given.environment_definition or given.conda_dependencies_file or not are_of_v1(spec.environment):
            return spec
        found = limit_to_v1_releases(spec.environment, pythons.all_pythons())
        if found is None:
            warn(
                "packages without a version get today's releases instead of those of v1's time, which need "
                "Python 3.6, 3.7 or 3.8. This machine has none; 'pyenv install 3.8', for example, installs one."
            )
            return spec
        limited = [each for each in (*found.pip_packages, *found.conda_packages) if not is_open(each)]
        warn(
            f"packages without a version get releases of v1's time: {', '.join(limited)} on "
            f"Python {found.python_version}. To use other releases, give one of them a version."
        )
        return replace(spec, environment=found)


class PyTorch(_WithDefaultOfV1, pytorch.PyTorch):
    """`trainmaster.PyTorch` with v1's default release, PyTorch 1.4."""

    DEFAULT_VERSION = PYTORCH.v1_default


class TensorFlow(_WithDefaultOfV1, tensorflow.TensorFlow):
    """`trainmaster.TensorFlow` with v1's default release, TensorFlow 1.13."""

    DEFAULT_VERSION = TENSORFLOW.v1_default


class SKLearn(_WithDefaultOfV1, sklearn.SKLearn):
    """`trainmaster.SKLearn` with v1's default release, scikit-learn 0.20.3."""

    DEFAULT_VERSION = SKLEARN.v1_default


class Chainer(_WithDefaultOfV1, chainer.Chainer):
    """`trainmaster.Chainer` with v1's default release, Chainer 5.1.0."""

    DEFAULT_VERSION = CHAINER.v1_default

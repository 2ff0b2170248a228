"""Estimators of one framework: its releases, and the packages, Python and Horovod that come with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from trainmaster.environments import pythons
from trainmaster.environments.base_images import is_base_image
from trainmaster.environments.frameworks import (
    Framework,
    Release,
    choose_python,
    is_named,
    is_version,
    name_of,
    release_in,
    release_of,
)
from trainmaster.environments.requirement import is_open
from trainmaster.job.errors import TrainingException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.estimators.base import BaseEstimator
from trainmaster.sdk.estimators.distribution import distribution_of
from trainmaster.sdk.estimators.settings import Settings
from trainmaster.shared.job_spec import Accelerator, EnvironmentSpec, JobSpec
from trainmaster.shared.notices import warn


class FrameworkEstimator(BaseEstimator):
    """An estimator that brings its framework.

    The framework's packages are added to `conda_dependencies` when the estimator is created. What the user names, adds
    or removes there takes precedence. Nothing is added to an environment of the user's own.
    """

    FRAMEWORK: ClassVar[Framework]
    FRAMEWORK_NAME: ClassVar[str]
    DEFAULT_VERSION: ClassVar[str]

    def __init__(self, source_directory: str | os.PathLike[str], given: Mapping[str, Any]) -> None:
        super().__init__(source_directory, given)
        self._release = self._choose_release()
        if self._brings_framework():
            self._warn_untested()
            self._add_packages()
        elif self._settings.framework_version is not None:
            warn("framework_version is ignored, because your own environment has its own packages")

    @property
    def framework_version(self) -> str:
        """The release of the framework."""
        return self._release.name

    @classmethod
    def get_supported_versions(cls) -> list[str]:
        """The tested releases. `framework_version` may be another one, with a warning."""
        return cls.FRAMEWORK.versions

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        """The job, with the settings as they are now; see `Estimator.compile`."""
        spec = super().compile(overrides)
        if spec.environment.user_managed or spec.environment.is_of_image or not self._brings_framework():
            return spec
        return replace(spec, environment=self._complete_environment(spec))

    def _check(self, settings: Settings) -> None:
        super()._check(settings)
        version = settings.framework_version
        if version is not None and not is_version(version):
            raise TrainingException(
                f"framework_version {version!r} is not the number of a release of {self.FRAMEWORK_NAME}",
                hint=f"Tested: {', '.join(self.get_supported_versions())}. Other releases are tried without changes.",
            )

    def _brings_framework(self) -> bool:
        given = self._settings
        # An image has its own Python and packages, unless packages are requested as well.
        own = (
            given.user_managed,
            given.environment_definition,
            given.conda_dependencies_file,
            self._has_image() and not (given.pip_packages or given.conda_packages or given.pip_requirements_file),
        )
        return not any(own)

    def _has_image(self) -> bool:
        image = self._settings.custom_docker_image
        return bool(image) and not is_base_image(image)

    def _choose_release(self) -> Release:
        version = self._settings.framework_version
        if version is None:
            # A pinned framework package selects that release, with its companions.
            packages = self.conda_dependencies
            pinned = release_in(self.FRAMEWORK, (*packages.pip_packages, *packages.conda_packages))
            return pinned or self._default_release()
        return release_of(self.FRAMEWORK, version)

    def _default_release(self) -> Release:
        return release_of(self.FRAMEWORK, self.DEFAULT_VERSION)

    def _warn_untested(self) -> None:
        version = self._settings.framework_version
        if version is not None and not self._release.tested:
            warn(
                f"framework_version {version!r} of {self.FRAMEWORK_NAME} is untested; "
                f"tested are {', '.join(self.get_supported_versions())}"
            )

    def _add_packages(self) -> None:
        packages = self.conda_dependencies
        is_mpi = distribution_of(self._run_config).kind == "mpi"
        mine = self._release.packages(self._settings.use_gpu, is_mpi)
        of_conda = [package for package in packages.conda_packages if is_named(self.FRAMEWORK, [package])]
        if of_conda:
            # Its companions come from conda too: packages of pip would overwrite them.
            self._warn_replaced(of_conda[0], mine[0])
            return
        of_user = [*packages.conda_packages, *packages.pip_packages]
        for package in mine:
            same = self.FRAMEWORK.names if package == mine[0] else (name_of(package),)
            theirs = [each for each in of_user if name_of(each) in same]
            if not theirs:
                packages.add_pip_package(package)
            elif package != mine[0] and is_open(theirs[0]):
                # A name without a version does not contradict the limit that the release needs.
                _limit(packages, theirs[0], package)
            elif theirs[0] != package:
                self._warn_replaced(theirs[0], package)

    def _warn_replaced(self, theirs: str, mine: str) -> None:
        warn(f"{theirs!r} of the estimator's packages replaces {mine!r} of {self._release}")

    def _complete_environment(self, spec: JobSpec) -> EnvironmentSpec:
        environment = spec.environment
        accelerator: Accelerator = "cuda" if spec.use_gpu else "cpu"
        environment = replace(environment, accelerator=accelerator)
        # Packages may be edited until submit, so the release is read from them here.
        packages = (*environment.pip_packages, *environment.conda_packages)
        if not is_named(self.FRAMEWORK, packages):
            return environment
        release = release_in(self.FRAMEWORK, packages) or self._release
        if is_named(self.FRAMEWORK, environment.pip_packages):
            environment = replace(environment, optional_packages=release.optional_beside(packages))
        if spec.distribution.kind == "mpi":
            environment = replace(environment, horovod=environment.horovod or release.era.horovod)
        return replace(environment, python_version=environment.python_version or _python(release, environment))


def _limit(packages: CondaDependencies, theirs: str, limited: str) -> None:
    if theirs in packages.conda_packages:
        packages.remove_conda_package(theirs)
        packages.add_conda_package(limited)
    else:
        packages.add_pip_package(limited)


def _python(release: Release, environment: EnvironmentSpec) -> str:
    """The Python to request; empty for the running one."""
    running = pythons.running_version()
    # Conda installs its own Python.
    found = release.pythons if environment.conda_packages else pythons.all_pythons()
    chosen = choose_python(release, running, found)
    return "" if chosen == running else chosen

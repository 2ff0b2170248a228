"""Estimators of one framework: its supported releases, and what becomes of its packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from trainmaster.environments.conda_dependencies import package_name
from trainmaster.errors import TrainingException
from trainmaster.estimators.base import BaseEstimator
from trainmaster.estimators.notices import warn
from trainmaster.estimators.settings import Settings
from trainmaster.job import JobSpec


class FrameworkEstimator(BaseEstimator):
    """An estimator that knows the releases of a framework.

    This release installs only the packages that the user names, and a submit without the framework says so.
    """

    FRAMEWORK_NAME: ClassVar[str]
    DEFAULT_VERSION: ClassVar[str]
    SUPPORTED_VERSIONS: ClassVar[tuple[str, ...]]
    PACKAGES: ClassVar[tuple[str, ...]]
    """Names under which the framework can be installed; the first is the one to suggest."""

    def __init__(self, source_directory: str | os.PathLike[str], given: Mapping[str, Any]) -> None:
        super().__init__(source_directory, given)
        self._framework_version = self._settings.framework_version or self.DEFAULT_VERSION

    @property
    def framework_version(self) -> str:
        """The release of the framework."""
        return self._framework_version

    @classmethod
    def get_supported_versions(cls) -> list[str]:
        """The releases that `framework_version` may be."""
        return sorted(cls.SUPPORTED_VERSIONS)

    def compile(self, overrides: Mapping[str, Any]) -> JobSpec:
        """The job as it stands now; see `Estimator.compile`."""
        spec = super().compile(overrides)
        self._warn_without_framework(spec)
        return spec

    def _check(self, settings: Settings) -> None:
        super()._check(settings)
        version = settings.framework_version
        if version is not None and version not in self.SUPPORTED_VERSIONS:
            raise TrainingException(
                f"framework_version {version!r} is not supported by {type(self).__name__}",
                hint=f"Supported: {', '.join(self.get_supported_versions())}. "
                f"For another release use Estimator with pip_packages=['{self.PACKAGES[0]}==...'].",
            )

    def _warn_without_framework(self, spec: JobSpec) -> None:
        # Packages may be added until submit, so that nothing can be said before.
        if spec.environment.user_managed or self._settings.environment_definition is not None:
            return
        named = {package_name(name) for name in spec.environment.pip_packages}
        named |= {package_name(name.rpartition("::")[2]) for name in spec.environment.conda_packages}
        if named.isdisjoint(self.PACKAGES):
            package = self.PACKAGES[0]
            warn(
                f"{type(self).__name__} without {package}: this release installs only pip_packages; "
                f"add pip_packages=['{package}==...'] or user_managed=True"
            )

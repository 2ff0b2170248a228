"""CondaDependencies under v1's import names. The default release of TensorFlow is v1's."""

from __future__ import annotations

from typing import Any

from trainmaster.environments import pythons
from trainmaster.environments.frameworks import TENSORFLOW, Release, release_of, why_not_runnable
from trainmaster.sdk.environment import conda_dependencies
from trainmaster.shared.notices import warn


class _AnyCondaDependencies(type):
    """Makes objects of `trainmaster.CondaDependencies`, as in an Environment, instances of this class too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls is CondaDependencies and isinstance(instance, conda_dependencies.CondaDependencies)
        )


class CondaDependencies(conda_dependencies.CondaDependencies, metaclass=_AnyCondaDependencies):
    """`trainmaster.CondaDependencies` with v1's default release of TensorFlow, 1.13.1.

    >>> packages = CondaDependencies()
    >>> packages.add_tensorflow_pip_package(version="2.3.0")
    >>> list(packages.pip_packages)
    ['tensorflow==2.3.0']
    """

    def _tensorflow(self) -> Release | None:
        """v1's release, or the newest tested one if no Python runs v1's; None if the user's Python runs neither."""
        named = ".".join(self.get_python_version().split(".")[:2])
        wanted = release_of(TENSORFLOW, TENSORFLOW.v1_default)
        reason = _why_not(wanted, named)
        if not reason:
            return wanted
        today = release_of(TENSORFLOW, TENSORFLOW.default)
        usable = None if _why_not(today, named) else today
        warn(
            f"{usable or 'the newest TensorFlow'} is used instead of v1's {wanted.name}: {reason}. "
            f"'pyenv install {wanted.pythons[0]}', for example, installs a Python for it."
        )
        return usable


def _why_not(release: Release, python: str) -> str:
    """Why a release cannot run on `python`, or on any Python of this machine by default; empty if it can."""
    if not python:
        return why_not_runnable(release, pythons.all_pythons())
    return "" if python in release.pythons else f"{release} does not run on Python {python}"

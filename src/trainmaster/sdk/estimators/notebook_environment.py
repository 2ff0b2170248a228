"""What a notebook as entry script adds to an environment: the packages that run its cells."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.requirement import package_name
from trainmaster.job.notebook import PACKAGES
from trainmaster.shared.job_spec import EnvironmentSpec


def for_notebook(spec: EnvironmentSpec) -> EnvironmentSpec:
    """`spec` with the packages that run notebooks. The user's own Python, or that of an image, is not changed."""
    if spec.user_managed or spec.is_of_image:
        return spec
    named = {package_name(line) for line in (*spec.pip_packages, *spec.conda_packages)}
    missing = tuple(name for name in PACKAGES if name not in named)
    return replace(spec, pip_packages=(*spec.pip_packages, *missing))

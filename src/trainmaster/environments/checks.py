"""Checks at submit: whether this machine can build an environment at all."""

from __future__ import annotations

import os

from trainmaster.shared.job_spec import EnvironmentSpec


def check_buildable(spec: EnvironmentSpec) -> None:
    """Refuse an environment that cannot be built on this machine."""
    # Most environments need neither module: importing them only on demand keeps submit fast.
    if spec.container is not None:
        from trainmaster.environments import containers

        containers.check(spec, os.environ)
    if (spec.horovod or spec.open_mpi) and not spec.user_managed:
        from trainmaster.environments import compiled

        compiled.check(spec, os.environ)

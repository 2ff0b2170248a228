"""What MPI adds to an environment: Open MPI, and Horovod if Azure's environment had it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.sdk.v1.curated_environments import horovod_for
from trainmaster.shared.job_spec import Distribution, EnvironmentSpec


def for_distribution(spec: EnvironmentSpec, distribution: Distribution, name: str = "") -> EnvironmentSpec:
    """`spec` with Open MPI, for runs under MPI; and with Horovod, if Azure's environment of that name had it."""
    if spec.user_managed or distribution.kind != "mpi":
        return spec
    return replace(spec, open_mpi=True, horovod=spec.horovod or horovod_for(name))

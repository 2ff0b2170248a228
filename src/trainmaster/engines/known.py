"""The engines: our own, and those of other packages by their entry points."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from trainmaster.engines.engine import Engine, EngineContext
from trainmaster.job.errors import ComputeTargetException

GROUP = "trainmaster.engines"

Maker = Callable[[EngineContext], Engine]


def make_engine(name: str, context: EngineContext) -> Engine:
    """Creates the engine of this name for one workspace."""
    if name == "local":
        from trainmaster.engines.local.engine import LocalEngine

        return LocalEngine()
    if name == "slurm":
        from trainmaster.engines.slurm.engine import SlurmEngine

        return SlurmEngine(context)
    if name == "slurm-ssh":
        from trainmaster.engines.slurm.engine import SlurmEngine
        from trainmaster.engines.slurm.login import LoginNodes

        return SlurmEngine(context, LoginNodes(context))
    if name == "ssh":
        from trainmaster.engines.ssh.engine import SshEngine

        return SshEngine(context)
    if name == "kubernetes":
        return _make_kubernetes(context)
    return _load_maker(name)(context)


def _make_kubernetes(context: EngineContext) -> Engine:
    try:
        from trainmaster.engines.kubernetes.engine import KubernetesEngine
    except ModuleNotFoundError as error:
        raise ComputeTargetException(
            "runs on Kubernetes need packages that are not installed",
            cause=str(error),
            hint="Install them where the dispatcher runs: pip install 'trainmaster[kubernetes]'.",
        ) from error
    return KubernetesEngine(context)


def _load_maker(name: str) -> Maker:
    from importlib.metadata import entry_points

    found = list(entry_points(group=GROUP, name=name))
    if not found:
        known = sorted(
            {"kubernetes", "local", "slurm", "slurm-ssh", "ssh", *(point.name for point in entry_points(group=GROUP))}
        )
        raise ComputeTargetException(
            f"there is no engine '{name}'",
            hint=f"Known engines: {', '.join(known)}. A package adds one with an entry point in '{GROUP}'.",
        )
    try:
        return cast(Maker, found[0].load())
    except Exception as error:
        raise ComputeTargetException(f"engine '{name}' cannot be loaded", cause=f"{found[0].value}: {error}") from error

"""CPU and CUDA builds of a framework: which one to use, which one a lock contains, and what to try next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmaster.environments.frameworks import PYTORCH, on_cpu
from trainmaster.environments.lock import Pin
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.hardware import gpus
from trainmaster.shared.job_spec import EnvironmentSpec

# The packages of the torch family that have a build per accelerator (torchtext has one for all).
_TORCH_FAMILY = ("torch", "torchvision", "torchaudio")
# Packages that exist only to install CUDA.
_CUDA = re.compile(r"nvidia-.+|cuda-.+|triton|pytorch-triton|cupy-cuda.+|jax-cuda.+|tensorrt.*")
_LOCAL = re.compile(r"\+(?P<build>[a-z0-9.]+)")
_BUILD_IN_SOURCE = re.compile(r"/(?P<build>cpu|cu\d+)/?$")


def cuda_packages(lock: Iterable[Pin]) -> list[str]:
    """The packages of a lock that install CUDA.

    >>> cuda_packages([Pin("torch", "2.13.0"), Pin("nvidia-cublas", "13.1"), Pin("triton", "3.7")])
    ['nvidia-cublas', 'triton']
    """
    return [pin.name for pin in lock if _CUDA.fullmatch(pin.name)]


def build_of(pin: Pin) -> str:
    """`cpu`, `cu130`, ... if the release or its source says so; otherwise empty.

    >>> build_of(Pin("torch", "2.13.0+cpu")), build_of(Pin("torch", "2.13.0", "https://pypi.org/simple"))
    ('cpu', '')
    """
    found = _LOCAL.search(pin.version) or _BUILD_IN_SOURCE.search(pin.source)
    return found["build"] if found else ""


def without_gpus(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment for nodes without GPUs: CPU builds, because CUDA builds take gigabytes and may not start."""
    if spec.user_managed or spec.is_of_image:
        return spec
    if spec.accelerator == "cuda":
        spec = replace(spec, pip_packages=tuple(map(on_cpu, spec.pip_packages)))
    return replace(spec, accelerator="cpu")


def on_this_machine(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment that a run on the target `local` uses, so that one built in advance has the same digest."""
    return without_gpus(spec) if spec.accelerator == "any" and not gpus() else spec


def has_cpu_torch(lock: Sequence[Pin]) -> bool:
    """Whether the lock has no torch, or torch is marked as a CPU build."""
    return all(build_of(pin) == "cpu" for pin in lock if pin.name == "torch")


def is_cpu_family(lock: Sequence[Pin]) -> bool:
    """Whether torch and all its companions in a lock are marked as CPU builds."""
    return all(build_of(pin) == "cpu" for pin in lock if pin.name in _TORCH_FAMILY)


def brings_cuda(lock: Sequence[Pin]) -> bool:
    """Whether torch comes with CUDA. Other packages that need parts of CUDA, such as xgboost, have no CPU build.

    >>> brings_cuda([Pin("torch", "2.13.0"), Pin("triton", "3.7")]), brings_cuda([Pin("nvidia-nccl-cu12", "2.32")])
    (True, False)
    """
    return not has_cpu_torch(lock) and bool(cuda_packages(lock))


def cpu_constraints(lock: Sequence[Pin]) -> tuple[str, ...]:
    """The same releases of torch and its family as CPU builds."""
    return tuple(
        f"{pin.name}=={pin.version.partition('+')[0]}+cpu"
        for pin in lock
        if pin.name in _TORCH_FAMILY and pin.version and build_of(pin) != "cpu"
    )


def default_cpu_constraint() -> str:
    """The tested release of torch as a CPU build, for package sources whose newest release has no CPU build."""
    return f"torch=={PYTORCH.releases[-1].exact}+cpu"


def not_cpu_constraints(lock: Sequence[Pin]) -> tuple[str, ...]:
    """Constraints that exclude the CPU builds in a lock."""
    return tuple(
        f"{pin.name}!={pin.version}" for pin in lock if pin.name in _TORCH_FAMILY and pin.version.endswith("+cpu")
    )


def describe_builds(lock: Sequence[Pin]) -> list[str]:
    """Say in the log which builds of the torch family were chosen.

    >>> describe_builds([Pin("torch", "2.13.0+cpu", "file:///wheels"), Pin("numpy", "2.4.6")])
    ['torch 2.13.0+cpu: CPU build from file:///wheels']
    """
    cuda = bool(cuda_packages(lock))
    lines = []
    for pin in lock:
        if pin.name in _TORCH_FAMILY:
            build = build_of(pin)
            kind = "CPU build" if build == "cpu" else "CUDA build" if cuda or build.startswith("cu") else "the build"
            lines.append(f"{pin.name} {pin.version}: {kind} from {pin.source or 'the package sources'}")
    return lines


def refusal(lock: Sequence[Pin]) -> EnvironmentException:
    """The error for a CPU run whose package sources offer only CUDA builds."""
    names = cuda_packages(lock)
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    torch = next(pin.version for pin in lock if pin.name == "torch")
    return EnvironmentException(
        f"the package sources have only a CUDA build of torch {torch}, and this run uses no GPU",
        cause=f"It would install gigabytes of CUDA packages: {shown}.",
        hint="Add a source with CPU builds, such as --extra-index-url https://download.pytorch.org/whl/cpu, to "
        "pip_packages or pip's configuration. To use CUDA, set use_gpu=True on a target with GPUs. "
        "To install CUDA builds for CPU runs too, set TRAINMASTER_ALLOW_CUDA=1.",
    )

"""Builds of a framework for CPU or CUDA: which are wanted, what the sources gave, and what to try next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmaster.environments.frameworks import PYTORCH, on_cpu
from trainmaster.environments.lock import Pin
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.hardware import gpus
from trainmaster.shared.job_spec import EnvironmentSpec

# The companions of torch that have builds of their own for every accelerator (torchtext has the same for all).
_TORCH_FAMILY = ("torch", "torchvision", "torchaudio")
# Packages that exist only to bring CUDA.
_CUDA = re.compile(r"nvidia-.+|cuda-.+|triton|pytorch-triton|cupy-cuda.+|jax-cuda.+|tensorrt.*")
_LOCAL = re.compile(r"\+(?P<build>[a-z0-9.]+)")
_BUILD_IN_SOURCE = re.compile(r"/(?P<build>cpu|cu\d+)/?$")


def cuda_packages(lock: Iterable[Pin]) -> list[str]:
    """The packages of a lock that bring CUDA.

    >>> cuda_packages([Pin("torch", "2.13.0"), Pin("nvidia-cublas", "13.1"), Pin("triton", "3.7")])
    ['nvidia-cublas', 'triton']
    """
    return [pin.name for pin in lock if _CUDA.fullmatch(pin.name)]


def build_of(pin: Pin) -> str:
    """`cpu`, `cu130`, ... where the release or its source says so; else empty.

    >>> build_of(Pin("torch", "2.13.0+cpu")), build_of(Pin("torch", "2.13.0", "https://pypi.org/simple"))
    ('cpu', '')
    """
    found = _LOCAL.search(pin.version) or _BUILD_IN_SOURCE.search(pin.source)
    return found["build"] if found else ""


def without_gpus(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The same for nodes without GPUs: builds for the CPU, since the others are gigabytes, and may not even start."""
    if spec.user_managed or spec.is_of_image:
        return spec
    if spec.accelerator == "cuda":
        spec = replace(spec, pip_packages=tuple(map(on_cpu, spec.pip_packages)))
    return replace(spec, accelerator="cpu")


def on_this_machine(spec: EnvironmentSpec) -> EnvironmentSpec:
    """What a run on the target `local` will ask for: built ahead of it, it has the same digest."""
    return without_gpus(spec) if spec.accelerator == "any" and not gpus() else spec


def has_cpu_torch(lock: Sequence[Pin]) -> bool:
    """Whether torch is no part of it, or said to be a CPU build."""
    return all(build_of(pin) == "cpu" for pin in lock if pin.name == "torch")


def is_cpu_family(lock: Sequence[Pin]) -> bool:
    """Whether torch and all its companions in a lock are said to be CPU builds."""
    return all(build_of(pin) == "cpu" for pin in lock if pin.name in _TORCH_FAMILY)


def brings_cuda(lock: Sequence[Pin]) -> bool:
    """Whether torch comes with CUDA. What brings some of it beside torch, as xgboost does, has no other build.

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


def tested_cpu_constraint() -> str:
    """The release of torch that is tested here, as a CPU build: for sources whose newest one has none."""
    return f"torch=={PYTORCH.releases[-1].exact}+cpu"


def not_cpu_constraints(lock: Sequence[Pin]) -> tuple[str, ...]:
    """Rules the CPU builds in a lock out."""
    return tuple(
        f"{pin.name}!={pin.version}" for pin in lock if pin.name in _TORCH_FAMILY and pin.version.endswith("+cpu")
    )


def told(lock: Sequence[Pin]) -> list[str]:
    """What was taken, for the log.

    >>> told([Pin("torch", "2.13.0+cpu", "file:///wheels"), Pin("numpy", "2.4.6")])
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
    """No CUDA by accident."""
    names = cuda_packages(lock)
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    torch = next(pin.version for pin in lock if pin.name == "torch")
    return EnvironmentException(
        f"the package sources have only a CUDA build of torch {torch}, which a run without GPUs does not take",
        cause=f"It would bring gigabytes: {shown}.",
        hint="Give a source with CPU builds, such as --extra-index-url https://download.pytorch.org/whl/cpu in "
        "pip_packages or pip's configuration; say use_gpu=True, on a target with GPUs, if CUDA is wanted; "
        "or set TRAINMASTER_ALLOW_CUDA=1 to take it for CPU runs too.",
    )

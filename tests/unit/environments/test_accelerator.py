"""CPU and CUDA builds, as a table."""

from __future__ import annotations

import pytest

from trainmaster.environments import accelerator
from trainmaster.environments.lock import Pin

PYPI = [Pin("torch", "2.13.0", "https://pypi.org/simple"), Pin("nvidia-cublas", "13.1"), Pin("triton", "3.7")]
CPU = [Pin("torch", "2.13.0+cpu", "file:///wheels"), Pin("numpy", "2.4.6")]
FROM_CPU_INDEX = [Pin("torch", "2.13.0", "https://download.pytorch.org/whl/cpu")]
OLD = [Pin("torch", "1.4.0", "https://pypi.org/simple"), Pin("torchvision", "0.5.0", "https://pypi.org/simple")]


@pytest.mark.parametrize(
    ("lock", "is_cpu", "constraints"),
    [
        (PYPI, False, ("torch==2.13.0+cpu",)),
        (CPU, True, ()),
        (FROM_CPU_INDEX, True, ()),
        (OLD, False, ("torch==1.4.0+cpu", "torchvision==0.5.0+cpu")),
        ([Pin("numpy", "2.4.6")], True, ()),
        ([Pin("jax-cuda13-plugin", "0.9")], False, ()),
    ],
)
def test_cpu(lock: list[Pin], is_cpu: bool, constraints: tuple[str, ...]) -> None:
    assert accelerator.has_cpu_torch(lock) is is_cpu
    assert accelerator.cpu_constraints(lock) == constraints


def test_cuda() -> None:
    assert accelerator.not_cpu_constraints(CPU) == ("torch!=2.13.0+cpu",)
    assert accelerator.not_cpu_constraints(PYPI) == ()


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        (PYPI, ["torch 2.13.0: CUDA build from https://pypi.org/simple"]),
        (CPU, ["torch 2.13.0+cpu: CPU build from file:///wheels"]),
        ([Pin("torch", "2.13.0+cu130")], ["torch 2.13.0+cu130: CUDA build from the package sources"]),
        ([Pin("torch", "1.4.0", "https://a")], ["torch 1.4.0: the build from https://a"]),
        ([Pin("numpy", "2.4.6")], []),
    ],
)
def test_what_was_taken_is_told(lock: list[Pin], words: list[str]) -> None:
    assert accelerator.told(lock) == words


def test_a_refusal_says_all_three_ways() -> None:
    error = accelerator.refusal(PYPI)
    assert "torch 2.13.0" in error.headline
    assert "nvidia-cublas, triton" in error.cause
    assert all(way in error.hint for way in ("use_gpu=True", "--extra-index-url", "TRAINMASTER_ALLOW_CUDA=1"))


@pytest.mark.parametrize("name", ["nvidia-nccl-cu13", "cuda-toolkit", "triton", "pytorch-triton"])
def test_packages_of_cuda(name: str) -> None:
    assert accelerator.cuda_packages([Pin(name, "1")]) == [name]


@pytest.mark.parametrize("name", ["nvidiaa", "barracuda", "tritonclient", "pycuda"])
def test_packages_that_only_sound_like_it(name: str) -> None:
    assert accelerator.cuda_packages([Pin(name, "1")]) == []

"""CPU and CUDA builds, as a table."""

from __future__ import annotations

import pytest

from trainmaster.environments import accelerator
from trainmaster.environments.frameworks import PYTORCH
from trainmaster.environments.lock import Pin
from trainmaster.shared.job_spec import Accelerator, EnvironmentSpec

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
        ([Pin("xgboost", "3.4"), Pin("nvidia-nccl-cu12", "2.32")], True, ()),
        ([*CPU, Pin("nvidia-nccl-cu12", "2.32")], True, ()),
    ],
)
def test_cpu(lock: list[Pin], is_cpu: bool, constraints: tuple[str, ...]) -> None:
    assert accelerator.has_cpu_torch(lock) is is_cpu
    assert accelerator.brings_cuda(lock) is (lock is PYPI)
    assert accelerator.cpu_constraints(lock) == constraints


@pytest.mark.parametrize("given", ["any", "cpu", "cuda"])
def test_a_target_without_gpus_takes_builds_for_the_cpu(given: Accelerator) -> None:
    spec = EnvironmentSpec(pip_packages=("tensorflow-gpu==1.13.1",), accelerator=given)
    package = "tensorflow==1.13.1" if given == "cuda" else "tensorflow-gpu==1.13.1"
    assert accelerator.without_gpus(spec) == EnvironmentSpec(pip_packages=(package,), accelerator="cpu")
    own = EnvironmentSpec(user_managed=True)
    assert accelerator.without_gpus(own) == own


def test_the_cpu_build_of_last_resort_is_the_tested_one() -> None:
    assert accelerator.default_cpu_constraint() == f"torch=={PYTORCH.releases[-1].exact}+cpu"


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
    assert accelerator.describe_builds(lock) == words


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

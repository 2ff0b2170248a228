"""torch and its companions: what each was built for, and which do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.wheels import make_library

from trainmaster.environments import companions, shared_library
from trainmaster.environments.companions import Build
from trainmaster.environments.lock import Pin
from trainmaster.job.errors import EnvironmentException

CPU = Build("torch", "2.13.0+cpu", "cpu")
CUDA_13 = Build("torch", "2.13.0", "cuda", "13.0")
CUDA_12 = Build("torch", "2.13.0+cu126", "cuda", "12.6")
VISION_CPU = Build("torchvision", "0.28.0", "cpu")
VISION_13 = Build("torchvision", "0.28.0", "cuda", "13", "libtorch_cuda.so")
TEXT = Build("torchtext", "0.18.0", "")


@pytest.mark.parametrize(
    ("torch", "companion", "wanted", "index"),
    [
        (CPU, VISION_13, "cpu", "https://download.pytorch.org/whl/cpu"),
        (CPU, VISION_13, "any", "https://download.pytorch.org/whl/cpu"),
        (CUDA_12, VISION_13, "cuda", "https://download.pytorch.org/whl/cu126"),
        (CUDA_13, VISION_CPU, "cuda", "https://download.pytorch.org/whl/cu130"),
        (Build("torch", "2.13.0+rocm7.0", "rocm"), VISION_13, "any", "https://download.pytorch.org/whl/rocm7.0"),
    ],
)
def test_builds_that_do_not_go_together(torch: Build, companion: Build, wanted: str, index: str) -> None:
    with pytest.raises(EnvironmentException) as refused:
        companions.check(torch, [companion], wanted)
    assert str(companion) in refused.value.headline
    assert str(torch) in refused.value.headline
    assert f"{index} has a torchvision that fits" in refused.value.headline


@pytest.mark.parametrize(
    ("torch", "companion", "wanted"),
    [
        (CPU, VISION_CPU, "cpu"),
        (CUDA_13, VISION_13, "cuda"),
        # It runs on the CPU.
        (CUDA_13, VISION_CPU, "cpu"),
        # As the wheels of v1's time are: nothing says what torch is.
        (Build("torch", "1.4.0", ""), VISION_13, "cpu"),
        (None, VISION_13, "cpu"),
        (Build("torch", "2.3.1+cpu", "cpu"), TEXT, "cpu"),
    ],
)
def test_builds_that_go_together(torch: Build | None, companion: Build, wanted: str) -> None:
    companions.check(torch, [companion], wanted)


def test_the_last_torchtext_is_not_taken_with_a_newer_torch() -> None:
    with pytest.raises(EnvironmentException, match=r"torchtext 0\.18\.0 was built for torch 2\.3") as refused:
        companions.check(CPU, [TEXT], "cpu")
    assert "torch==2.3.*" in refused.value.hint


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ([Pin("numpy", "2.4.6")], None),
        ([Pin("torch", "2.13.0+cpu")], ("cpu", "")),
        ([Pin("torch", "2.13.0", "https://download.pytorch.org/whl/cpu")], ("cpu", "")),
        ([Pin("torch", "2.13.0+cu126")], ("cuda", "12.6")),
        ([Pin("torch", "1.6.0+cu92")], ("cuda", "9.2")),
        ([Pin("torch", "2.13.0+rocm7.0")], ("rocm", "")),
        ([Pin("torch", "2.13.0"), Pin("nvidia-cuda-runtime", "13.0.96")], ("cuda", "13.0")),
        ([Pin("torch", "2.13.0"), Pin("triton", "3.7")], ("cuda", "")),
        ([Pin("torch", "1.4.0", "https://pypi.org/simple")], ("", "")),
    ],
)
def test_what_a_lock_says_of_torch(lock: list[Pin], expected: tuple[str, str] | None) -> None:
    found = companions.torch_in_lock(lock)
    assert (found and (found.kind, found.cuda)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", ("cpu", "")),
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", ("cuda", "13.0")),
        ("cuda = '10.1'\n", ("cuda", "10.1")),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '7.0.1'\n", ("rocm", "")),
    ],
)
def test_what_an_installed_torch_says(tmp_path: Path, text: str, expected: tuple[str, str]) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text(text)
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    found = companions.torch_in(tmp_path)
    assert found == Build("torch", "2.13.0", *expected)


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        (["libtorch.so", "libcudart.so.13", "libtorch_cuda.so"], ("cuda", "13", "libtorch_cuda.so")),
        (["libcudart-1b201d85.so.10.1", "libtorch.so"], ("cuda", "10", "libcudart-1b201d85.so.10.1")),
        (["libtorch.so", "libtorch_cpu.so"], ("cpu", "", "")),
    ],
)
def test_what_the_libraries_of_a_companion_say(
    tmp_path: Path, needs: list[str], expected: tuple[str, str, str]
) -> None:
    package = tmp_path / "packages/torchvision"
    package.mkdir(parents=True)
    (package / "_C.so").write_bytes(make_library(tmp_path / "made", needs))
    assert companions.companions_in(tmp_path / "packages") == [Build("torchvision", "", *expected)]


def test_needed_libraries(tmp_path: Path) -> None:
    made = make_library(tmp_path / "made", ["libone.so", "libtwo.so.2"])
    library = tmp_path / "library.so"
    library.write_bytes(made)
    assert shared_library.list_needed(library) == ("libone.so", "libtwo.so.2")
    for content in (b"", b"text", made[:80], made[: len(made) // 2]):
        library.write_bytes(content)
        assert shared_library.list_needed(library) in ((), ("libone.so", "libtwo.so.2"))
    assert shared_library.list_needed(tmp_path / "none.so") == ()

"""torch and its companions (torchvision, torchaudio, torchtext) must be built for the same accelerator.

A companion built for CUDA cannot be loaded with a CPU build of torch. Neither its metadata nor, on PyPI, its release
number says what it was built for. The libraries that its wheel links against do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments import accelerator, shared_library
from trainmaster.environments.lock import Pin
from trainmaster.environments.requirement import package_name
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

COMPANIONS = ("torchvision", "torchaudio", "torchtext")

_INDEX = "https://download.pytorch.org/whl"
_LAST_TORCHTEXT, _TORCH_OF_TORCHTEXT = "0.18.", (2, 3)
_OF_CUDA = re.compile(r"lib(?:torch_cuda|c10_cuda|cudart)\b.*")
_RUNTIME = re.compile(r"libcudart[^/]*?\.so\.(?P<major>\d+)[.\d]*")
_SAID_BY_TORCH = re.compile(r"^(?P<what>cuda|hip)\b[^=\n]*=\s*'(?P<version>[^']+)'", re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """A package and the accelerator it was compiled for."""

    package: str
    version: str
    kind: str
    """`cpu`, `cuda` or `rocm`; empty if unknown or irrelevant."""
    cuda: str = ""
    """The CUDA release, if known: `13.0` for torch, `13` for a companion."""
    library: str = ""
    """The linked library that proves the CUDA build."""

    def __str__(self) -> str:
        return f"{self.package} {self.version}".rstrip()


def is_named(spec: EnvironmentSpec) -> bool:
    """Whether one of the companions is among the packages."""
    return any(package_name(each) in COMPANIONS for each in spec.pip_packages)


def torch_in_lock(lock: Sequence[Pin]) -> Build | None:
    """Describe torch as far as the lock does; `kind` is empty if the lock does not tell."""
    for pin in lock:
        if pin.name == "torch":
            tag = accelerator.build_of(pin)
            if tag.startswith("cu"):
                return Build("torch", pin.version, "cuda", f"{tag[2:-1]}.{tag[-1]}")
            if tag == "cpu" or tag.startswith("rocm"):
                return Build("torch", pin.version, tag[:4].rstrip("."))
            if accelerator.cuda_packages(lock):
                return Build("torch", pin.version, "cuda", _runtime_in(lock))
            return Build("torch", pin.version, "")
    return None


def _runtime_in(lock: Sequence[Pin]) -> str:
    """The CUDA release that a lock installs, such as `13.0`."""
    found = [pin.version for pin in lock if pin.name.startswith(("nvidia-cuda-runtime", "cuda-toolkit"))]
    return ".".join(found[0].split(".")[:2]) if found else ""


def torch_in(packages: Path) -> Build | None:
    """Describe the torch installed in the folder `packages`."""
    try:
        text = (packages / "torch/version.py").read_text(errors="replace")
    except OSError:
        return None
    said = {found["what"]: found["version"] for found in _SAID_BY_TORCH.finditer(text)}
    kind = "cuda" if "cuda" in said else "rocm" if "hip" in said else "cpu"
    return Build("torch", _release(packages, "torch"), kind, said.get("cuda", ""))


def companions_in(packages: Path) -> list[Build]:
    """Describe the companions installed in the folder `packages`."""
    return [_companion(packages, name) for name in COMPANIONS if (packages / name).is_dir()]


def _companion(packages: Path, name: str) -> Build:
    libraries = sorted((packages / name).rglob("*.so"))
    needed = [each for library in libraries for each in shared_library.list_needed(library)]
    of_cuda = [each for each in needed if _OF_CUDA.fullmatch(each)]
    runtimes = [found["major"] for found in map(_RUNTIME.fullmatch, needed) if found]
    # Only torchvision has CUDA code in every release.
    kind = "cuda" if of_cuda else "cpu" if libraries and name == "torchvision" else ""
    shown = next((each for each in of_cuda if each.startswith("libtorch_cuda")), of_cuda[0] if of_cuda else "")
    return Build(name, _release(packages, name), kind, runtimes[0] if runtimes else "", shown)


def _release(packages: Path, name: str) -> str:
    found = sorted(packages.glob(f"{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


def check(torch: Build | None, companions: Iterable[Build], wanted: str) -> None:
    """Refuse companions that do not work with this torch; `wanted` is the accelerator of the environment."""
    for companion in companions:
        if torch is not None and _is_newer_than_torchtext(torch, companion):
            raise _refusal_of_torchtext(torch, companion)
        if torch is not None and _is_unfit(torch, companion, wanted):
            raise _refusal(torch, companion)


def _is_newer_than_torchtext(torch: Build, companion: Build) -> bool:
    """Whether torch is newer than the last release torchtext was built for. torchtext's metadata has no upper limit."""
    if companion.package != "torchtext" or not companion.version.startswith(_LAST_TORCHTEXT):
        return False
    release = re.match(r"(\d+)\.(\d+)", torch.version)
    return release is not None and (int(release[1]), int(release[2])) > _TORCH_OF_TORCHTEXT


def _refusal_of_torchtext(torch: Build, companion: Build) -> EnvironmentException:
    fitting = ".".join(map(str, _TORCH_OF_TORCHTEXT))
    return EnvironmentException(
        f"{companion} was built for torch {fitting} and cannot be loaded with {torch}",
        cause="torchtext has no newer release.",
        hint=f"Require 'torch=={fitting}.*' together with torchtext, or drop torchtext.",
    )


def _is_unfit(torch: Build, companion: Build, wanted: str) -> bool:
    if not torch.kind or not companion.kind:
        return False
    if companion.kind == "cuda":
        return torch.kind != "cuda" or _differ(torch.cuda, companion.cuda)
    # A CPU companion loads with any torch but cannot compute on a GPU.
    return torch.kind == "cuda" and wanted == "cuda"


def _differ(one: str, other: str) -> bool:
    """Whether two known CUDA releases have different major numbers."""
    return bool(one and other) and one.partition(".")[0] != other.partition(".")[0]


def warn_about_omission(torch: Build, names: Sequence[str]) -> str:
    """Say that optional companions are not part of the environment."""
    index, shown = index_for(torch), " and ".join(names)
    return (
        f"{shown} is not installed: the package sources have no build that fits {torch}; "
        f"to get one, add '--extra-index-url {index}' to pip_packages or to pip's configuration"
    )


def index_for(torch: Build) -> str:
    """The index of PyTorch's own that has the builds for the same accelerator.

    >>> index_for(Build("torch", "2.13.0", "cuda", "13.0"))
    'https://download.pytorch.org/whl/cu130'
    """
    tag = torch.version.partition("+")[2] or (f"cu{torch.cuda.replace('.', '')}" if torch.cuda else "")
    return f"{_INDEX}/{tag or torch.kind}" if tag or torch.kind in ("cpu", "rocm") else _INDEX


def _refusal(torch: Build, companion: Build) -> EnvironmentException:
    index = index_for(torch)
    shown = f" (it needs {companion.library})" if companion.library else ""
    return EnvironmentException(
        f"{companion} is built for {_kind(companion)}{shown}, but {torch} is built for {_kind(torch)}: "
        f"they do not work together, and {index} has a {companion.package} that fits",
        cause=f"The package sources have no other build of {companion.package} for this torch.",
        hint=f"Add '--extra-index-url {index}' to pip_packages or to pip's configuration, or drop {companion.package}.",
    )


def _kind(build: Build) -> str:
    return {"cpu": "the CPU", "rocm": "ROCm"}.get(build.kind) or f"CUDA {build.cuda}".rstrip()

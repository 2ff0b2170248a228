"""torch and its companions (torchvision, torchaudio, torchtext) have to be built for the same accelerator.

A companion built for CUDA cannot be loaded beside a CPU torch. Neither its metadata nor, on PyPI, its release number
says what it was built for. The libraries in its wheel do: those it links against.
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
    """One package, and what it was compiled for."""

    package: str
    version: str
    kind: str
    """`cpu`, `cuda`, `rocm`; empty if that is not known or makes no difference."""
    cuda: str = ""
    """The release of CUDA, where it is known: `13.0` of torch, `13` of a companion."""
    library: str = ""
    """The library that shows that it was compiled for CUDA."""

    def __str__(self) -> str:
        return f"{self.package} {self.version}".rstrip()


def is_named(spec: EnvironmentSpec) -> bool:
    """Whether one of the companions is among the packages."""
    return any(package_name(each) in COMPANIONS for each in spec.pip_packages)


def torch_in_lock(lock: Sequence[Pin]) -> Build | None:
    """torch as far as a lock says what it is; `kind` is empty for one that may be either."""
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
    """The release of CUDA that a lock brings, as `13.0`."""
    found = [pin.version for pin in lock if pin.name.startswith(("nvidia-cuda-runtime", "cuda-toolkit"))]
    return ".".join(found[0].split(".")[:2]) if found else ""


def torch_in(packages: Path) -> Build | None:
    """torch as it is installed in the folder `packages`."""
    try:
        text = (packages / "torch/version.py").read_text(errors="replace")
    except OSError:
        return None
    said = {found["what"]: found["version"] for found in _SAID_BY_TORCH.finditer(text)}
    kind = "cuda" if "cuda" in said else "rocm" if "hip" in said else "cpu"
    return Build("torch", _release(packages, "torch"), kind, said.get("cuda", ""))


def companions_in(packages: Path) -> list[Build]:
    """The companions that are installed in the folder `packages`."""
    return [_companion(packages, name) for name in COMPANIONS if (packages / name).is_dir()]


def _companion(packages: Path, name: str) -> Build:
    libraries = sorted((packages / name).rglob("*.so"))
    needed = [each for library in libraries for each in shared_library.needed(library)]
    of_cuda = [each for each in needed if _OF_CUDA.fullmatch(each)]
    runtimes = [found["major"] for found in map(_RUNTIME.fullmatch, needed) if found]
    # Only torchvision is compiled for CUDA in every release; the others may do without.
    kind = "cuda" if of_cuda else "cpu" if libraries and name == "torchvision" else ""
    shown = next((each for each in of_cuda if each.startswith("libtorch_cuda")), of_cuda[0] if of_cuda else "")
    return Build(name, _release(packages, name), kind, runtimes[0] if runtimes else "", shown)


def _release(packages: Path, name: str) -> str:
    found = sorted(packages.glob(f"{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


def check(torch: Build | None, companions: Iterable[Build], wanted: str) -> None:
    """Refuses companions that cannot be used with this torch; `wanted` is the accelerator of the environment."""
    for companion in companions:
        if torch is not None and _is_newer_than_torchtext(torch, companion):
            raise _refusal_of_torchtext(torch, companion)
        if torch is not None and _is_unfit(torch, companion, wanted):
            raise _refusal(torch, companion)


def _is_newer_than_torchtext(torch: Build, companion: Build) -> bool:
    """Whether torch is newer than the last one that torchtext was built for; its metadata names no upper limit."""
    if companion.package != "torchtext" or not companion.version.startswith(_LAST_TORCHTEXT):
        return False
    release = re.match(r"(\d+)\.(\d+)", torch.version)
    return release is not None and (int(release[1]), int(release[2])) > _TORCH_OF_TORCHTEXT


def _refusal_of_torchtext(torch: Build, companion: Build) -> EnvironmentException:
    fitting = ".".join(map(str, _TORCH_OF_TORCHTEXT))
    return EnvironmentException(
        f"{companion} was built for torch {fitting} and cannot be loaded with {torch}",
        cause="It is the last release of torchtext.",
        hint=f"Ask for 'torch=={fitting}.*' beside torchtext, or leave torchtext out.",
    )


def _is_unfit(torch: Build, companion: Build, wanted: str) -> bool:
    if not torch.kind or not companion.kind:
        return False
    if companion.kind == "cuda":
        return torch.kind != "cuda" or _differ(torch.cuda, companion.cuda)
    # A companion for the CPU loads beside any torch, but computes nothing on a GPU.
    return torch.kind == "cuda" and wanted == "cuda"


def _differ(one: str, other: str) -> bool:
    """Whether two releases of CUDA, where both are known, are not of the same major number."""
    return bool(one and other) and one.partition(".")[0] != other.partition(".")[0]


def left_out(torch: Build, names: Sequence[str]) -> str:
    """The warning that companions, which nobody asked for by name, are not there."""
    index, shown = index_for(torch), " and ".join(names)
    return (
        f"{shown}: left out of the environment, because the package sources have no build that fits {torch}; "
        f"{index} has one: add '--extra-index-url {index}' to pip_packages or to pip's configuration"
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
        f"they do not work together, and {index} has the {companion.package} that fits",
        cause="The package sources have no other build of it for this torch.",
        hint=f"Add '--extra-index-url {index}' to pip_packages or to pip's configuration, "
        f"or leave {companion.package} out.",
    )


def _kind(build: Build) -> str:
    return {"cpu": "the CPU", "rocm": "ROCm"}.get(build.kind) or f"CUDA {build.cuda}".rstrip()

"""Releases of frameworks: the packages, the Python and the Horovod that belong to each. Tables and pure functions.

A release marked as tested was installed and run: imported, and a gradient or a fit computed. Pins that a release needs
today but does not declare (such as `protobuf<3.21`) are part of the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from trainmaster.environments.requirement import is_open, package_name
from trainmaster.job.errors import EnvironmentException

_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?")
# pip: name[extras]==version. conda: channel::name=version=build, where a space may also precede the build.
_PIN = re.compile(
    r"(?:\S+::)?(?P<name>[A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*={1,2}\s*(?P<version>[^\s=,;*]+?)(?:\.?\*)?(?:[\s=;].*)?"
)


@dataclass(frozen=True)
class Era:
    """What the releases from `since` until the next era have in common."""

    since: str
    pythons: str
    """The Pythons with wheels, best first."""
    cpu: str
    """The package for machines without GPUs."""
    gpu: str
    pins: tuple[str, ...] = ()
    horovod: str = ""
    mpi: tuple[str, ...] = ()
    """Packages for runs under MPI."""


@dataclass(frozen=True)
class Known:
    """A tested release: its usual name, its exact version, and the packages that belong to it."""

    name: str
    exact: str
    companions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Framework:
    """A framework and its releases."""

    name: str
    names: tuple[str, ...]
    """Its names in pip and conda; the first is the usual one."""
    releases: tuple[Known, ...]
    """Oldest first; the last is the default."""
    eras: tuple[Era, ...]
    """Oldest first."""
    v1_default: str
    """The release that v1 used by default."""
    optional: tuple[str, ...] = ()
    """Packages installed with every release if matching builds exist."""

    @property
    def default(self) -> str:
        return self.releases[-1].name

    @property
    def versions(self) -> list[str]:
        """The tested releases in numeric order."""
        return sorted((release.name for release in self.releases), key=_order)


@dataclass(frozen=True)
class Release:
    """One release of a framework, ready to be installed."""

    framework: Framework
    name: str
    requirement: str
    """`==1.4.0`, or `==1.7.*` if only part of the number was given."""
    era: Era
    companions: tuple[str, ...] = ()
    tested: bool = False

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(self.era.pythons.split())

    def packages(self, use_gpu: bool, mpi: bool = False) -> tuple[str, ...]:
        """The requirements for pip."""
        framework = (self.era.gpu if use_gpu else self.era.cpu) + self.requirement
        return (framework, *self.companions, *self.era.pins, *(self.era.mpi if mpi else ()))

    def optional_beside(self, packages: Iterable[str]) -> tuple[str, ...]:
        """The framework's optional packages that neither the release nor `packages` already contain."""
        named = {name_of(package) for package in (*self.companions, *packages)}
        return tuple(package for package in self.framework.optional if package not in named)

    def __str__(self) -> str:
        return f"{self.framework.name} {self.name}"


# What old releases of tensorboard need today.
_WRITER = ("future", "protobuf<3.21")

# v1 combined torchvision 0.4.1 with torch 1.0, and 0.5.0 with 1.5 and 1.6, which do not match. This table has the
# torchvision that was released with each torch. For other releases it is optional, because CPU builds are rare.
PYTORCH = Framework(
    name="PyTorch",
    names=("torch", "pytorch", "pytorch-cpu"),
    releases=(
        Known("1.0", "1.0.0", ("torchvision==0.2.1",)),
        Known("1.1", "1.1.0", ("torchvision==0.3.0", "tensorboard==1.14.0", *_WRITER)),
        Known("1.2", "1.2.0", ("torchvision==0.4.0", "tensorboard==1.14.0", *_WRITER)),
        Known("1.3", "1.3.1", ("torchvision==0.4.2", "tensorboard==1.14.0", *_WRITER)),
        Known("1.4", "1.4.0", ("torchvision==0.5.0", "tensorboard==1.14.0", *_WRITER)),
        Known("1.5", "1.5.0", ("torchvision==0.6.0", "tensorboard==1.14.0", *_WRITER)),
        Known("1.6", "1.6.0", ("torchvision==0.7.0", "tensorboard==1.15.0", *_WRITER)),
        Known("2.13", "2.13.0"),
    ),
    eras=(
        # torchvision before 0.5 imports a name that Pillow 7 removed; NumPy 1.20 warns about aliases such as np.float.
        Era("0", "3.7 3.6", "torch", "torch", ("pillow<7", "numpy<1.20"), "0.18.1"),
        Era("1.4", "3.7 3.6 3.8", "torch", "torch", ("numpy<1.20",), "0.18.1"),
        Era("1.5", "3.7 3.6 3.8", "torch", "torch", ("numpy<1.20",), "0.19.1"),
        Era("1.6", "3.7 3.6 3.8", "torch", "torch", ("numpy<1.20",), "0.19.5"),
        Era("1.7", "3.8 3.7 3.6", "torch", "torch", ("numpy<1.20",), "0.28.1"),
        Era("1.8", "3.9 3.8 3.7 3.6", "torch", "torch", ("numpy<2",), "0.28.1"),
        Era("1.11", "3.10 3.9 3.8 3.7", "torch", "torch", ("numpy<2",), "0.28.1"),
        Era("1.13", "3.10 3.9 3.8 3.7 3.11", "torch", "torch", ("numpy<2",), "0.28.1"),
        Era("2.0", "3.11 3.10 3.9 3.8", "torch", "torch", ("numpy<2",), "0.28.1"),
        Era("2.2", "3.11 3.10 3.9 3.8 3.12", "torch", "torch", ("numpy<2",), "0.28.1"),
        Era("2.3", "3.12 3.11 3.10 3.9 3.8", "torch", "torch", ("numpy",), "0.28.1"),
        Era("2.5", "3.12 3.11 3.10 3.9 3.13", "torch", "torch", ("numpy",), "0.28.1"),
        Era("2.6", "3.13 3.12 3.11 3.10 3.9", "torch", "torch", ("numpy",), "0.28.1"),
        Era("2.9", "3.13 3.12 3.11 3.10 3.14", "torch", "torch", ("numpy",), "0.28.1"),
        Era("2.15", "3.13 3.12 3.11 3.14", "torch", "torch", ("numpy",), "0.28.1"),
    ),
    v1_default="1.4",
    optional=("torchvision",),
)

# Code generated by old protoc cannot be imported with protobuf 3.21; h5py 3 returns bytes where Keras expects str.
_TF1 = ("protobuf<3.21", "numpy<1.17", "h5py<3", "gast<0.3")
_TF2 = ("protobuf<3.21", "numpy<1.19", "h5py<3")
TENSORFLOW = Framework(
    name="TensorFlow",
    names=("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly"),
    releases=(
        Known("1.10", "1.10.0"),
        Known("1.12", "1.12.0"),
        Known("1.13", "1.13.1"),
        Known("2.0", "2.0.0"),
        Known("2.1", "2.1.0"),
        Known("2.2", "2.2.0"),
        Known("2.3", "2.3.0"),
        Known("2.15", "2.15.1"),
        Known("2.21", "2.21.0"),
    ),
    eras=(
        Era("1", "3.6", "tensorflow", "tensorflow-gpu", _TF1, "0.15.2"),
        Era("1.13", "3.7 3.6", "tensorflow", "tensorflow-gpu", _TF1, "0.16.1"),
        Era("1.14", "3.7 3.6", "tensorflow", "tensorflow-gpu", _TF1, "0.19.1"),
        Era("2.0", "3.7 3.6", "tensorflow", "tensorflow-gpu", _TF2, "0.18.1"),
        Era("2.1", "3.7 3.6", "tensorflow-cpu", "tensorflow", _TF2, "0.19.1"),
        Era("2.2", "3.7 3.6 3.8", "tensorflow-cpu", "tensorflow", _TF2, "0.19.5"),
        # v1 had Horovod 0.20.0 here.
        Era("2.3", "3.7 3.6 3.8", "tensorflow-cpu", "tensorflow", _TF2, "0.28.1"),
        Era("2.4", "3.8 3.7 3.6", "tensorflow-cpu", "tensorflow", ("protobuf<3.21", "numpy<2"), "0.28.1"),
        Era("2.5", "3.9 3.8 3.7", "tensorflow-cpu", "tensorflow", ("protobuf<3.21", "numpy<2"), "0.28.1"),
        Era("2.8", "3.10 3.9 3.8 3.7", "tensorflow-cpu", "tensorflow", ("protobuf<3.21", "numpy<2"), "0.28.1"),
        Era("2.12", "3.11 3.10 3.9 3.8", "tensorflow-cpu", "tensorflow", ("numpy<2",), "0.28.1"),
        Era("2.14", "3.11 3.10 3.9", "tensorflow-cpu", "tensorflow[and-cuda]", ("numpy<2",), "0.28.1"),
        Era("2.16", "3.12 3.11 3.10 3.9", "tensorflow-cpu", "tensorflow[and-cuda]", (), "0.28.1"),
        Era("2.20", "3.13 3.12 3.11 3.10", "tensorflow-cpu", "tensorflow[and-cuda]", (), "0.28.1"),
    ),
    v1_default="1.13",
)

SKLEARN = Framework(
    name="SKLearn",
    names=("scikit-learn", "sklearn"),
    releases=(
        Known("0.20.3", "0.20.3", ("scipy==1.2.1", "joblib==0.13.2")),
        Known("1.9.1", "1.9.1", ("scipy", "joblib")),
    ),
    eras=(
        Era("0", "3.6", "scikit-learn", "scikit-learn", ("numpy<1.20",)),
        Era("0.20", "3.7 3.6", "scikit-learn", "scikit-learn", ("numpy<1.20",)),
        Era("0.22", "3.8 3.7 3.6", "scikit-learn", "scikit-learn", ("numpy<1.20",)),
        Era("0.24", "3.9 3.8 3.7 3.6", "scikit-learn", "scikit-learn", ("numpy<1.24",)),
        Era("1.0", "3.9 3.8 3.7 3.10", "scikit-learn", "scikit-learn", ("numpy<1.24",)),
        Era("1.1", "3.10 3.9 3.8", "scikit-learn", "scikit-learn", ("numpy<1.24",)),
        Era("1.2", "3.11 3.10 3.9 3.8", "scikit-learn", "scikit-learn", ("numpy<2",)),
        Era("1.4", "3.12 3.11 3.10 3.9", "scikit-learn", "scikit-learn", ("numpy<2",)),
        Era("1.5", "3.12 3.11 3.10 3.9 3.13", "scikit-learn", "scikit-learn"),
        Era("1.8", "3.13 3.12 3.11 3.14", "scikit-learn", "scikit-learn"),
    ),
    v1_default="0.20.3",
)

CHAINER = Framework(
    name="Chainer",
    names=("chainer",),
    releases=(Known("5.1.0", "5.1.0"), Known("7.0.0", "7.0.0")),
    # mpi4py has wheels for Python 3.8 and newer; NumPy 1.19 builds only with an older setuptools.
    eras=(Era("0", "3.8 3.7 3.6", "chainer", "chainer", ("numpy<1.20", "setuptools<60"), mpi=("mpi4py",)),),
    v1_default="5.1.0",
)

FRAMEWORKS = (PYTORCH, TENSORFLOW, SKLEARN, CHAINER)


_ON_CPU = {"tensorflow-gpu": "tensorflow", "tensorflow[and-cuda]": "tensorflow-cpu"}


def is_version(text: str) -> bool:
    """Whether `text` is a version number.

    >>> is_version("1.4"), is_version("2.13.0+cpu"), is_version("newest")
    (True, True, False)
    """
    return bool(_VERSION.fullmatch(text))


def on_cpu(requirement: str) -> str:
    """The CPU variant of a requirement: GPU packages cannot be imported without GPUs.

    >>> [on_cpu(each) for each in ("tensorflow[and-cuda]==2.21.0", "tensorflow-gpu==1.13.1", "torch==2.13.0")]
    ['tensorflow-cpu==2.21.0', 'tensorflow==1.13.1', 'torch==2.13.0']
    """
    for name, instead in _ON_CPU.items():
        rest = requirement.removeprefix(name)
        if rest != requirement and rest[:1] in ("", "=", "<", ">", "~", "!", ";", " "):
            return f"{instead}{rest}"
    return requirement


def release_of(framework: Framework, version: str) -> Release:
    """The release with that number: a tested one, or one derived from its era.

    >>> release_of(PYTORCH, "1.4").packages(use_gpu=False)[:2]
    ('torch==1.4.0', 'torchvision==0.5.0')
    """
    era = _era(framework, version)
    base = version.partition("+")[0]
    for known in reversed(framework.releases):
        if base in (known.name, known.exact) or _is_part(base, known.exact):
            requirement = f"=={known.exact}" if base == version else f"=={version}"
            return Release(framework, version, requirement, era, known.companions, tested=True)
    is_part = bool(re.fullmatch(r"\d+(\.\d+)?", version))
    return Release(framework, version, f"=={version}.*" if is_part else f"=={version}", era)


def release_in(framework: Framework, packages: Iterable[str]) -> Release | None:
    """The release pinned in pip (`torch==1.4.0`) or conda packages (`pytorch=1.4`); None if none is pinned."""
    for package in packages:
        pin = _PIN.fullmatch(package.strip())
        if pin and package_name(pin["name"]) in framework.names and is_version(pin["version"]):
            return release_of(framework, pin["version"])
    return None


def is_named(framework: Framework, packages: Iterable[str]) -> bool:
    """Whether the framework is among the pip or conda packages.

    >>> is_named(PYTORCH, ["numpy", "pytorch::pytorch=1.4"])
    True
    """
    return not {name_of(package) for package in packages}.isdisjoint(framework.names)


def name_of(package: str) -> str:
    """The name of a pip or conda package."""
    return package_name(package.rpartition("::")[2])


def pins_beside(packages: Sequence[str]) -> tuple[str, ...]:
    """The pins that the frameworks among pip packages need, unless the packages already pin a version.

    >>> pins_beside(["tensorflow==1.13.1", "numpy==1.16.0", "h5py"])
    ('protobuf<3.21', 'h5py<3', 'gast<0.3')
    """
    named = {name_of(package) for package in packages if not is_open(package)}
    releases = [release for framework in FRAMEWORKS if (release := release_in(framework, packages))]
    pins = dict.fromkeys(pin for release in releases for pin in release.era.pins)
    return tuple(pin for pin in pins if package_name(pin) not in named and pin not in packages)


def why_not_runnable(release: Release, found: Collection[str]) -> str:
    """Explain why none of the Pythons `found` can run a release; empty if one can.

    >>> why_not_runnable(release_of(PYTORCH, "1.4"), ["3.11", "3.12"])
    'PyTorch 1.4 needs Python 3.6, 3.7 or 3.8, which this machine does not have'
    """
    if not set(release.pythons).isdisjoint(found):
        return ""
    needed = _join_words(sorted(release.pythons, key=_order))
    return f"{release} needs Python {needed}, which this machine does not have"


def choose_python(release: Release, running: str, found: Collection[str]) -> str:
    """Choose the Python (major.minor) for a release: the running one if it fits, otherwise the best one found."""
    for version in (running, *release.pythons):
        if version in release.pythons and (version == running or version in found):
            return version
    best = release.pythons[0]
    raise EnvironmentException(
        why_not_runnable(release, ()),
        cause=f"Found: {', '.join(sorted(found, key=_order))}.",
        hint=f"Install one, for example with 'uv python install {best}' or 'pyenv install {best}', "
        f"or choose another framework_version: {', '.join(release.framework.versions)}.",
    )


def _era(framework: Framework, version: str) -> Era:
    begun = [era for era in framework.eras if _order(era.since) <= _order(version)]
    return begun[-1] if begun else framework.eras[0]


def _is_part(version: str, exact: str) -> bool:
    # A major number alone is too vague: 2 would match dozens of releases.
    return "." in version and exact.startswith(f"{version}.")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _join_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

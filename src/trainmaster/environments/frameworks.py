"""Releases of frameworks: which packages, which Python and which Horovod belong to each. Tables, and functions of them.

A release marked as tested was installed and run: imported, computed with, a gradient or a fit taken. Pins that the
release itself does not say but needs today (such as `protobuf<3.21`) are part of the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from trainmaster.environments.requirement import is_open, package_name
from trainmaster.job.errors import EnvironmentException

_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?")
# Of pip: name[extras]==version. Of conda: channel::name=version=build, where the build may follow a space too.
_PIN = re.compile(
    r"(?:\S+::)?(?P<name>[A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*={1,2}\s*(?P<version>[^\s=,;*]+?)(?:\.?\*)?(?:[\s=;].*)?"
)


@dataclass(frozen=True)
class Era:
    """What the releases from `since` on, until the next era begins, have in common."""

    since: str
    pythons: str
    """The Pythons it has wheels for, best first."""
    cpu: str
    """The package for machines without GPU."""
    gpu: str
    pins: tuple[str, ...] = ()
    horovod: str = ""
    mpi: tuple[str, ...] = ()
    """Packages for runs under MPI."""


@dataclass(frozen=True)
class Known:
    """A tested release by the name that v1 or its makers give it, the exact one, and the packages that come with it."""

    name: str
    exact: str
    companions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Framework:
    """A framework: all that is known of its releases."""

    name: str
    names: tuple[str, ...]
    """Names under which pip and conda know it; the first is the usual one."""
    releases: tuple[Known, ...]
    """Oldest first; the last is the default."""
    eras: tuple[Era, ...]
    """Oldest first."""
    v1_default: str
    """What v1 took where no release was named."""
    optional: tuple[str, ...] = ()
    """Packages that every release comes with, if there are builds that fit it."""

    @property
    def default(self) -> str:
        return self.releases[-1].name

    @property
    def versions(self) -> list[str]:
        """The tested releases in the order of their numbers."""
        return sorted((release.name for release in self.releases), key=_order)


@dataclass(frozen=True)
class Release:
    """One release of a framework, ready to be installed."""

    framework: Framework
    name: str
    requirement: str
    """`==1.4.0`, or `==1.7.*` where only a part of the number was given."""
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
        """Packages to take along if that is possible: those of the framework that neither it nor `packages` name."""
        named = {name_of(package) for package in (*self.companions, *packages)}
        return tuple(package for package in self.framework.optional if package not in named)

    def __str__(self) -> str:
        return f"{self.framework.name} {self.name}"


# What tensorboard of that time needs today.
_WRITER = ("future", "protobuf<3.21")

# v1 asked for torchvision 0.4.1 beside torch 1.0 and for 0.5.0 beside 1.5 and 1.6. Each of these wants another torch;
# here is the torchvision that was released with each. For the others it is optional: a CPU build is hard to come by.
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
        # Pillow 7 lost a name that torchvision before 0.5 imports; NumPy 1.20 warns of names of Python's own types.
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

# What protoc made at that time cannot be imported with protobuf 3.21; h5py 3 gives bytes where Keras expects text.
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
    # mpi4py has wheels from Python 3.8 on; NumPy 1.19 needs the compilers of an older setuptools.
    eras=(Era("0", "3.8 3.7 3.6", "chainer", "chainer", ("numpy<1.20", "setuptools<60"), mpi=("mpi4py",)),),
    v1_default="5.1.0",
)

FRAMEWORKS = (PYTORCH, TENSORFLOW, SKLEARN, CHAINER)


_ON_CPU = {"tensorflow-gpu": "tensorflow", "tensorflow[and-cuda]": "tensorflow-cpu"}


def is_version(text: str) -> bool:
    """Whether `text` is the number of a release.

    >>> is_version("1.4"), is_version("2.13.0+cpu"), is_version("newest")
    (True, True, False)
    """
    return bool(_VERSION.fullmatch(text))


def on_cpu(requirement: str) -> str:
    """The same for a machine without GPUs, where a package for GPUs cannot even be imported.

    >>> [on_cpu(each) for each in ("tensorflow[and-cuda]==2.21.0", "tensorflow-gpu==1.13.1", "torch==2.13.0")]
    ['tensorflow-cpu==2.21.0', 'tensorflow==1.13.1', 'torch==2.13.0']
    """
    for name, instead in _ON_CPU.items():
        rest = requirement.removeprefix(name)
        if rest != requirement and rest[:1] in ("", "=", "<", ">", "~", "!", ";", " "):
            return f"{instead}{rest}"
    return requirement


def release_of(framework: Framework, version: str) -> Release:
    """The release of that number: a tested one, or another that is put together from its neighbours.

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
    """The release that packages of pip (`torch==1.4.0`) or conda (`pytorch=1.4`) name; None where they name no one."""
    for package in packages:
        pin = _PIN.fullmatch(package.strip())
        if pin and package_name(pin["name"]) in framework.names and is_version(pin["version"]):
            return release_of(framework, pin["version"])
    return None


def is_named(framework: Framework, packages: Iterable[str]) -> bool:
    """Whether one of the packages, of pip or conda, is the framework.

    >>> is_named(PYTORCH, ["numpy", "pytorch::pytorch=1.4"])
    True
    """
    return not {name_of(package) for package in packages}.isdisjoint(framework.names)


def name_of(package: str) -> str:
    """The name in a package of pip or conda."""
    return package_name(package.rpartition("::")[2])


def pins_beside(packages: Sequence[str]) -> tuple[str, ...]:
    """What the releases of frameworks among packages of pip need beside them, as far as no version of it is named.

    >>> pins_beside(["tensorflow==1.13.1", "numpy==1.16.0", "h5py"])
    ('protobuf<3.21', 'h5py<3', 'gast<0.3')
    """
    named = {name_of(package) for package in packages if not is_open(package)}
    releases = [release for framework in FRAMEWORKS if (release := release_in(framework, packages))]
    pins = dict.fromkeys(pin for release in releases for pin in release.era.pins)
    return tuple(pin for pin in pins if package_name(pin) not in named and pin not in packages)


def why_not_runnable(release: Release, found: Collection[str]) -> str:
    """Why none of the Pythons `found` can run a release; empty if one can.

    >>> why_not_runnable(release_of(PYTORCH, "1.4"), ["3.11", "3.12"])
    'PyTorch 1.4 needs Python 3.6, 3.7 or 3.8, and this machine has none of them'
    """
    if not set(release.pythons).isdisjoint(found):
        return ""
    needed = _listed(sorted(release.pythons, key=_order))
    return f"{release} needs Python {needed}, and this machine has none of them"


def choose_python(release: Release, running: str, found: Collection[str]) -> str:
    """The Python (major.minor) for a release: the running one if it fits, else the best that was found."""
    for version in (running, *release.pythons):
        if version in release.pythons and (version == running or version in found):
            return version
    best = release.pythons[0]
    raise EnvironmentException(
        why_not_runnable(release, ()),
        cause=f"Found: {', '.join(sorted(found, key=_order))}.",
        hint=f"Install one, for example with 'uv python install {best}' or 'pyenv install {best}', "
        f"or ask for another framework_version: {', '.join(release.framework.versions)}.",
    )


def _era(framework: Framework, version: str) -> Era:
    begun = [era for era in framework.eras if _order(era.since) <= _order(version)]
    return begun[-1] if begun else framework.eras[0]


def _is_part(version: str, exact: str) -> bool:
    # One number alone says too little: 2 would be the newest of dozens.
    return "." in version and exact.startswith(f"{version}.")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

"""Which Horovod can be built for which framework, and how: a table and its lookups."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.environments import open_mpi
from trainmaster.environments.horovod import edits
from trainmaster.environments.horovod.edits import Addition, Edit
from trainmaster.environments.prefix import python_version
from trainmaster.environments.requirement import parse
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

# Horovod's name of each framework, and its packages.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tf-nightly"),
}
_OF_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
ALTERNATIVE = {
    "torch": "Alternative without compiling: distributed_training=Gloo() with torch.distributed.",
    "tensorflow": "Alternative without compiling: ParameterServer() or tf.distribute.",
}
# Build tools for every release.
TOOLS = ("pip", "setuptools<81", "wheel")
_SHA256 = {
    "0.15.2": "2b1599c701fafdb7deba83a19306fb9b9166ffce0efc0a8aa03008761b428187",
    "0.16.1": "a91a09de008d38027b4ae2c03ac7d12fc30fefc1e91c1d6b5c6cde983ceaa196",
    "0.18.1": "26a7751b090caabeba27808786b106cc672bc0aef3e7993361e99479c08beeb3",
    "0.19.1": "2e7a609a985a54effead95512a568d5b94e2957cfc821c2bee5d49850fdd9ae3",
    "0.19.5": "428d9ba5ff277467be77e4e707d40b915f7d9e6920a2645f647fcb2cea59c366",
    "0.28.1": "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
}


@dataclass(frozen=True)
class Recipe:
    """How to build one release of Horovod for some releases of one framework."""

    horovod: str
    framework: str
    releases: tuple[str, str]
    """The first supported release, and the first unsupported one; empty if no upper limit is known."""
    pythons: tuple[str, str]
    """The first and the last supported Python; the last is empty if no upper limit is known."""
    seconds: int
    """The duration of the compilation on two cores."""
    tested: tuple[str, ...] = ()
    """The releases of the framework with which two ranks were trained in a test."""
    edits: tuple[Edit | Addition, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    open_mpi: str = open_mpi.CURRENT
    cmake: bool = True
    steps: int = 0
    """The number of compiled files, for builds that do not print their progress."""
    parallel: bool = True

    @property
    def sha256(self) -> str:
        """The hash of the source distribution."""
        return _SHA256[self.horovod]

    @property
    def requirements(self) -> tuple[str, ...]:
        """The packages that Horovod imports and its wheel requires."""
        needed = ["cloudpickle", "psutil", "pyyaml", "packaging" if self.cmake else "six"]
        return (*needed, "cffi>=1.4.0") if self.framework == "torch" or not self.cmake else tuple(needed)

    def fits(self, release: str) -> bool:
        """Whether the recipe supports this release of its framework."""
        first, end = self.releases
        return numbers(release) >= numbers(first) and (not end or numbers(release) < numbers(end))


_CMAKE = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITH_GLOO": "1", "CMAKE_POLICY_VERSION_MINIMUM": "3.5"}
_COMMON = (*edits.RELOCATABLE, *edits.SMALL, *edits.CMAKE4, *edits.DOUBLE_DASHES)
_TENSORFLOW = (*_COMMON, *edits.SESSION_HOOK, *edits.KERAS_IN_USE, *edits.KERAS3)
# Releases before CMake: no Gloo, no parallel build, and headers that current compilers no longer include implicitly.
_ERA = {"HOROVOD_WITHOUT_GLOO": "1", "CFLAGS": "-include stdexcept"}
# 0.19 imports distutils before setuptools, and must catch errors of the same distutils.
_ERA_19 = {**_ERA, "SETUPTOOLS_USE_DISTUTILS": "stdlib"}


def _era(
    horovod: str, framework: str, releases: tuple[str, str], seconds: int, steps: int, tested: tuple[str, ...] = ()
) -> Recipe:
    return Recipe(
        horovod,
        framework,
        releases,
        pythons=("3.6", "3.8"),
        seconds=seconds,
        tested=tested,
        variables=_ERA_19 if horovod.startswith("0.19.") else _ERA,
        open_mpi=open_mpi.ERA,
        cmake=False,
        steps=steps,
        parallel=False,
    )


RECIPES = (
    Recipe("0.28.1", "torch", ("2.1", ""), ("3.8", ""), 160, ("2.13.0",), (*edits.CXX17, *_COMMON), _CMAKE),
    Recipe("0.28.1", "torch", ("1.5", "2.1"), ("3.6", "3.11"), 180, (), _COMMON, _CMAKE),
    Recipe("0.28.1", "tensorflow", ("2.14", ""), ("3.9", ""), 240, ("2.21.0",),
           (*edits.WITHOUT_XLA, *edits.UNUSED_GLOO, *_TENSORFLOW), _CMAKE),
    Recipe("0.28.1", "tensorflow", ("2.0", "2.14"), ("3.6", "3.11"), 240, (), _TENSORFLOW, _CMAKE),
    _era("0.15.2", "tensorflow", ("1.9", "1.13"), 45, 8, ("1.12.0",)),
    _era("0.16.1", "tensorflow", ("1.9", "1.14"), 90, 17, ("1.13.1",)),
    _era("0.18.1", "torch", ("1.0", "1.5"), 150, 28, ("1.4.0",)),
    _era("0.18.1", "tensorflow", ("1.13", "2.1"), 90, 23, ("2.0.0",)),
    _era("0.19.1", "torch", ("1.2", "1.6"), 240, 32, ("1.5.0",)),
    _era("0.19.1", "tensorflow", ("1.14", "2.2"), 120, 27, ("2.1.0",)),
    _era("0.19.5", "torch", ("1.3", "1.7"), 240, 32, ("1.6.0",)),
    _era("0.19.5", "tensorflow", ("1.14", "2.3"), 120, 27),
)  # fmt: skip


@dataclass(frozen=True)
class Order:
    """The build of Horovod for one framework, or for several in one environment."""

    recipes: tuple[Recipe, ...]
    builds: tuple[str, ...]
    """The frameworks with their releases, as in `torch 2.13.0`."""

    @property
    def horovod(self) -> str:
        return self.recipes[0].horovod

    @property
    def sha256(self) -> str:
        return self.recipes[0].sha256

    @property
    def edits(self) -> tuple[Edit | Addition, ...]:
        return tuple(dict.fromkeys(edit for recipe in self.recipes for edit in recipe.edits))

    @property
    def seconds(self) -> int:
        return sum(recipe.seconds for recipe in self.recipes)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the build, which enable and disable frameworks."""
        wanted = {recipe.framework for recipe in self.recipes}
        told = {key: value for recipe in self.recipes for key, value in recipe.variables.items()}
        for name, word in (("torch", "PYTORCH"), ("tensorflow", "TENSORFLOW")):
            told[f"HOROVOD_{'WITH' if name in wanted else 'WITHOUT'}_{word}"] = "1"
        return {**told, "HOROVOD_WITHOUT_MXNET": "1"}

    @property
    def title(self) -> str:
        return f"Horovod {self.horovod} for {' and '.join(self.builds)}"

    @property
    def untested(self) -> list[str]:
        """The frameworks whose release was never tested with this Horovod."""
        return [
            build
            for recipe, build in zip(self.recipes, self.builds, strict=True)
            if not any(numbers(build.split()[-1]) == numbers(tested) for tested in recipe.tested)
        ]

    @property
    def digest(self) -> str:
        """Changes whenever the same order would be built differently."""
        parts = [
            [self.sha256, self.variables, TOOLS],
            [[edit.file, edit.text] if isinstance(edit, Addition) else list(vars(edit).values())
             for edit in self.edits],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def check(spec: EnvironmentSpec) -> None:
    """Refuse combinations that are known not to build; untested ones pass."""
    if not spec.horovod:
        return
    named = find_frameworks(spec)
    if not named:
        raise EnvironmentException(
            f"Horovod {spec.horovod} must be built for a framework, and the environment has none",
            cause="The packages of this environment include neither torch nor TensorFlow.",
            hint="Use a PyTorch or TensorFlow estimator, or add torch or tensorflow-cpu to pip_packages.",
        )
    _check_release(spec.horovod, named)
    for framework, release in named.items():
        if release:
            _find(spec.horovod, framework, release, python_version(spec))


def plan_build(horovod: str, installed: Mapping[str, str], python: str) -> Order:
    """Plan the build for the installed frameworks and their releases."""
    _check_release(horovod, installed)
    return Order(
        tuple(_find(horovod, framework, release, python) for framework, release in installed.items()),
        tuple(f"{framework} {release}" for framework, release in installed.items()),
    )


def open_mpi_wheel(horovod: str) -> str:
    """The Open MPI that a release of Horovod was tested with."""
    return next((recipe.open_mpi for recipe in RECIPES if recipe.horovod == horovod), open_mpi.CURRENT)


def requirements_of(spec: EnvironmentSpec) -> list[str]:
    """The packages that Horovod needs in addition to the framework."""
    named = find_frameworks(spec)
    found = [each for each in RECIPES if each.horovod == spec.horovod and each.framework in named]
    return list(dict.fromkeys(requirement for recipe in found for requirement in recipe.requirements))


def find_frameworks(spec: EnvironmentSpec) -> dict[str, str]:
    """Find the frameworks among the packages, with their release if it is pinned.

    >>> find_frameworks(EnvironmentSpec(pip_packages=("torch==2.13.0", "numpy", "tensorflow-cpu>2")))
    {'torch': '2.13.0', 'tensorflow': ''}
    """
    found: dict[str, str] = {}
    for package in spec.pip_packages:
        wanted = parse(package)
        framework = wanted and _framework(wanted.name)
        if wanted and framework:
            pin = re.fullmatch(r"={2,3}([0-9][^*]*)", ",".join(wanted.clauses))
            found[framework] = pin.group(1) if pin else found.get(framework, "")
    for package in spec.conda_packages:
        name = re.match(r"(?:\S+::)?([A-Za-z0-9_-]+)", package)
        framework = name and _framework(_OF_CONDA.get(name.group(1).lower(), name.group(1).lower()))
        if framework:
            found.setdefault(framework, "")
    return found


def numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release, for comparisons.

    >>> numbers("2.13.0+cpu")
    (2, 13, 0)
    """
    found = re.match(r"\d+(?:\.\d+)*", release)
    return tuple(map(int, found.group().split("."))) if found else ()


def _framework(name: str) -> str | None:
    return next((framework for framework, names in PACKAGES.items() if name in names), None)


def _check_release(horovod: str, frameworks: Iterable[str]) -> None:
    if horovod not in _SHA256:
        raise EnvironmentException(
            f"there is no recipe for Horovod {horovod}",
            cause=f"Available: {', '.join(_SHA256)}.",
            hint=_alternative(frameworks),
        )


def _find(horovod: str, framework: str, release: str, python: str) -> Recipe:
    candidates = [recipe for recipe in RECIPES if (recipe.horovod, recipe.framework) == (horovod, framework)]
    found = next((recipe for recipe in candidates if recipe.fits(release)), None)
    if found is None:
        ranges = " and ".join(map(_range, candidates)) or "no release at all"
        raise EnvironmentException(
            f"Horovod {horovod} does not build with {framework} {release}",
            cause=f"It builds with {framework} {ranges}.{_better(framework, release)}",
            hint=_alternative([framework]),
        )
    first, last = found.pythons
    if numbers(python) < numbers(first) or (last and numbers(python) > numbers(last)):
        raise EnvironmentException(
            f"Horovod {horovod} for {framework} {release} does not build on Python {python}",
            cause=f"It needs Python {first} to {last}." if last else f"It needs Python {first} or newer.",
            hint=f"Choose another python_version. {_alternative([framework])}",
        )
    return found


def _range(recipe: Recipe) -> str:
    first, end = recipe.releases
    return f"from {first} to below {end}" if end else f"{first} and newer"


def _better(framework: str, release: str) -> str:
    fitting = [recipe.horovod for recipe in RECIPES if recipe.framework == framework and recipe.fits(release)]
    return f" For {framework} {release} there is Horovod {' or '.join(dict.fromkeys(fitting))}." if fitting else ""


def _alternative(frameworks: Iterable[str]) -> str:
    return " ".join(ALTERNATIVE[framework] for framework in frameworks)

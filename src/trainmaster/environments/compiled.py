"""The third stage of a build: what is compiled against the packages of an environment (Horovod), and Open MPI."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trainmaster.environments import build_record, lock, open_mpi
from trainmaster.environments.horovod import recipes, wheel
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

_ABOUT_PYTHON = (
    "import json, sys, sysconfig; "
    "print(json.dumps(['%d.%d' % sys.version_info[:2], sysconfig.get_config_var('SOABI')]))"
)
_PROGRAMS = (("a C++ compiler", ("c++", "g++", "clang++")), ("make", ("make", "gmake")))


def check(spec: EnvironmentSpec, environ: Mapping[str, str]) -> None:
    """Refuse what cannot be compiled or installed on this machine."""
    path = environ.get("PATH", os.defpath)
    given = _takes_wheel(spec, environ) or open_mpi.is_named(spec) or spec.conda_packages
    if (spec.open_mpi or spec.horovod) and not given and open_mpi.find_in_system(path) is None:
        raise open_mpi.missing()
    if not spec.horovod:
        return
    recipes.check(spec)
    absent = [name for name, commands in _PROGRAMS if not any(shutil.which(each, path=path) for each in commands)]
    if absent and not wheel.any_kept(spec.horovod, environ):
        raise EnvironmentException(
            f"Horovod {spec.horovod} must be compiled, but this machine has no "
            + " and no ".join(absent).replace("a C", "C"),
            hint="Debian, Ubuntu: apt install build-essential. "
            + " ".join(recipes.ALTERNATIVE[name] for name in recipes.find_frameworks(spec)),
        )


def add_requirements(spec: EnvironmentSpec, environ: Mapping[str, str] = os.environ) -> EnvironmentSpec:
    """Add the packages that Open MPI and Horovod need, so that they are locked with the others."""
    added = [recipes.open_mpi_wheel(spec.horovod)] if _takes_wheel(spec, environ) else []
    added += recipes.requirements_of(spec)
    return replace(spec, pip_packages=(*spec.pip_packages, *added)) if added else spec


def _takes_wheel(spec: EnvironmentSpec, environ: Mapping[str, str]) -> bool:
    return spec.open_mpi and not open_mpi.is_named(spec) and open_mpi.comes_as_wheel(environ)


def install(spec: EnvironmentSpec, folder: Path, tools: Tools) -> None:
    """Install Horovod in an environment whose packages are installed."""
    if not spec.horovod:
        return
    version, abi = _about(folder, tools)
    found = dict(frameworks(folder))
    if not found:
        raise EnvironmentException(
            f"Horovod {spec.horovod} must be built for a framework, and none is installed",
            cause="Neither torch nor TensorFlow is among the installed packages.",
            hint="Add torch or tensorflow-cpu to pip_packages.",
        )
    order = recipes.plan_build(spec.horovod, {name: release for name, (release, _) in found.items()}, version)
    for build in order.untested:
        build_record.warn(folder, f"Horovod {spec.horovod} was not tested with {build}")
    builds = tuple(f"{name} {release} {tags}" for name, (release, tags) in found.items())
    target = wheel.Target(folder, builds, abi, open_mpi.find_for(folder, tools.environ))
    made, fresh = wheel.provide(order, target, tools)
    tools.uv(
        ["pip", "install", "--no-deps", "--offline", "--python", f"{folder}/bin/python", str(made)],
        f"pip install {made.name}",
    )
    if fresh:
        _verify(order, target, made, tools)
    lock.append(folder, [
        f"# compiled for {', '.join(order.builds)} with Open MPI {target.open_mpi.version}:",
        f"horovod=={spec.horovod}",
    ])  # fmt: skip


def _about(folder: Path, tools: Tools) -> tuple[str, str]:
    """Ask the environment's Python for its version and its ABI."""
    code, said = tools.attempt([f"{folder}/bin/python", "-c", _ABOUT_PYTHON])
    if code:
        raise EnvironmentException("the environment's Python does not run", cause="".join(said))
    version, abi = json.loads(said[-1])
    return version, abi


def frameworks(folder: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """List the frameworks installed in an environment: name, release, and the tags of their wheels."""
    for name, packages in recipes.PACKAGES.items():
        for found in importlib.metadata.distributions(path=[str(each) for each in _site_packages(folder)]):
            if found.name and found.name.lower().replace("_", "-") in packages:
                tags = [line[5:] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
                yield name, (found.version, ",".join(sorted(tags)))
                break


def _site_packages(folder: Path) -> list[Path]:
    return sorted(folder.glob("lib/python3*/site-packages"))


def _verify(order: recipes.Order, target: wheel.Target, made: Path, tools: Tools) -> None:
    """Import the compiled wheel, and discard it if that fails."""
    variables = {**tools.environ, **open_mpi.variables(target.folder)}
    for recipe in order.recipes:
        try:
            tools.run(
                [str(target.python), "-c", f"import horovod.{recipe.framework}"],
                f"python -c 'import horovod.{recipe.framework}'",
                variables,
                hint=recipes.ALTERNATIVE[recipe.framework],
            )
        except EnvironmentException:
            wheel.discard(made)
            raise

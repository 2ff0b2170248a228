"""The third stage: what has to be compiled against the packages of an environment, and Open MPI with it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trainmaster.environments import facts, lock, open_mpi
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
    """Refuses at once what cannot be had or compiled on this machine."""
    path = environ.get("PATH", os.defpath)
    given = _takes_wheel(spec, environ) or open_mpi.named_by_user(spec) or spec.conda_packages
    if (spec.open_mpi or spec.horovod) and not given and open_mpi.of_system(path) is None:
        raise open_mpi.missing()
    if not spec.horovod:
        return
    recipes.check(spec)
    absent = [name for name, commands in _PROGRAMS if not any(shutil.which(each, path=path) for each in commands)]
    if absent and not wheel.any_kept(spec.horovod, environ):
        raise EnvironmentException(
            f"Horovod {spec.horovod} has to be compiled, and there is no {' and no '.join(absent).replace('a C', 'C')}",
            hint="Debian, Ubuntu: apt install build-essential. "
            + " ".join(recipes.ALTERNATIVE[name] for name in recipes.named_frameworks(spec)),
        )


def completed(spec: EnvironmentSpec, environ: Mapping[str, str] = os.environ) -> EnvironmentSpec:
    """`spec` with the packages that Open MPI and Horovod bring, to be locked with the others."""
    added = [recipes.open_mpi_wheel(spec.horovod)] if _takes_wheel(spec, environ) else []
    added += recipes.needed_by(spec)
    return replace(spec, pip_packages=(*spec.pip_packages, *added)) if added else spec


def _takes_wheel(spec: EnvironmentSpec, environ: Mapping[str, str]) -> bool:
    return spec.open_mpi and not open_mpi.named_by_user(spec) and open_mpi.in_environment(environ)


def install(spec: EnvironmentSpec, folder: Path, tools: Tools) -> None:
    """Horovod, for an environment whose packages are there."""
    if not spec.horovod:
        return
    version, abi = _about(folder, tools)
    found = dict(frameworks(folder))
    if not found:
        raise EnvironmentException(
            f"Horovod {spec.horovod} needs a framework to be built for",
            cause="Neither torch nor TensorFlow is among the installed packages.",
            hint="Add torch or tensorflow-cpu to pip_packages.",
        )
    order = recipes.order(spec.horovod, {name: release for name, (release, _) in found.items()}, version)
    for build in order.untested:
        facts.warn(folder, f"Horovod {spec.horovod} was not tested with {build}")
    builds = tuple(f"{name} {release} {tags}" for name, (release, tags) in found.items())
    target = wheel.Target(folder, builds, abi, open_mpi.used_by(folder, tools.environ))
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
    """The Python of an environment: its version, and the interface that compiled modules use."""
    code, said = tools.attempt([f"{folder}/bin/python", "-c", _ABOUT_PYTHON])
    if code:
        raise EnvironmentException("the environment's Python does not run", cause="".join(said))
    version, abi = json.loads(said[-1])
    return version, abi


def frameworks(folder: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The frameworks that are installed in an environment: name, release, and the tags of the wheel they came in."""
    for name, packages in recipes.PACKAGES.items():
        for found in importlib.metadata.distributions(path=[str(each) for each in _site_packages(folder)]):
            if found.name and found.name.lower().replace("_", "-") in packages:
                tags = [line[5:] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
                yield name, (found.version, ",".join(sorted(tags)))
                break


def _site_packages(folder: Path) -> list[Path]:
    return sorted(folder.glob("lib/python3*/site-packages"))


def _verify(order: recipes.Order, target: wheel.Target, made: Path, tools: Tools) -> None:
    """A wheel that was compiled but cannot be imported is not kept."""
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

"""The container in which the processes of a run with an image execute. It is prepared before the run gets nodes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from trainmaster.dispatcher.processes import run_module
from trainmaster.environments import images
from trainmaster.environments.containers import Container, Engine, engine_variables, find_engine, inside, mounts
from trainmaster.environments.prefix import Prefix
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import ContainerSpec

# Environments that have run in an image: the id of the image and the folder of the environment.
_tried: set[tuple[str, str]] = set()


def plan_container(
    engine: Engine,
    prefix: Prefix,
    folder: RunFolder,
    workspace: WorkspaceFolder,
    read: Iterable[str] = (),
    written: Iterable[str] = (),
) -> Container:
    """A container in which the workspace is visible under its own path, and also the folders `read` and `written`.

    Its processes may write to the run's folder and to `written`.
    """
    seen = [str(workspace.path), *_environment_folders(prefix), *read]
    return Container(
        engine=engine,
        mounts=mounts(seen, [str(folder.path), *written]),
        user=f"{os.getuid()}:{os.getgid()}",
        variables=engine_variables(os.environ),
        environment={name: value for name, value in prefix.variables.items() if name != "PATH"},
        programs=f"{prefix.folder}/bin" if prefix.folder else "",
    )


def require_engine() -> Engine:
    """The container engine of this machine, which was available when the run was submitted."""
    engine, found = find_engine(os.environ)
    if engine is None:
        raise EnvironmentException("no container engine is available on this machine any more", cause=found)
    return engine


async def ready(
    container: Container, image: ContainerSpec, prefix: Prefix, folder: RunFolder, say: Callable[[str], None]
) -> Container:
    """Fetches the image if it is missing, and tries the environment, if there is one, in it."""
    engine = container.engine
    found = await asyncio.to_thread(images.find, engine, image.image, os.environ)
    trial = None
    if prefix.folder and (found is None or (found.id, prefix.folder) not in _tried):
        name = f"trainmaster-{folder.path.name}-trial"
        trial = inside(container, image, name, images.probe(prefix.python), os.environ, "/", ())
    if found is None or trial is not None:
        say(f"fetching image {image.image}" if found is None else f"trying the environment in image {image.image}")
        order = images.order(engine, image.image, found is None, trial)
        log = folder.logs / "20_image_build_log.txt"
        await run_module(["trainmaster.environments.images"], log, dict(os.environ), order)
        found = found or await asyncio.to_thread(images.find, engine, image.image, os.environ)
    if found is None:
        raise EnvironmentException(f"image {image.image!r} was fetched, but {engine.name} does not list it")
    if prefix.folder:
        _tried.add((found.id, prefix.folder))
    return replace(container, path=found.path)


def _environment_folders(prefix: Prefix) -> list[str]:
    """The folders of a built environment and of the Python that it is based on, under all names that links use."""
    if not prefix.folder:
        return []
    python = os.path.realpath(prefix.python)
    places = [prefix.folder, str(Path(python).parents[1])]
    target = Path(prefix.python)
    while target.is_symlink():
        target = target.parent / os.readlink(target)
        places.append(os.path.normpath(target.parents[1]))
    return [place for place in places if place != "/usr"]

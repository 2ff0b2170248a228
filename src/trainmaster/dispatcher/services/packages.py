"""Operations on packages: services as folders that run anywhere. They are written here, because the files are here."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.long_work import LongWork, WorkNews
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.pieces import LARGEST_PIECE, read_piece
from trainmaster.dispatcher.services.package_requirements import Requirements, hash_requirements
from trainmaster.environments import build_record
from trainmaster.environments.accelerator import on_this_machine
from trainmaster.environments.cleanup import log_of
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import python_version
from trainmaster.job.agent import durable
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import WebserviceException
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.job.script.store_paths import store_path
from trainmaster.shared import package_texts as texts
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_plan import SERVER
from trainmaster.shared.service_spec import ServiceSpec
from trainmaster.snapshots.model_contents import Contents, copy_file

_ABOUT = "package.json"
_LOG = "log.txt"
_LONGEST_NAME = 64


class Packages:
    """Operations on packages."""

    def __init__(self, context: Context, work: LongWork) -> None:
        self._context = context
        self._work = work
        self._folder = context.folder.path / "packages"

    @operation("packages.create")
    async def create(
        self,
        key: str,
        spec: Mapping[str, Any],
        image: str,
        dockerfile: bool = False,
        sources: Mapping[str, str] | None = None,
        log: Mapping[str, Any] | None = None,
        seconds: float = 30.0,
    ) -> WorkNews:
        """Write models, their scoring script, its packages and the server to one folder. The result is its name.

        The same `key` is the same package. Meanwhile what the log of its environment gains is returned.
        """
        wanted, place = from_plain(ServiceSpec, spec), from_plain(LogPlace, log or {})
        begin = partial(self._create, key, wanted, {"image": image, "dockerfile": dockerfile}, sources)
        return await self._work.follow(
            key, begin, environments.request_log(self._context, wanted.environment), place, seconds
        )

    async def _create(
        self, name: str, spec: ServiceSpec, about: dict[str, Any], sources: Mapping[str, str] | None
    ) -> str:
        if self._find(name).is_dir():
            return name
        built = await environments.on_request(self._context, spec.environment, sources, refresh=False)
        return await asyncio.to_thread(self._write, name, spec, about, Path(built["folder"]), sources)

    def _write(
        self, name: str, spec: ServiceSpec, about: dict[str, Any], folder: Path, sources: Mapping[str, str] | None
    ) -> str:
        """Writes the folder under another name first, so that it is either complete or absent."""
        requirements = hash_requirements(folder, on_this_machine(spec.environment), environments.variables(sources))
        record = build_record.read(folder)
        python = record.python if record else python_version(spec.environment)
        digest = folder.name.partition(".")[0]
        known = {"environment": digest, "python": python, "environment_name": spec.environment_name}
        making = self._folder / f".making-{name}"
        try:
            files = making / "files"
            files.mkdir(parents=True)
            self._lay_out(spec, files)
            _write_texts(files, _contents(spec, python, requirements), requirements)
            (making / _ABOUT).write_text(json.dumps({**about, **known, "models": list(spec.models)}))
            log = log_of(self._context.folder.environments, digest)
            (making / _LOG).write_text(log.read_text() if log.exists() else "its packages were installed before\n")
            durable.flush_below(making)
            making.rename(self._folder / name)
            durable.flush({self._folder, self._folder.parent})
        except OSError as error:
            raise WebserviceException("the package cannot be written", cause=str(error)) from None
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return name

    def _lay_out(self, spec: ServiceSpec, files: Path) -> None:
        own = self._context.folder
        if spec.code.folder_name:
            (files / texts.CODE).mkdir()
        lay_out(own.snapshot(spec.code.snapshot_id), own.blobs, files / texts.CODE / spec.code.folder_name)
        contents = Contents(own.models)
        for model in spec.models:
            name, _, version = model.rpartition(":")
            record = self._context.store.models.get(name, int(version)) if version.isdigit() else None
            if record is None:
                raise WebserviceException(f"there is no model {model[:300]} in this workspace")
            record = ModelFiles(self._context.store, own).resolve(record)
            contents.copy_to(files / texts.MODELS / name / version, contents.manifest(record.manifest), copy_file)
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SERVER, files / "server", ignore=unwanted)
        shutil.copytree(ensure_kit(own.path), files / "kit", ignore=unwanted)

    @operation("packages.get")
    def get(self, name: str) -> dict[str, Any]:
        """What is known about a package, with its `folder` on the dispatcher's machine."""
        try:
            about: dict[str, Any] = json.loads((self._find(name) / _ABOUT).read_text())
        except (OSError, ValueError):
            raise _unknown(name) from None
        return {**about, "folder": str(self._find(name) / "files")}

    @operation("packages.log")
    async def read_log(self, name: str) -> str:
        """The log of installing and locking its packages, and of building its image."""
        self.get(name)
        return await asyncio.to_thread((self._find(name) / _LOG).read_text, "utf-8", "replace")

    @operation("packages.note_build")
    def note_build(self, name: str, log: str, built: bool) -> None:
        """Add what building its image printed to its log, and whether there is an image now."""
        about = self.get(name)
        with open(self._find(name) / _LOG, "a", encoding="utf-8", errors="replace") as file:
            file.write(log)
        if built:
            del about["folder"]
            durable.write(self._find(name) / _ABOUT, json.dumps({**about, "built": True}).encode())

    @operation("packages.files")
    async def files(self, name: str, prefix: str = "") -> list[tuple[str, int, bool]]:
        """The path and size of each file of a package, and whether it is executable."""
        folder = Path(self.get(name)["folder"])
        found = await asyncio.to_thread(FolderStorage(folder).list, store_path(prefix))
        return [(file.path, file.size, os.access(folder / file.path, os.X_OK)) for file in found]

    @operation("packages.read")
    async def read(self, name: str, path: str, start: int = 0, size: int = LARGEST_PIECE) -> dict[str, Any]:
        """A piece of a file of a package: `{"data", "size"}`, base64 and the size of the whole file."""
        folder = Path(self.get(name)["folder"])
        return await asyncio.to_thread(read_piece, folder, store_path(path), start, size, f"package '{name}'")

    def _find(self, name: str) -> Path:
        if not is_plain(name, _LONGEST_NAME):
            raise _unknown(name)
        return self._folder / name


def _unknown(name: str) -> WebserviceException:
    return WebserviceException(f"there is no package {name[:60]!r} in this workspace")


def _contents(spec: ServiceSpec, python: str, requirements: Requirements) -> texts.Contents:
    return texts.Contents(
        name=spec.models[0].partition(":")[0].lower() if spec.models else "service",
        entry_script=spec.code.entry_script,
        folder_name=spec.code.folder_name,
        models=spec.models,
        python=python,
        variables=spec.environment_variables,
        local=requirements.local,
    )


def _write_texts(files: Path, contents: texts.Contents, requirements: Requirements) -> None:
    (files / "app.py").write_text(texts.APP)
    (files / "server.json").write_text(texts.server_settings(contents))
    (files / "requirements.lock").write_text(requirements.text)
    (files / "Dockerfile").write_text(texts.dockerfile(contents))
    (files / ".dockerignore").write_text(texts.IGNORED)
    (files / "README.md").write_text(texts.readme(contents))
    (files / "start.sh").write_text(texts.START)
    (files / "start.sh").chmod(0o755)

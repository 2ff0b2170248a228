"""The operation that converts a registered model to ONNX, in an environment that has its framework."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher import environments
from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.long_work import LongWork, WorkNews
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.dispatcher.operation import operation
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import open_prefix
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import OnnxException, SnapshotException, UserErrorException, from_wire
from trainmaster.job.helper.safe_names import inner_parts
from trainmaster.job.onnx.exported import Exported
from trainmaster.job.onnx.reading import read, read_exported
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.snapshots.model_contents import Contents


class Conversions:
    """Operations that convert models."""

    def __init__(self, context: Context, models: ModelOperations, work: LongWork) -> None:
        self._context = context
        self._models = models
        self._work = work

    @operation("models.convert")
    async def convert(
        self,
        key: str,
        name: str,
        version: int,
        order: Mapping[str, Any],
        model: Mapping[str, Any],
        environment: Mapping[str, Any],
        code: Sequence[str] = (),
        sample: str = "",
        variables: Mapping[str, str] | None = None,
        sources: Mapping[str, str] | None = None,
        log: Mapping[str, Any] | None = None,
        seconds: float = 30.0,
    ) -> WorkNews:
        """Convert a model and register the result as `model`, if its outputs agree: `{"model", "facts"}`.

        `order` has the kind, the path, the inputs and the settings. `code` are snapshots with modules that the model
        needs, `sample` is a snapshot with one file of inputs, and `variables` are those of the process. The same `key`
        is the same conversion.
        """
        spec, place = from_plain(EnvironmentSpec, environment), from_plain(LogPlace, log or {})
        begin = partial(
            self._convert,
            self._models.get(name, version),
            _check_order(order),
            dict(model),
            spec,
            (*code,),
            sample,
            dict(variables or {}),
            sources,
        )
        return await self._work.follow(key, begin, environments.request_log(self._context, spec), place, seconds)

    async def _convert(
        self,
        source: ModelRecord,
        order: dict[str, Any],
        description: dict[str, Any],
        spec: EnvironmentSpec,
        code: tuple[str, ...],
        sample: str,
        variables: dict[str, str],
        sources: Mapping[str, str] | None,
    ) -> dict[str, Any]:
        built = await environments.on_request(self._context, spec, sources, refresh=False)
        with tempfile.TemporaryDirectory(prefix="trainmaster-") as work:
            target = Path(work) / f"{source.name}.onnx"
            given = {
                **order,
                "path": str(await asyncio.to_thread(self._materialise, source) / order["path"]),
                "target": str(target),
                "answer": str(target.with_name("answer.json")),
                "code": await asyncio.to_thread(self._lay_out, (*code, *_snapshot_of_run(source)), Path(work)),
                "sample": await asyncio.to_thread(self._find_sample, sample, Path(work)) if sample else "",
            }
            await self._run(source, Path(built["folder"]), given, variables)
            exported = await asyncio.to_thread(read_exported, target)
            record = await self._register(target, source, description, exported)
            facts = await asyncio.to_thread(read, target)
        return {"model": record, "facts": facts.facts}

    def _materialise(self, source: ModelRecord) -> Path:
        source = ModelFiles(self._context.store, self._context.folder).resolve(source)
        return Contents(self._context.folder.models).materialise(source.name, source.version, source.manifest)

    def _lay_out(self, snapshots: Sequence[str], work: Path) -> list[str]:
        """Folders with the contents of snapshots: pickled objects may need modules in them."""
        own, found = self._context.folder, []
        for number, snapshot in enumerate(snapshots):
            place = work / f"code-{number}"
            try:
                lay_out(own.snapshot(snapshot), own.blobs, place)
            except SnapshotException:
                # The code of a run may have been removed. If the model needs it, loading the model fails.
                continue
            found.append(str(place))
        return found

    def _find_sample(self, snapshot: str, work: Path) -> str:
        own = self._context.folder
        lay_out(own.snapshot(snapshot), own.blobs, work / "sample")
        files = sorted((work / "sample").iterdir())
        if len(files) != 1:
            raise UserErrorException("a sample is one file")
        return str(files[0])

    async def _run(self, source: ModelRecord, folder: Path, given: dict[str, Any], variables: dict[str, str]) -> None:
        prefix = open_prefix(folder, variables.get("PATH", os.environ.get("PATH", "")))
        kit = await asyncio.to_thread(ensure_kit, self._context.folder.path)
        process = await asyncio.create_subprocess_exec(
            prefix.python,
            "-m",
            "trainmaster.job.onnx",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(given["target"]).parent,
            env={**variables, **prefix.variables, "PYTHONPATH": str(kit)},
        )
        try:
            _, errors = await process.communicate(json.dumps(given).encode())
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        try:
            said = json.loads(Path(given["answer"]).read_text())
        except (OSError, ValueError):
            raise OnnxException(
                f"model {source.name}:{source.version} could not be converted: "
                f"the process ended with {process.returncode}",
                cause="\n".join(errors.decode(errors="replace").splitlines()[-20:]),
            ) from None
        if "error" in said:
            raise from_wire(said["error"])

    async def _register(
        self, target: Path, source: ModelRecord, description: dict[str, Any], exported: Exported
    ) -> ModelRecord:
        named = f"{source.name}:{source.version}"
        described = {
            **description,
            "description": f"{named} as ONNX: {exported.parity}",
            "run_id": source.run_id,
            # The metadata of the file becomes facts of the model, too.
            "facts": {"converted_from": named},
        }
        return await self._models.register_file(described, target)


def _check_order(order: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"kind": str, "path": str, "inputs": list, "settings": dict}
    if set(order) != set(kinds) or not all(isinstance(order[name], kind) for name, kind in kinds.items()):
        raise UserErrorException("a conversion has a kind, a path, inputs and settings")
    try:
        inner_parts(order["path"])
    except ValueError:
        raise UserErrorException(f"{order['path'][:300]!r} is not a path in a model") from None
    return dict(order)


def _snapshot_of_run(source: ModelRecord) -> tuple[str, ...]:
    """The code of the run that trained the model."""
    snapshot = source.lineage.get("snapshot_id")
    return (str(snapshot),) if snapshot else ()

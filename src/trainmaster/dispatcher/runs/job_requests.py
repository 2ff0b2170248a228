"""Job requests: what scripts ask on machines that cannot reach the dispatcher's socket (docs/reference/on-disk.md).

An engine passes each request on whenever it finds it. Operations may be repeated, and a request that is being answered
is not started again. A request can only act for its own run, and can only call the operations that jobs may call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.runs.storage_requests import inner
from trainmaster.engines import JobRequest
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.helper import messages
from trainmaster.job.helper.job_requests import FILES, STORAGE_REQUESTS
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.job.script.dataset_files import is_web
from trainmaster.shared import beneath
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]

OPERATIONS_OF_JOBS = frozenset(
    {
        "secrets.fetch",
        "datasets.locate",
        "datastores.describe",
        "datastores.fetch",
        "datastores.send",
        "mlflow.call",
        "mlflow.list_files",
        "mlflow.read_file",
        "models.delete",
        "models.get",
        "models.keep",
        "models.list",
        "models.locate",
        "models.refer",
        "models.relabel",
        "models.update",
    }
)
"""What a job may call by job requests, and with its token on a server."""


class JobRequests:
    """Answers job requests; no request is answered twice at the same time."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self._call: Call = _no_service
        self._error_of: Callable[[Exception], dict[str, Any]] = lambda error: {}
        self._answering: dict[tuple[str, str], asyncio.Task[None]] = {}

    def answer_with(self, call: Call, error_of: Callable[[Exception], dict[str, Any]]) -> None:
        """Sets the function that carries out operations, and the one that turns an error into an answer."""
        self._call, self._error_of = call, error_of

    def receive(self, request: JobRequest) -> None:
        """Starts to answer a request, unless it is being answered already."""
        if not is_plain(request.name):
            log.warning("run %s: ignored a job request whose name is not a file name", request.run_id)
            return
        key = request.run_id, request.name
        if key in self._answering:
            return
        task = self._answering[key] = start_task(f"job request of run {request.run_id}", partial(self._answer, request))
        task.add_done_callback(lambda _: self._answering.pop(key, None))

    async def close(self) -> None:
        """Stops answering; engines pass the requests on to the next dispatcher."""
        tasks = list(self._answering.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, request: JobRequest) -> None:
        try:
            answer = messages.success(await self._result(request), {})
        except Exception as error:
            if not isinstance(error, TrainmasterError):
                # The request itself is not logged: it may contain a secret.
                log.exception("job request of run %s", request.run_id)
            answer = messages.failure(self._error_of(error), {})
        try:
            await request.answer(messages.encode(answer))
        except (TrainmasterError, OSError) as error:
            # The request is still there, so the engine passes it on again.
            log.warning("run %s: the answer to a job request was not delivered: %s", request.run_id, error)

    async def _result(self, request: JobRequest) -> Any:
        op, args = _parse(request)
        if op in ("secrets.fetch", "datastores.fetch", "datastores.send"):
            args["run_id"] = request.run_id
        if op in ("models.keep", "datastores.send"):
            return await self._with_files(request, op, args)
        if op == "datastores.fetch" and not request.shares_files:
            return await self._fetch(request, args)
        found = await self._call(op, args)
        if op == "models.locate":
            (found["path"],) = await request.bring([found["path"]])
        elif op == "datasets.locate":
            sources = found["definition"]["sources"]
            found["definition"]["sources"] = await _bring_sources(sources, request)
        elif op == "datastores.describe" and not request.shares_files:
            # A folder of the same name on that machine is a different folder.
            found = [{**store, "folder": None} for store in found]
        return found

    async def _with_files(self, request: JobRequest, op: str, args: dict[str, Any]) -> Any:
        """Runs an operation on files that were copied from the script's machine into the run's folder."""
        run = self._folder.run(request.run_id).path
        if op == "models.keep" and not args.get("of_run"):
            args["path"] = str(run / inner(args["path"]))
        try:
            return await self._call(op, args)
        finally:
            # Files that came with this request only.
            await asyncio.to_thread(beneath.remove_tree, run, f"{FILES}/{request.name}")

    async def _fetch(self, request: JobRequest, args: dict[str, Any]) -> str:
        """Copies from a datastore to the script's machine."""
        run, name = self._folder.run(request.run_id).path, f"{STORAGE_REQUESTS}/{request.name}"
        try:
            files: str = await self._call("datastores.fetch", {**args, "files": f"{name}/files"})
            if not any(Path(files).iterdir()):
                return files
            (there,) = await request.bring([files])
            return there
        finally:
            await asyncio.to_thread(beneath.remove_tree, run, name)


async def _no_service(op: str, args: Mapping[str, Any]) -> Any:
    raise AssertionError("a job request arrived before the service was set")


async def _bring_sources(sources: Sequence[Mapping[str, Any]], request: JobRequest) -> list[dict[str, Any]]:
    """Brings the sources of a dataset to the script's machine; web sources stay as they are."""
    local = [source["path"] for source in sources if not is_web(source)]
    there = iter(await request.bring(local) if local else ())
    return [dict(source) if is_web(source) else {**source, "path": next(there)} for source in sources]


def _parse(request: JobRequest) -> tuple[str, dict[str, Any]]:
    """The operation and its arguments; refused if jobs may not call it."""
    try:
        parsed = messages.decode(request.text)
        op, args = parsed["op"], dict(parsed["args"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserErrorException("the job request cannot be read", cause=str(error)) from None
    if not isinstance(op, str) or op not in OPERATIONS_OF_JOBS:
        raise UserErrorException(f"a job on another machine cannot call {str(op)[:60]!r}")
    return op, args

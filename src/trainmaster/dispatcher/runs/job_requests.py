"""Letters: what scripts on other machines ask, whose processes cannot reach the socket (docs/reference/on-disk.md).

An engine passes each on as it finds it, as often as it finds it: operations may be repeated, and one that is being
answered is not begun again. A letter speaks for its run alone, and may ask only what jobs ask.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.runs.storage_requests import inner
from trainmaster.engines import JobRequest
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.helper.names import is_plain
from trainmaster.job.helper.requests import FILES
from trainmaster.job.script.dataset_files import is_web
from trainmaster.shared import beneath
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]

_ALLOWED = frozenset(
    {
        "secrets.fetch",
        "datasets.locate",
        "datastores.describe",
        "datastores.fetch",
        "datastores.send",
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


class JobRequests:
    """Answers letters, each once at a time."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self._call: Call = _nobody
        self._error_of: Callable[[Exception], dict[str, Any]] = lambda error: {}
        self._answering: dict[tuple[str, str], asyncio.Task[None]] = {}

    def answer_with(self, call: Call, error_of: Callable[[Exception], dict[str, Any]]) -> None:
        """From here on `call` does what is asked, and `error_of` says how it is told what went wrong."""
        self._call, self._error_of = call, error_of

    def received(self, letter: JobRequest) -> None:
        """Begins to answer, unless it does so already."""
        if not is_plain(letter.name):
            log.warning("run %s: a letter whose name is no file name is passed over", letter.run_id)
            return
        key = letter.run_id, letter.name
        if key in self._answering:
            return
        task = self._answering[key] = start_task(f"a letter of run {letter.run_id}", partial(self._answer, letter))
        task.add_done_callback(lambda _: self._answering.pop(key, None))

    async def close(self) -> None:
        """The next dispatcher is asked again."""
        tasks = list(self._answering.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, letter: JobRequest) -> None:
        try:
            reply: dict[str, Any] = {"result": await self._result(letter)}
        except Exception as error:
            if not isinstance(error, TrainmasterError):
                # Not what was asked: there may be a secret in it.
                log.exception("a letter of run %s", letter.run_id)
            reply = {"error": self._error_of(error)}
        try:
            await letter.answer(json.dumps(reply).encode("ascii"))
        except (TrainmasterError, OSError) as error:
            # The letter is still there, and is passed on again.
            log.warning("run %s: an answer did not arrive: %s", letter.run_id, error)

    async def _result(self, letter: JobRequest) -> Any:
        op, args = _read(letter)
        if op in ("secrets.fetch", "datastores.fetch", "datastores.send"):
            args["run_id"] = letter.run_id
        if op in ("models.keep", "datastores.send"):
            return await self._with_files(letter, op, args)
        if op == "datastores.fetch" and not letter.shares_files:
            return await self._fetch(letter, args)
        found = await self._call(op, args)
        if op == "models.locate":
            (found["path"],) = await letter.bring([found["path"]])
        elif op == "datasets.locate":
            sources = found["definition"]["sources"]
            found["definition"]["sources"] = await _brought(sources, letter)
        elif op == "datastores.describe" and not letter.shares_files:
            # A folder of that name there is another one.
            found = [{**store, "folder": None} for store in found]
        return found

    async def _with_files(self, letter: JobRequest, op: str, args: dict[str, Any]) -> Any:
        """Does something with files that the script's machine has brought to the run's folder here."""
        run = self._folder.run(letter.run_id).path
        if op == "models.keep" and not args.get("of_run"):
            args["path"] = str(run / inner(args["path"]))
        try:
            return await self._call(op, args)
        finally:
            # What was sent along with this letter and is none of the run's files.
            await asyncio.to_thread(beneath.remove_tree, run, f"{FILES}/{letter.name}")

    async def _fetch(self, letter: JobRequest, args: dict[str, Any]) -> str:
        """What a datastore has, brought to the script's machine."""
        run, name = self._folder.run(letter.run_id).path, f"errands/{letter.name}"
        try:
            files: str = await self._call("datastores.fetch", {**args, "files": f"{name}/files"})
            if not any(Path(files).iterdir()):
                return files
            (there,) = await letter.bring([files])
            return there
        finally:
            await asyncio.to_thread(beneath.remove_tree, run, name)


async def _nobody(op: str, args: Mapping[str, Any]) -> Any:
    raise AssertionError("a letter before there is a service to ask")


async def _brought(sources: Sequence[Mapping[str, Any]], letter: JobRequest) -> list[dict[str, Any]]:
    """The sources of a dataset, where the script finds them; those of the web are everywhere."""
    local = [source["path"] for source in sources if not is_web(source)]
    there = iter(await letter.bring(local) if local else ())
    return [dict(source) if is_web(source) else {**source, "path": next(there)} for source in sources]


def _read(letter: JobRequest) -> tuple[str, dict[str, Any]]:
    """What a letter asks, if jobs may ask it."""
    try:
        request = json.loads(letter.text)
        op, args = request["op"], dict(request["args"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserErrorException("the letter cannot be read", cause=str(error)) from None
    if not isinstance(op, str) or op not in _ALLOWED:
        raise UserErrorException(f"a job on another machine cannot ask for {str(op)[:60]!r}")
    return op, args

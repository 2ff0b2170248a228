"""A pod that shows whether runs can use an image and a storage. It is removed again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from trainmaster.engines.kubernetes.api import Api, Object
from trainmaster.engines.kubernetes.endings import ending_of
from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.pod_patch import CONTAINER
from trainmaster.engines.kubernetes.pods import labels_of, make_pod, names_of, selector_of
from trainmaster.engines.kubernetes.reasons import waiting_words
from trainmaster.engines.kubernetes.watch import watch
from trainmaster.shared.records import TargetCheck

PROBE_SECONDS = 180.0
"""How long an image may take to be pulled and started."""
_WORKSPACE = "probe"
"""Stands for the workspace in the labels of these pods, so that no dispatcher takes them for a run's."""
_OLDEST_PYTHON = (3, 6)
# Python 3.6 and newer. Its answer is the message with which the container ends: no permission for logs is needed.
_PROGRAM = """
import json, platform, sys
found = {"version": list(sys.version_info[:3]), "machine": platform.machine(), "python": sys.executable}
try:
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as file:
            found["read"] = file.read()
        with open(sys.argv[1] + ".answer", "w") as file:
            file.write(found["read"])
except EnvironmentError as error:
    found["error"] = str(error)
with open("/dev/termination-log", "w") as file:
    json.dump(found, file)
"""


async def probe_image(api: Api, options: PodOptions, workspace: Path) -> list[TargetCheck]:
    """Starts a pod as runs have it, and reads what its Python says."""
    token = os.urandom(6).hex()
    names = names_of(f"probe-{token}", 1, 1)
    await _remove_old(api)
    async with _question(options, workspace, token) as question:
        command = [options.python, "-I", "-S", "-c", _PROGRAM, *([str(question)] if question else [])]
        pod = make_pod(names, 0, options, command, labels_of(_WORKSPACE, names))
        pod["spec"]["activeDeadlineSeconds"] = 2 * int(PROBE_SECONDS)
        await api.create(api.pods, pod)
        try:
            ended, words = await _wait(api, names.pods[0])
        finally:
            await asyncio.shield(api.delete(f"{api.pods}/{names.pods[0]}", grace=0))
        answer = _answer(ended) if ended is not None else None
        if answer is None:
            return [TargetCheck("image", False, f"{options.image}: {words or 'its Python did not answer'}")]
        checks = [_judge_python(options, answer)]
        if question is not None:
            checks.append(await _judge_storage(options, question, token, answer))
        return checks


async def _wait(api: Api, name: str) -> tuple[Object | None, str]:
    """The pod when it has ended, or why it has not."""
    last: Object = {}
    words = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            async with contextlib.aclosing(watch(api, api.pods, fields=f"metadata.name={name}")) as changes:
                async for change in changes:
                    last = change.objects[0] if change.objects else last
                    if (last.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                        events = await _events(api, name)
                        ending = ending_of(last, 0, events, time.time())
                        return last, ending.error.message if ending is not None and ending.error is not None else ""
                    words = waiting_words([last], await _events(api, name)) if last else ""
                    if words.startswith(("the image cannot", "the container cannot")):
                        return None, words
    return None, f"{words or 'it did not start'} (after {PROBE_SECONDS:.0f} s)"


async def _events(api: Api, name: str) -> list[Object]:
    found, _ = await api.list_objects(api.events, fields=f"involvedObject.name={name}")
    return found


async def _remove_old(api: Api) -> None:
    """Removes what probes have left whose dispatcher was killed. They have ended by themselves."""
    pods, _ = await api.list_objects(api.pods, labels=selector_of(_WORKSPACE))
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            await api.delete(f"{api.pods}/{pod['metadata']['name']}")


def _answer(pod: Object) -> dict[str, Any] | None:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        message = ((container.get("state") or {}).get("terminated") or {}).get("message")
        if container.get("name") == CONTAINER and message:
            with contextlib.suppress(ValueError):
                found = json.loads(message)
                return found if isinstance(found, dict) and "version" in found else None
    return None


def _judge_python(options: PodOptions, answer: dict[str, Any]) -> TargetCheck:
    version = ".".join(map(str, answer["version"]))
    words = f"{options.image} has Python {version} ({answer.get('python')}, {answer.get('machine')})"
    if tuple(answer["version"][:2]) < _OLDEST_PYTHON:
        return TargetCheck("image", False, f"{words}: Python 3.6 or newer is needed")
    return TargetCheck("image", True, words)


@contextlib.asynccontextmanager
async def _question(options: PodOptions, workspace: Path, token: str) -> AsyncIterator[Path | None]:
    """A file in the storage that the pod has to find; None without a storage."""
    if not options.storage_claim:
        yield None
        return
    question = workspace / f".probe-{token}"
    await asyncio.to_thread(question.write_text, token)
    try:
        yield question
    finally:
        await asyncio.to_thread(_remove, question)


def _remove(question: Path) -> None:
    for path in (question, _answer_file(question)):
        with contextlib.suppress(OSError):
            path.unlink()


def _answer_file(question: Path) -> Path:
    return question.with_name(f"{question.name}.answer")


async def _judge_storage(options: PodOptions, question: Path, token: str, answer: dict[str, Any]) -> TargetCheck:
    where = f"claim {options.storage_claim} at {options.storage_path}"
    if answer.get("read") != token:
        why = answer.get("error") or "the file has another content"
        return TargetCheck("storage", False, f"{where}: pods do not see the workspace's files: {why}")
    if "error" in answer:
        return TargetCheck("storage", False, f"{where}: pods cannot write: {answer['error']}")
    if await asyncio.to_thread(_read, _answer_file(question)) != token:
        return TargetCheck("storage", False, f"{where}: this machine does not see what pods write")
    return TargetCheck("storage", True, f"{where} is seen by both sides")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

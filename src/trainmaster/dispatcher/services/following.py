"""Operations for clients that follow services and images: their logs, what they use, and requests to them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.services.operations import Services
from trainmaster.job.errors import ComputeTargetException, UserErrorException, WebserviceException
from trainmaster.shared.log_texts import LogPlace, LogText, read_last, read_text
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_plan import ServiceFiles, read_state
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord, ServiceState

T = TypeVar("T", ServiceRecord, ImageRecord)

_LONGEST_WAIT = 60.0
_LOOK_SECONDS = 0.05
_LOOK_AT_PODS_SECONDS = 1.0
_POD = "pod/"
"""Stands before the name of a pod in the names of logs."""
_CALLS_AT_ONCE = 16
_TICKS = os.sysconf("SC_CLK_TCK")


class ServiceFollowing:
    """Operations that follow services and images."""

    def __init__(self, context: Context, services: Services) -> None:
        self._folder = context.folder
        self._activity = context.activity
        self._services = services
        # Threads of their own: a slow service must not keep those that read and write files.
        self._callers = ThreadPoolExecutor(_CALLS_AT_ONCE, "score")

    # Deployments

    @operation("services.follow")
    async def follow(
        self, name: str, generation: int, log: Mapping[str, Any] | None = None, seconds: float = 30.0
    ) -> dict[str, Any]:
        """`{"service", "settled", "log"}` when the log of this deployment has grown past `log`, or it is settled."""
        file = self._folder.service(name).deploy_log(generation)

        def is_settled(record: ServiceRecord) -> bool:
            return record.state is not ServiceState.TRANSITIONING or record.generation > generation

        def wait(rest: float) -> Awaitable[ServiceRecord]:
            return self._services.wait(name, generation, rest)

        record, settled, text = await _follow(wait, is_settled, file, log, seconds)
        return {"service": record, "settled": settled, "log": text}

    @operation("images.follow")
    async def follow_image(
        self, name: str, version: int, log: Mapping[str, Any] | None = None, seconds: float = 30.0
    ) -> dict[str, Any]:
        """`{"image", "settled", "log"}` when the log of its creation has grown past `log`, or when it is settled."""
        images = self._services.images
        file = self._folder.image(name, version) / "deploy.log"

        def wait(rest: float) -> Awaitable[ImageRecord]:
            return images.wait(name, version, rest)

        record, settled, text = await _follow(wait, lambda each: each.state != "Running", file, log, seconds)
        return {"image": record, "settled": settled, "log": text}

    @operation("images.locate")
    def locate_image(self, name: str, version: int) -> dict[str, str]:
        """The `folder` of an image on the dispatcher's machine, and the `log` of its creation."""
        folder = self._folder.image(name, version)
        return {"folder": str(folder), "log": str(folder / "deploy.log")}

    # Logs

    @operation("services.logs")
    async def logs(self, name: str, lines: int = 5000, init: bool = False) -> dict[str, Any]:
        """`{"text", "places"}`: the last lines of all its logs together; with `init`, only those of its deployment."""
        found = {
            log: await asyncio.to_thread(read_last, path, lines) for log, path in self._logs_of(name, init).items()
        }
        in_cluster = None if init else self._services.cluster_of(self._services.get(name))
        pods, pod_places = await in_cluster.logs(lines) if in_cluster is not None else ("", {})
        last = ("".join(each.text for each in found.values()) + pods).splitlines(keepends=True)
        text = "".join(last[-lines:] if lines > 0 else [])
        return {"text": text, "places": {log: each.next for log, each in found.items()} | _name_places(pod_places)}

    @operation("services.read_logs")
    async def read_logs(
        self, name: str, places: Mapping[str, Mapping[str, Any]], seconds: float = 30.0
    ) -> dict[str, Any]:
        """As `services.logs`, with what was added since `places`; answers when there is something, or after `seconds`.

        An error if there is no such service any more.
        """
        known = {log: from_plain(LogPlace, place) for log, place in places.items()}
        pods = {log.removeprefix(_POD): known.pop(log) for log in list(known) if log.startswith(_POD)}
        end, pods_at = time.monotonic() + min(seconds, _LONGEST_WAIT), 0.0
        while True:
            paths = self._logs_of(name, False)
            unknown = set(known) - set(paths)
            if unknown:
                raise UserErrorException(f"a service has no log {min(unknown)[:60]!r}")
            found = {log: await asyncio.to_thread(read_text, paths[log], place) for log, place in known.items()}
            text = "".join(each.text for each in found.values())
            if time.monotonic() >= pods_at:
                added, pods = await self._read_pods(name, pods)
                text, pods_at = text + added, time.monotonic() + _LOOK_AT_PODS_SECONDS
            rest = end - time.monotonic()
            if text or rest <= 0:
                return {"text": text, "places": {log: each.next for log, each in found.items()} | _name_places(pods)}
            await asyncio.sleep(min(rest, _LOOK_SECONDS))

    async def _read_pods(self, name: str, places: dict[str, LogPlace]) -> tuple[str, dict[str, LogPlace]]:
        """What the pods of a service have added since `places`; nothing while their server is away."""
        in_cluster = self._services.cluster_of(self._services.get(name))
        if in_cluster is not None:
            with contextlib.suppress(ComputeTargetException):
                return await in_cluster.read_logs(places)
        return "", places

    def _logs_of(self, name: str, init: bool) -> dict[str, Path]:
        record = self._services.get(name)
        folder = self._folder.service(record.name)
        own = {} if init else {"service": ServiceFiles(folder.path).log}
        return {"deployment": folder.deploy_log(record.generation), **own}

    # Use

    @operation("services.usage")
    def usage(self, name: str) -> dict[str, float]:
        """`{"cpu_seconds", "peak_bytes"}` of all replicas that run now."""
        state = read_state(self._folder.service(self._services.get(name).name).path)
        pids = [replica.pid for replica in state.replicas] if state else []
        return {"cpu_seconds": sum(map(cpu_seconds, pids)), "peak_bytes": sum(map(peak_bytes, pids))}

    @operation("services.score")
    async def score(self, name: str, body: str, key: str = "") -> dict[str, Any]:
        """Send a request to a service, for clients that cannot reach its address: `{"status", "body"}`.

        Both bodies are base64.
        """
        record = self._services.get(name)
        if not record.port or not record.serving:
            raise WebserviceException(f"service '{record.name}' cannot answer: it is {record.state}")
        in_cluster = self._services.cluster_of(record)
        try:
            data = base64.b64decode(body, validate=True)
        except ValueError:
            raise UserErrorException("the body of a request to a service must be base64") from None
        with self._activity.working():
            if in_cluster is not None:
                status, answer = await in_cluster.ask("POST", "/score", data, key)
            else:
                status, answer = await asyncio.get_running_loop().run_in_executor(
                    self._callers, _post, record.host, record.port, data, key
                )
        return {"status": status, "body": base64.b64encode(answer).decode()}


def _name_places(pods: Mapping[str, LogPlace]) -> dict[str, LogPlace]:
    return {f"{_POD}{pod}": place for pod, place in pods.items()}


async def _follow(
    wait: Callable[[float], Awaitable[T]],
    is_settled: Callable[[T], bool],
    file: Path,
    log: Mapping[str, Any] | None,
    seconds: float,
) -> tuple[T, bool, LogText]:
    """The record, whether it is settled, and the next part of the log: as soon as there is one, or it is settled.

    `wait` returns the record when it is settled, or after some seconds.
    """
    place = from_plain(LogPlace, log or {})
    waiting = asyncio.ensure_future(wait(min(seconds, _LONGEST_WAIT)))
    try:
        while True:
            done = waiting.done()
            # After that: what was written before it was settled is read, too.
            text = await asyncio.to_thread(read_text, file, place)
            if done:
                return waiting.result(), is_settled(waiting.result()) and not text.text, text
            if text.text:
                return await wait(0), False, text
            await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
    finally:
        waiting.cancel()


def _post(host: str, port: int, data: bytes, key: str) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    connection = http.client.HTTPConnection(own_address(host), port)
    try:
        connection.request("POST", "/score", body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {host}:{port} does not answer",
            cause=str(error) or type(error).__name__,
            hint="See service.state and service.get_logs().",
        ) from None
    finally:
        connection.close()


def own_address(host: str) -> str:
    """Where this machine reaches a service: one that listens on all addresses answers on the local one, too."""
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of all threads of a process so far; 0 if it has ended."""
    with contextlib.suppress(OSError):
        # User and system time are the 12th and 13th fields after the name, which may contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def peak_bytes(pid: int) -> int:
    """The most memory that a process had at once; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0

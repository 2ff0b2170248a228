"""Operations that ask a running service about itself: its description, its requests, and its replicas."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.services.following import cpu_seconds, own_address, peak_bytes
from trainmaster.dispatcher.services.operations import Services
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.service_plan import read_state
from trainmaster.shared.service_spec import ServiceRecord

_SECONDS = 5.0
_AT_ONCE = 8
_LARGEST = 4 * 1024 * 1024
_LINE = re.compile(r"trainmaster_scoring_(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class ReplicaReport:
    """One process of a service."""

    pid: int
    generation: int
    state: str
    """starting, ready or draining."""
    restarts: int
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class LatencyBucket:
    """How many requests took at most so long, and longer than the bucket before says."""

    up_to: float | None
    """Seconds; null for the last bucket, which has no limit."""
    count: int


@dataclass(frozen=True)
class ServiceTraffic:
    """What a service has answered since it was deployed, and who answers now."""

    at: float
    requests: int = 0
    """To /score, all of them."""
    refused: int = 0
    """Answered with 4xx: the request was wrong, or had no key."""
    failed: int = 0
    """Answered with 5xx: the script failed or took too long, or too many came at once."""
    in_flight: int = 0
    seconds: float = 0.0
    """The sum over all requests."""
    latency: tuple[LatencyBucket, ...] = ()
    replicas: tuple[ReplicaReport, ...] = ()
    is_answering: bool = False
    """Whether the counters could be read. If not, they are 0."""


class ServiceInspection:
    """Operations that ask services."""

    def __init__(self, context: Context, services: Services) -> None:
        self._folder = context.folder
        self._services = services
        # Threads of their own: a slow service must not keep those that read and write files.
        self._callers = ThreadPoolExecutor(_AT_ONCE, "inspect")

    @operation("services.description")
    async def describe(self, name: str) -> dict[str, Any]:
        """The OpenAPI document of a service, which it writes itself."""
        record = self._services.get(name)
        if not record.port or not record.serving:
            raise WebserviceException(f"service '{record.name}' has no description yet: it is {record.state}")
        text = await self._ask(record, "/swagger.json")
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise WebserviceException(f"the description of service '{record.name}' cannot be read")
        return document

    @operation("services.traffic")
    async def measure(self, name: str) -> ServiceTraffic:
        """How many requests a service has answered, how fast, and the replicas that run now."""
        record = self._services.get(name)
        replicas = await asyncio.to_thread(self._describe_replicas, record)
        if not record.port or not record.serving:
            return ServiceTraffic(time.time(), replicas=replicas)
        try:
            text = await self._ask(record, "/metrics")
        except WebserviceException:
            return ServiceTraffic(time.time(), replicas=replicas)
        return read_traffic(text, time.time(), replicas)

    def _describe_replicas(self, record: ServiceRecord) -> tuple[ReplicaReport, ...]:
        state = read_state(self._folder.service(record.name).path)
        return tuple(
            ReplicaReport(
                each.pid, each.generation, each.state, each.restarts, cpu_seconds(each.pid), peak_bytes(each.pid)
            )
            for each in (state.replicas if state else ())
        )

    async def _ask(self, record: ServiceRecord, path: str) -> str:
        served = record.served or record.spec
        key = self._services.keys(record.name)["primary"] if served.auth_enabled else ""
        in_cluster = self._services.cluster_of(record)
        if in_cluster is not None:
            status, body = await in_cluster.ask("GET", path, b"", key)
        else:
            get = partial(_get, own_address(record.host), record.port, path, key)
            status, body = await asyncio.get_running_loop().run_in_executor(self._callers, get)
        if status != 200:
            raise WebserviceException(f"service '{record.name}' answered {path} with status {status}")
        return body.decode(errors="replace")


def read_traffic(text: str, at: float, replicas: tuple[ReplicaReport, ...] = ()) -> ServiceTraffic:
    """The counters in the text of a service's /metrics.

    >>> read_traffic('trainmaster_scoring_requests_total{path="/score",status="404"} 3', 0.0).refused
    3
    """
    statuses: dict[int, int] = {}
    single: dict[str, float] = {}
    buckets: list[tuple[float | None, int]] = []
    for found in map(_LINE.fullmatch, text.splitlines()):
        if found is None:
            continue
        labels, value = dict(_LABEL.findall(found["labels"] or "")), float(found["value"])
        if found["name"] == "requests_total" and labels.get("path") == "/score":
            statuses[int(labels["status"])] = int(value)
        elif found["name"] == "request_seconds_bucket":
            buckets.append((None if labels["le"] == "+Inf" else float(labels["le"]), int(value)))
        elif not labels:
            single[found["name"]] = value
    return ServiceTraffic(
        at,
        requests=sum(statuses.values()),
        refused=_count(statuses, 400),
        failed=_count(statuses, 500),
        in_flight=int(single.get("requests_in_flight", 0)),
        seconds=single.get("request_seconds_sum", 0.0),
        latency=_separate(buckets),
        replicas=replicas,
        is_answering=True,
    )


def _count(statuses: Mapping[int, int], first: int) -> int:
    return sum(count for status, count in statuses.items() if first <= status < first + 100)


def _separate(buckets: list[tuple[float | None, int]]) -> tuple[LatencyBucket, ...]:
    """Prometheus counts a request in all buckets that it fits into; here it is in the first of them."""
    before = [0, *(count for _, count in buckets)]
    return tuple(LatencyBucket(up_to, count - less) for (up_to, count), less in zip(buckets, before, strict=False))


def _get(host: str, port: int, path: str, key: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
        answer = connection.getresponse()
        body = answer.read(_LARGEST + 1)
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {host}:{port} does not answer", cause=str(error) or type(error).__name__
        ) from None
    finally:
        connection.close()
    if len(body) > _LARGEST:
        raise WebserviceException(f"the answer of the service at {host}:{port} is too large")
    return answer.status, body

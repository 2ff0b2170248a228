"""The server itself: its description, its metrics, and whether it is alive and ready."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from starlette.responses import Response

from trainmaster import __version__
from trainmaster.server.answers import write_plain
from trainmaster.server.api.openapi import describe_table
from trainmaster.server.api.table import Route, Table
from trainmaster.server.call import Call, Parts
from trainmaster.server.exposition import MEDIA_TYPE, write_metrics
from trainmaster.server.permissions import Permission
from trainmaster.server.workspaces import ServedWorkspace
from trainmaster.shared.serialization import to_plain

_LEAST_SPACE = 100 * 1024 * 1024
"""Bytes that have to be free for the server to be ready."""

_DATABASE_SECONDS = 5.0

log = logging.getLogger("trainmaster.server")


@dataclass(frozen=True)
class Health:
    """The server answers."""

    status: str
    version: str


@dataclass(frozen=True)
class Check:
    """One condition of readiness."""

    name: str
    is_ready: bool
    reason: str = ""


@dataclass(frozen=True)
class Readiness:
    """Whether requests can be served."""

    is_ready: bool
    checks: tuple[Check, ...]


def server_rows() -> Iterator[Route]:
    """The routes of the server itself."""
    tag, public = "server", Permission.PUBLIC
    yield Route("GET", "/health", get_health, public, "Whether the process answers", tag)
    yield Route("GET", "/ready", get_readiness, public, "Whether requests can be served", tag, answer=Readiness)
    yield Route(
        "GET",
        "/metrics",
        get_metrics,
        Permission.SIGNED_IN,
        "Counters, in the format of Prometheus",
        tag,
        media_type="text/plain",
    )
    yield Route("GET", "/openapi.json", get_description, public, "This description", tag, answer=dict[str, Any])


async def get_health(call: Call) -> Health:
    """The process answers."""
    return Health("ok", __version__)


async def get_readiness(call: Call) -> Response:
    """Each condition, with the reason if it is not met; status 503 if one is not."""
    stops = call.parts.stopping.is_announced
    checks = (
        Check("running", not stops, "the server stops" if stops else ""),
        await _check_database(call.parts),
        await asyncio.to_thread(_check_disk, call.parts),
        _check_dispatchers(call.parts),
    )
    ready = Readiness(all(check.is_ready for check in checks), checks)
    return Response(write_plain(to_plain(ready)), 200 if ready.is_ready else 503, media_type="application/json")


async def _check_database(parts: Parts) -> Check:
    try:
        async with asyncio.timeout(_DATABASE_SECONDS):
            await parts.identity.run(parts.identity.read_cookie_key)
    except Exception as error:  # noqa: BLE001 (whatever it is, the server cannot serve)
        log.warning("the server's database: %r", error)
        return Check("database", False, f"it does not answer: {type(error).__name__}")
    return Check("database", True)


def _check_disk(parts: Parts) -> Check:
    try:
        free = shutil.disk_usage(parts.root.path).free
    except OSError as error:
        return Check("disk", False, f"the root cannot be read: {error.strerror}")
    if free < _LEAST_SPACE:
        return Check("disk", False, f"only {free >> 20} MB are free")
    if not os.access(parts.root.workspaces, os.R_OK | os.W_OK | os.X_OK):
        return Check("disk", False, "the folder of workspaces cannot be written")
    return Check("disk", True)


def _check_dispatchers(parts: Parts) -> Check:
    failed = parts.dispatchers.count_failing()
    reason = f"{failed} could not be reached at the last attempt" if failed else ""
    return Check("dispatchers", not failed, reason)


async def get_metrics(call: Call) -> Response:
    """The counters. Runs are counted in the workspaces that the caller may read, if their dispatcher runs."""
    served = await asyncio.to_thread(call.parts.workspaces.list)
    readable = [each for each in served if call.caller.may(Permission.READ, each.name)]
    counts = await asyncio.gather(*(_count_runs(call.parts, each) for each in readable))
    active = {each.name: count for each, count in zip(readable, counts, strict=True) if count is not None}
    return Response(write_metrics(call.parts.observation, active), media_type=MEDIA_TYPE)


async def _count_runs(parts: Parts, served: ServedWorkspace) -> int | None:
    if not await parts.dispatchers.is_running(served.folder):
        return None
    search = {"filter": "status = active", "children": True, "columns": ["id"], "limit": 1, "total": True}
    return int((await parts.dispatchers.call(served.folder, "runs.search", search))["total"])


async def get_description(call: Call) -> Response:
    """The OpenAPI document."""
    return Response(await asyncio.to_thread(encode_description, call.parts.table), media_type="application/json")


@cache
def encode_description(table: Table) -> bytes:
    """The OpenAPI document as JSON."""
    return orjson.dumps(describe_table(table), option=orjson.OPT_INDENT_2)

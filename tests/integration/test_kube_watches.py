"""Watches of an API server that ends, forgets and breaks them, on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import pytest
from tests.scripted_server import client_of, status_body

from trainmaster.engines.kubernetes.api import ApiError
from trainmaster.engines.kubernetes.watch import watch

_PODS = "/api/v1/namespaces/train/pods"


def _page(*names, version="10", more=""):
    items = [{"metadata": {"name": name, "resourceVersion": version}} for name in names]
    return {"items": items, "metadata": {"resourceVersion": version, "continue": more}}


def _change(kind, name, version):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


def _name(item):
    return item["metadata"]["name"]


async def _collect(events, until):
    """The events as (kind, names), until one fits."""
    found = []
    async with contextlib.aclosing(events):
        async for event in events:
            found.append((event.kind, event.objects))
            if until(found):
                return found
    raise AssertionError("the watch has ended")


def test_a_watch_goes_on_where_it_was_after_the_server_ended_it(tmp_path):
    async def script(exchange):
        query = exchange.request.query
        if "watch" not in query:
            await exchange.answer(200, _page("a", version="10"))
            return
        await exchange.begin()
        if query["resourceVersion"] == "10":
            await exchange.chunk(_change("ADDED", "b", "11"), {"type": "BOOKMARK", "object": _page(version="20")})
            await exchange.chunk()
        elif query["resourceVersion"] == "20":
            # A whole event and half of one; then the connection breaks.
            line = json.dumps(_change("MODIFIED", "b", "21")).encode() + b"\n"
            half = json.dumps(_change("DELETED", "b", "22")).encode()[:-9]
            await exchange.send(b"%x\r\n%s\r\n" % (len(line + half), line + half))
            exchange.reset()
        else:
            assert query["resourceVersion"] == "21"
            await exchange.chunk(_change("DELETED", "b", "22"))
            await exchange.reader.read()

    async def scene():
        async with client_of(tmp_path, script) as (server, api):
            events = watch(api, _PODS, "a=b", reduce=_name)
            found = await _collect(events, lambda found: found[-1][0] == "deleted")
            assert found == [
                ("reset", ("a",)),
                ("added", ("b",)),
                ("modified", ("b",)),
                ("away", ()),
                ("back", ()),
                ("deleted", ("b",)),
            ]
            assert len([r for r in server.requests if "watch" not in r.query]) == 1
            assert {r.query["labelSelector"] for r in server.requests} == {"a=b"}

    asyncio.run(scene())


@pytest.mark.parametrize("place", ["status", "event"])
def test_a_version_that_the_server_has_forgotten(tmp_path, place):
    lists = 0

    async def script(exchange):
        nonlocal lists
        query = exchange.request.query
        if "watch" not in query:
            lists += 1
            await exchange.answer(200, _page(*"ab"[:lists], version=str(lists)))
        elif query["resourceVersion"] == "2":
            await exchange.begin()
            await exchange.chunk(_change("ADDED", "c", "3"))
            await exchange.reader.read()
        elif place == "status":
            await exchange.answer(410, status_body(410, "too old resource version"))
        else:
            await exchange.begin()
            await exchange.chunk({"type": "ERROR", "object": status_body(410, "too old resource version")})
            await exchange.chunk()

    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            found = await _collect(watch(api, _PODS, reduce=_name), lambda found: found[-1][0] == "added")
            # Not away: the server answers, and all objects come again.
            assert found == [("reset", ("a",)), ("reset", ("a", "b")), ("added", ("c",))]

    asyncio.run(scene())


def test_a_server_that_is_away_is_reported_once_and_asked_ever_less(tmp_path):
    async def script(exchange):
        if "watch" not in exchange.request.query:
            await exchange.answer(200, _page("a"))
        elif server.connections < 5:
            await exchange.answer(500, status_body(500, "the disk is full"))
        else:
            await exchange.begin()
            await exchange.chunk(_change("ADDED", "b", "11"))
            await exchange.reader.read()

    server = None

    async def scene():
        nonlocal server
        async with client_of(tmp_path, script) as (running, api):
            server = running
            began = time.monotonic()
            errors = []
            events = watch(api, _PODS, reduce=_name)
            kinds = []
            async with contextlib.aclosing(events):
                async for event in events:
                    kinds.append(event.kind)
                    errors += [event.error] if event.error else []
                    if event.kind == "added":
                        break
            assert kinds == ["reset", "away", "back", "added"]
            assert [error.cause for error in errors] == ["the disk is full"]
            # One list, three refused watches and the one that worked: pauses of 0.5, 1 and 2 seconds.
            assert server.connections == 5
            assert time.monotonic() - began >= 3.5

    asyncio.run(scene())


def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(tmp_path):
    async def script(exchange):
        if "watch" not in exchange.request.query:
            await exchange.answer(200, _page())
            return
        await exchange.begin()
        watches = len([r for r in server.requests if "watch" in r.query])
        if watches == 4:
            await exchange.chunk(_change("ADDED", "b", "11"))
        await exchange.chunk()

    server = None

    async def scene():
        nonlocal server
        async with client_of(tmp_path, script) as (running, api):
            server = running
            began = time.monotonic()
            await _collect(watch(api, _PODS, reduce=_name), lambda found: found[-1][0] == "added")
            assert time.monotonic() - began >= 3.5

    asyncio.run(scene())


def test_a_watch_of_nothing_that_exists_ends(tmp_path):
    async def script(exchange):
        await exchange.answer(404, status_body(404, "the server could not find the requested resource"))

    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            with pytest.raises(ApiError, match="could not find"):
                await _collect(watch(api, _PODS), lambda found: False)

    asyncio.run(scene())


def test_a_watch_that_is_stopped_closes_its_connection(tmp_path):
    closed = asyncio.Event()

    async def script(exchange):
        if "watch" not in exchange.request.query:
            await exchange.answer(200, _page("a"))
            return
        await exchange.begin()
        await exchange.chunk(_change("ADDED", "b", "11"))
        with contextlib.suppress(OSError):
            await exchange.reader.read()
        closed.set()

    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            await _collect(watch(api, _PODS, reduce=_name), lambda found: found[-1][0] == "added")
            async with asyncio.timeout(60):
                await closed.wait()

    asyncio.run(scene())

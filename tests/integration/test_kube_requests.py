"""Requests to an API server that refuses, breaks connections and is silent, on demand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from tests.scripted_server import ScriptedServer, client_of, status_body

from trainmaster.engines.kubernetes.access import Access
from trainmaster.engines.kubernetes.api import Api, ApiError
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Pem, User
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException

_PODS = "/api/v1/namespaces/train/pods"


def _page(*names, version="10", more=""):
    items = [{"metadata": {"name": name, "resourceVersion": version}} for name in names]
    return {"items": items, "metadata": {"resourceVersion": version, "continue": more}}


def _change(kind, name, version):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


def _name(item):
    return item["metadata"]["name"]


def test_connections_are_used_again_and_limited(tmp_path):
    async def script(exchange):
        await exchange.answer(200, {"path": exchange.request.path})

    async def scene():
        async with client_of(tmp_path, script, connections=3) as (server, api):
            for _ in range(5):
                assert await api.get("/version") == {"path": "/version"}
            assert server.connections == 1
            await asyncio.gather(*(api.get(f"/{number}") for number in range(40)))
            assert server.open_at_once <= 3
            assert len(server.requests) == 45

    asyncio.run(scene())


def test_a_server_that_asks_for_a_pause_gets_it(tmp_path):
    async def script(exchange):
        if len(server_requests) == 1:
            await exchange.answer(429, status_body(429), Retry_After="1")
        else:
            await exchange.answer(201, {"ok": True})

    server_requests = []

    async def scene():
        async with client_of(tmp_path, script) as (server, api):
            nonlocal server_requests
            server_requests = server.requests
            began = time.monotonic()
            # Nothing was done of a request that is answered with 429, so this one can be repeated too.
            assert await api.create(_PODS, {"metadata": {"generateName": "x-"}}) == {"ok": True}
            assert time.monotonic() - began >= 1.0
            assert [request.method for request in server.requests] == ["POST", "POST"]

    asyncio.run(scene())


def test_errors_that_pass_are_tried_again_only_where_it_is_safe(tmp_path):
    failures = 0

    async def script(exchange):
        nonlocal failures
        if failures:
            failures -= 1
            await exchange.answer(503, status_body(503, "starting"))
        else:
            await exchange.answer(200, {"fine": True})

    async def scene():
        nonlocal failures
        async with client_of(tmp_path, script) as (server, api):
            for call in (
                lambda: api.get(_PODS),
                lambda: api.create(_PODS, {"metadata": {"name": "x"}}),
                lambda: api.patch(f"{_PODS}/x", {}),
            ):
                failures = 2
                assert await call() == {"fine": True}
            failures = 1
            await api.delete(f"{_PODS}/x", grace=0)
            assert failures == 0
            count, failures = len(server.requests), 1
            with pytest.raises(ApiError, match="starting") as caught:
                await api.create(_PODS, {"metadata": {"generateName": "x-"}})
            assert caught.value.status == 503
            assert len(server.requests) == count + 1

    asyncio.run(scene())


def test_a_connection_that_breaks_in_the_middle_of_an_answer(tmp_path):
    async def script(exchange):
        request = exchange.request
        if request.connection == 1:
            await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            exchange.reset()
        elif request.connection == 2:
            await exchange.begin()
            await exchange.send(b'ff\r\n{"half"')
            exchange.reset()
        elif request.connection == 3:
            exchange.reset()
        else:
            await exchange.answer(200, {"whole": True})

    async def scene():
        async with client_of(tmp_path, script) as (server, api):
            assert await api.get("/version") == {"whole": True}
            assert server.connections == 4

    asyncio.run(scene())


def test_a_request_that_may_have_been_done_is_not_repeated(tmp_path):
    async def script(exchange):
        exchange.reset()

    async def scene():
        async with client_of(tmp_path, script) as (server, api):
            with pytest.raises(Unreachable):
                await api.create(_PODS, {"metadata": {"generateName": "x-"}})
            assert len(server.requests) == 1

    asyncio.run(scene())


def test_a_server_that_is_not_there(tmp_path):
    async def script(exchange):
        raise AssertionError("nobody listens")

    async def scene():
        server = ScriptedServer(tmp_path, script)
        async with server.listen():
            pass
        api = Api(Access(Cluster(server.address, Pem(file=server.certificate)), User(), "train"), patience=0.5)
        with pytest.raises(Unreachable) as caught:
            await api.get("/version")
        assert server.address in caught.value.headline
        await api.close()

    asyncio.run(scene())


def test_something_else_than_an_api_server(tmp_path):
    async def script(exchange):
        await exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>")
        exchange.writer.close()

    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            with pytest.raises(ComputeTargetException, match="does not answer like a Kubernetes API server"):
                await api.get("/version")

    asyncio.run(scene())


def test_a_server_behind_a_path(tmp_path):
    async def script(exchange):
        await exchange.answer(200, {"path": exchange.request.path, "host": exchange.request.headers["host"]})

    async def scene():
        async with client_of(tmp_path, script) as (server, _):
            address = f"{server.address}/k8s/clusters/c-1"
            api = Api(Access(Cluster(address, Pem(file=server.certificate)), User(), "train"))
            host = server.address.removeprefix("https://")
            assert await api.get(api.pods) == {"path": f"/k8s/clusters/c-1{_PODS}", "host": host}
            with pytest.raises(ValueError, match="is not a path"):
                await api.get(f"{api.pods}/a HTTP/1.1\r\nHost: other")
            await api.close()

    asyncio.run(scene())


@pytest.mark.parametrize(("package", "module"), [("httptools", "api"), ("websockets", "exec_channel")])
def test_a_missing_package_is_named(package, module):
    program = f"import sys; sys.modules['{package}'] = None; import trainmaster.engines.kubernetes.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"the package '{package}' is missing" in done.stderr
    assert "pip install 'trainmaster[kubernetes]'" in done.stderr


def test_lists_in_pages_begin_again_when_they_took_too_long(tmp_path):
    expired = False

    async def script(exchange):
        nonlocal expired
        query = exchange.request.query
        if "continue" not in query:
            await exchange.answer(200, _page("a", "b", more="next"))
        elif not expired:
            expired = True
            await exchange.answer(410, status_body(410))
        else:
            await exchange.answer(200, _page("c"))

    async def scene():
        async with client_of(tmp_path, script) as (server, api):
            names, version = await api.list_objects(_PODS, labels="a=b", fields="c=d", reduce=_name)
            assert (names, version) == (["a", "b", "c"], "10")
            assert {r.query["labelSelector"] for r in server.requests} == {"a=b"}
            assert {r.query["fieldSelector"] for r in server.requests} == {"c=d"}
            assert [r.query.get("continue") for r in server.requests] == [None, "next", None, "next"]

    asyncio.run(scene())

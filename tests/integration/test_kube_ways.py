"""The way to an API server: certificates of both sides, and proxies."""

from __future__ import annotations

import asyncio
import base64
import contextlib

import pytest
from tests.scripted_server import ScriptedServer, client_of

from trainmaster.engines.kubernetes.access import Access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Pem, User
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException

_PODS = "/api/v1/namespaces/train/pods"


def test_the_server_must_prove_who_it_is(tmp_path):
    (tmp_path / "other").mkdir()

    async def script(exchange):
        await exchange.answer(200, {})

    async def scene():
        async with client_of(tmp_path, script) as (server, _):
            other = ScriptedServer(tmp_path / "other", script)
            for authority, name, works in (
                (server.certificate, "", True),
                (other.certificate, "", False),
                (server.certificate, "other.example", False),
            ):
                cluster = Cluster(server.address, Pem(file=authority), tls_server_name=name)
                client = Api(Access(cluster, User(), "train"))
                if works:
                    await client.get("/version")
                else:
                    with pytest.raises(ComputeTargetException, match="cannot be verified") as caught:
                        await client.get("/version")
                    assert not isinstance(caught.value, Unreachable)
                await client.close()
            insecure = Api(Access(Cluster(server.address, insecure=True), User(), "train"))
            await insecure.get("/version")
            await insecure.close()
            by_name = server.address.replace("127.0.0.1", "localhost")
            named = Api(Access(Cluster(by_name, Pem(file=server.certificate), "127.0.0.1"), User(), "train"))
            await named.get("/version")
            await named.close()

    asyncio.run(scene())


def test_a_client_certificate_is_shown_and_its_lack_explained(tmp_path):
    (tmp_path / "client").mkdir()

    async def script(exchange):
        await exchange.answer(200, {})

    async def scene():
        client = ScriptedServer(tmp_path / "client", script)
        user = User(certificate=Pem(file=client.certificate), key=Pem(file=client.key))
        async with client_of(tmp_path, script, user, client_authority=client.certificate) as (_, api):
            await api.get("/version")
            anonymous = Api(Access(api.access.cluster, User(), "train"), patience=0.0)
            with pytest.raises(ComputeTargetException):
                await anonymous.get("/version")
            await anonymous.close()
            # A certificate that was renewed is used for the next connection.
            (tmp_path / "renewed").mkdir()
            renewed = ScriptedServer(tmp_path / "renewed", script)
            client.certificate.write_bytes(renewed.certificate.read_bytes())
            client.key.write_bytes(renewed.key.read_bytes())
            before = await api.access.ssl_context()
            api.access.forget([])
            assert await api.access.ssl_context() is not before

    asyncio.run(scene())


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_proxies(tmp_path, kind):
    seen = []

    async def serve(reader, writer):
        if kind == "http":
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            host, port = lines[0].split()[1].split(":")
            seen.append(lines[2])
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            await reader.readexactly(4)
            writer.write(b"\x05\x02")
            _, size = await reader.readexactly(2)
            name = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            seen.append(f"{name.decode()}:{password.decode()}")
            writer.write(b"\x01\x00")
            *_, size = await reader.readexactly(5)
            host = (await reader.readexactly(size)).decode()
            port = int.from_bytes(await reader.readexactly(2), "big")
            writer.write(b"\x05\x00\x00\x01" + bytes(6))
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    async def _copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.transport.abort()

    async def script(exchange):
        await exchange.answer(200, {"through": kind})

    async def scene():
        proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with proxy:
            port = proxy.sockets[0].getsockname()[1]
            address = f"{kind}://me:p%40ss@127.0.0.1:{port}"
            async with client_of(tmp_path, script, cluster={"proxy_url": address}) as (_, api):
                assert await api.get("/version") == {"through": kind}
        await asyncio.sleep(0.01)

    asyncio.run(scene())
    expected = f"Proxy-Authorization: Basic {base64.b64encode(b'me:p@ss').decode()}"
    assert seen == [expected if kind == "http" else "me:p@ss"]


def test_a_proxy_that_refuses(tmp_path):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Not for you\r\n\r\n")
        writer.close()

    async def scene():
        proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with proxy:
            address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            api = Api(Access(Cluster("https://k8s.example", proxy_url=address), User(), "train"), patience=0.0)
            with pytest.raises(Unreachable) as caught:
                await api.get("/version")
            assert "403 Not for you" in caught.value.cause
            await api.close()

    asyncio.run(scene())

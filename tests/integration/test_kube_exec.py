"""Programs in pods, over connections that break or fall silent on demand."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import time

import pytest
from tests.scripted_server import client_of

from trainmaster.engines.kubernetes.exec_channel import COULD_NOT_START, open_exec
from trainmaster.job.errors import ComputeTargetException

_PODS = "/api/v1/namespaces/train/pods"


def _frame(data, opcode=2, final=True):
    head = bytes([opcode | (0x80 if final else 0)])
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return head + size + data


async def _accept(exchange, protocol="v4.channel.k8s.io", then=b""):
    key = exchange.request.headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key).digest()).decode()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Accept: {accept}", f"Sec-WebSocket-Protocol: {protocol}", "", ""]
    await exchange.send("\r\n".join(lines).encode() + then)


def _exec_scene(tmp_path, script, play, **options):
    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            channel = await open_exec(api, "tm-1", ["python3"], **options)
            try:
                async with asyncio.timeout(120):
                    await play(channel)
            finally:
                await channel.close()

    asyncio.run(scene())


def test_messages_in_parts_and_those_that_come_with_the_handshake(tmp_path):
    status = json.dumps({"status": "Success"}).encode()

    async def script(exchange):
        assert exchange.request.path == f"{_PODS}/tm-1/exec"
        offered = exchange.request.headers["sec-websocket-protocol"]
        assert offered == "v5.channel.k8s.io, v4.channel.k8s.io"
        await _accept(exchange, "v5.channel.k8s.io", then=_frame(b"\x01fir") + _frame(b"\x01"))
        await exchange.send(_frame(b"\x01st", final=False) + _frame(b" sec", 0, final=False))
        # Between the parts of a message may be a ping, never another message.
        await exchange.send(_frame(b"ping", 9) + _frame(b"ond", 0))
        await exchange.send(_frame(b"\x02problem") + _frame(b"\x03" + status[:5]) + _frame(b"\x03" + status[5:]))
        await exchange.send(_frame((1000).to_bytes(2, "big"), 8))
        await exchange.reader.read()

    async def play(channel):
        assert await channel.output.read() == b"first second"
        await channel.wait()
        assert (channel.returncode, channel.error_text) == (0, "problem")
        with pytest.raises(ConnectionError):
            await channel.write(b"x")

    _exec_scene(tmp_path, script, play)


def test_a_connection_that_breaks_in_the_middle_of_a_frame(tmp_path):
    async def script(exchange):
        await _accept(exchange)
        await exchange.send(_frame(b"\x01whole") + _frame(b"\x01" + b"half" * 20)[:30])
        exchange.reset()

    async def play(channel):
        assert await channel.output.read() == b"whole"
        await channel.wait()
        assert channel.returncode is None
        assert "The connection to the pod was lost" in channel.error_text
        with pytest.raises(ConnectionError, match="lost"):
            await channel.write(b"x")

    _exec_scene(tmp_path, script, play)


def test_a_server_that_falls_silent_is_noticed(tmp_path):
    async def script(exchange):
        await _accept(exchange)
        with contextlib.suppress(OSError):
            while await exchange.reader.read(65536):
                # It reads, but answers no ping.
                pass

    async def play(channel):
        assert await channel.output.read() == b""
        assert channel.returncode is None
        assert "did not answer for 0.5 seconds" in channel.error_text

    _exec_scene(tmp_path, script, play, silence=0.5)


def test_a_server_that_answers_pings_is_not_lost(tmp_path):
    pings = []

    async def script(exchange):
        await _accept(exchange)
        while len(pings) < 6:
            head = await exchange.reader.readexactly(6)
            assert head[:2] == b"\x89\x80"
            pings.append(time.monotonic())
            await exchange.send(_frame(b"", 10))
        await exchange.send(_frame(b'\x03{"status": "Success"}') + _frame(b"", 8))
        await exchange.reader.read()

    async def play(channel):
        # Six pings, one every quarter of the time after which a silent server is lost.
        await channel.wait()
        assert channel.returncode == 0

    _exec_scene(tmp_path, script, play, silence=4.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "WebSocket"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "WebSocket"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "Role"),
    ],
)
def test_servers_that_do_not_run_programs(tmp_path, answer, words):
    async def script(exchange):
        await exchange.send(answer)

    async def scene():
        async with client_of(tmp_path, script) as (_, api):
            with pytest.raises(ComputeTargetException) as caught:
                await open_exec(api, "tm-1", ["true"])
            assert words in caught.value.message

    asyncio.run(scene())


def test_a_status_that_is_no_exit_code(tmp_path):
    status = json.dumps({"status": "Failure", "reason": "InternalError", "message": "container not found"}).encode()

    async def script(exchange):
        await _accept(exchange)
        await exchange.send(_frame(b"\x03" + status) + _frame(b"", 8))
        await exchange.reader.read()

    async def play(channel):
        await channel.wait()
        assert (channel.returncode, channel.error_text) == (COULD_NOT_START, "container not found")

    _exec_scene(tmp_path, script, play)


def test_output_that_nobody_reads_is_not_fetched(tmp_path):
    sent = 0
    block = _frame(b"\x01" + bytes(60_000))

    async def script(exchange):
        nonlocal sent
        await _accept(exchange)
        while True:
            exchange.writer.write(block)
            await exchange.writer.drain()
            # While TLS says goodbye, what is written is dropped and `drain` does not wait: others would get no turn.
            await asyncio.sleep(0)
            sent += 60_000

    async def play(channel):
        # Until the server has been stuck for a while; what it could send is in buffers of limited size.
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(1.0)
        assert sent < 64 * 1024 * 1024
        # Reading goes on where it was.
        assert await channel.output.readexactly(before) == bytes(before)

    _exec_scene(tmp_path, script, play)

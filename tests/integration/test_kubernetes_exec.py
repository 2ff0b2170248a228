"""Programs in pods of a real cluster, also while its API server goes away."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os

import pytest
from tests.cluster.kubernetes_client import make_pod, open_client, state_of

from trainmaster.engines.kubernetes.api import ApiError
from trainmaster.engines.kubernetes.exec_channel import COULD_NOT_START, open_exec
from trainmaster.engines.kubernetes.watch import watch
from trainmaster.engines.remote.channel import Unreachable


@pytest.fixture(scope="module")
def pod(kubernetes_namespace):
    """The name of a pod that runs."""
    kubernetes_namespace.kubectl("apply", "--filename", "-", text=json.dumps(make_pod("runs")))
    kubernetes_namespace.kubectl("wait", "--for=condition=Ready", "pod/runs", "--timeout=120s")
    return "runs"


def test_bytes_pass_unchanged_both_ways(kubernetes_namespace, pod):
    size = 3 * 1024 * 1024 + 17
    program = f"import sys; sys.stdout.buffer.write(sys.stdin.buffer.read({size})); sys.stderr.write('x' * 20000 + 'y')"

    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            channel = await open_exec(api, pod, ["python3", "-c", program])
            data = os.urandom(size)
            reading = asyncio.create_task(channel.output.read())
            await channel.write(data)
            assert await reading == data
            await channel.wait()
            assert channel.returncode == 0
            # Of the error output, only the end is kept.
            assert channel.error_text.endswith("xy") and len(channel.error_text) <= 8192
            await channel.close()

    asyncio.run(scene())


def test_exit_codes(kubernetes_namespace, pod):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            for argv, code, words in (
                (["true"], 0, ""),
                (["sh", "-c", "echo bad >&2; exit 7"], 7, "bad\n"),
                (["sh", "-c", "kill -9 $$"], 137, ""),
                (["no-such-program"], COULD_NOT_START, "no-such-program"),
            ):
                channel = await open_exec(api, pod, argv, container="main")
                await channel.wait()
                assert channel.returncode == code
                assert words in channel.error_text
                assert await channel.output.read() == b""
                with pytest.raises(ConnectionError):
                    await channel.write(b"x")
                await channel.close()
            with pytest.raises(ApiError) as caught:
                await open_exec(api, "no-such-pod", ["true"])
            assert caught.value.status == 404

    asyncio.run(scene())


def test_a_quiet_program_is_not_taken_for_a_lost_server(kubernetes_namespace, pod):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            # Longer than the silence after which a server that answers no ping is lost.
            channel = await open_exec(api, pod, ["sh", "-c", "sleep 9; echo done"], silence=6.0)
            assert await channel.output.read() == b"done\n"
            assert channel.returncode == 0
            await channel.close()

    asyncio.run(scene())


def test_closing_ends_the_input_of_the_program(kubernetes_namespace, pod):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            channel = await open_exec(api, pod, ["sh", "-c", "echo begun; cat > /dev/null; echo over > /tmp/over"])
            assert await channel.output.readline() == b"begun\n"
            await channel.close()
            assert await channel.output.read() == b""
            waiting = "until [ -e /tmp/over ]; do sleep 0.1; done; cat /tmp/over"
            looking = await open_exec(api, pod, ["sh", "-c", waiting])
            async with asyncio.timeout(120):
                assert await looking.output.read() == b"over\n"
            await looking.close()

    asyncio.run(scene())


def test_a_large_upload_waits_for_a_slow_program(kubernetes_namespace, pod):
    """The program reads nothing until it is told to; meanwhile only buffers of limited size fill up."""
    size = 48 * 1024 * 1024
    program = (
        "import hashlib, os, sys, time\n"
        "while not os.path.exists('/tmp/go'): time.sleep(0.05)\n"
        "digest, rest = hashlib.sha256(), int(sys.argv[1])\n"
        "while rest:\n"
        "    piece = sys.stdin.buffer.read(min(rest, 1 << 20))\n"
        "    digest.update(piece); rest -= len(piece)\n"
        "print(digest.hexdigest())"
    )

    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            channel = await open_exec(api, pod, ["python3", "-c", program, str(size)])
            block, digest, written = os.urandom(1024 * 1024), hashlib.sha256(), 0

            async def write():
                nonlocal written
                while written < size:
                    await channel.write(block)
                    digest.update(block)
                    written += len(block)

            writing = asyncio.create_task(write())
            before = -1
            while before != written:
                before = written
                await asyncio.sleep(2.0)
            assert written < size, "the whole upload fits into buffers"
            go = await open_exec(api, pod, ["touch", "/tmp/go"])
            await go.wait()
            await go.close()
            await writing
            assert (await channel.output.read()).decode().strip() == digest.hexdigest()
            await channel.wait()
            assert channel.returncode == 0
            await channel.close()

    asyncio.run(scene())


def test_an_api_server_that_dies_and_comes_back(kubernetes_namespace, kubernetes_cluster, pod):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace, patience=1.0) as api:
            channel = await open_exec(api, pod, ["cat"])
            await channel.write(b"before\n")
            assert await channel.output.readline() == b"before\n"
            kinds = []
            events = watch(api, api.pods, "made-by=test", reduce=state_of)
            async with contextlib.aclosing(events), asyncio.timeout(240):
                async for event in events:
                    kinds.append(event.kind)
                    if event.kind == "reset" and len(kinds) == 1:
                        await asyncio.to_thread(kubernetes_cluster.kill, "kube-apiserver")
                    elif event.kind == "away":
                        assert isinstance(event.error, Unreachable)
                        with pytest.raises(Unreachable):
                            await api.list_objects(api.pods)
                        await asyncio.to_thread(kubernetes_cluster.start, "kube-apiserver")
                    elif event.kind in ("back", "reset"):
                        break
            assert kinds[:2] == ["reset", "away"]
            async with asyncio.timeout(120):
                await channel.wait()
            assert channel.returncode is None and "lost" in channel.error_text
            await channel.close()
            again = await open_exec(api, pod, ["echo", "after"])
            assert await again.output.read() == b"after\n"
            await again.close()

    try:
        asyncio.run(scene())
    finally:
        kubernetes_cluster.start("kube-apiserver")

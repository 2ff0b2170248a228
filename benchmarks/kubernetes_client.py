"""What the client of Kubernetes costs: streams to and from a pod, and a watch of many pods.

    python -m benchmarks.kubernetes_client [--kubeconfig FILE] [--megabytes 1024] [--pods 10000]

Without --kubeconfig, a cluster is started for the streams. `kubectl exec` moves the same bytes for comparison. The pods
of the watch are of a server that only has a list of them: a cluster of one machine cannot have so many.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.kubernetes import Cluster as TestCluster
from tests.cluster.kubernetes_binaries import binaries
from tests.cluster.kubernetes_client import make_pod
from tests.scripted_server import ScriptedServer

from trainmaster.engines.kubernetes.access import Access, read_access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.exec_channel import ExecChannel, open_exec
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Pem, User
from trainmaster.engines.kubernetes.watch import watch

MEGABYTE = 1024 * 1024
POD = "benchmark"
NAMESPACE = "benchmark"
SINK = ["sh", "-c", "dd of=/dev/null bs=1M count={megabytes} iflag=fullblock && echo done"]
# In large pieces, as our helper writes.
SOURCE = ["dd", "if=/dev/zero", "bs=1M", "count={megabytes}"]


def main() -> None:
    """Prints one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_pods(options.serve))
        return
    asyncio.run(measure_watch(options.pods))
    with cluster_of(options.kubeconfig) as kubeconfig, pod_of(kubeconfig):
        asyncio.run(measure_streams(kubeconfig, options.megabytes * MEGABYTE))
        asyncio.run(measure_channels(kubeconfig))


@contextlib.contextmanager
def cluster_of(kubeconfig: str) -> Iterator[str]:
    """The cluster that is named, or one of our own."""
    if kubeconfig:
        yield kubeconfig
        return
    with TestCluster() as cluster:
        yield cluster.kubeconfig


@contextlib.contextmanager
def pod_of(kubeconfig: str) -> Iterator[None]:
    kubectl(kubeconfig, "create", "namespace", NAMESPACE)
    try:
        time.sleep(2)
        kubectl(kubeconfig, "apply", "--filename", "-", text=json.dumps(make_pod(POD)))
        kubectl(kubeconfig, "wait", "--for=condition=Ready", f"pod/{POD}", "--timeout=120s")
        yield
    finally:
        kubectl(kubeconfig, "delete", "namespace", NAMESPACE)


def kubectl(kubeconfig: str, *words: str, text: str | None = None) -> None:
    command = [str(binaries() / "bin" / "kubectl"), "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, *words]
    subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.DEVNULL)


async def measure_streams(kubeconfig: str, size: int) -> None:
    """Moves bytes to the pod and back, ours and with kubectl."""
    api = Api(read_access({"kubeconfig": kubeconfig, "namespace": NAMESPACE}))
    block = os.urandom(MEGABYTE)
    for way in ("to", "from"):
        argv = [word.format(megabytes=size // MEGABYTE) for word in (SINK if way == "to" else SOURCE)]
        channel = await open_exec(api, POD, argv)
        idle, highest = resident(), 0.0
        began, used = time.perf_counter(), time.process_time()
        if way == "to":
            for _ in range(size // MEGABYTE):
                await channel.write(block)
                highest = max(highest, resident())
        while await channel.output.read(MEGABYTE):
            highest = max(highest, resident())
        seconds = time.perf_counter() - began
        print(
            f"{size / 1e6:.0f} MB {way} a pod: {size / seconds / 1e6:.0f} MB/s, "
            f"{(time.process_time() - used) / (size / 1e9):.2f} s of processor time per GB, "
            f"memory {idle:.0f} MB before, at most {highest:.0f} MB; "
            f"kubectl: {size / kubectl_seconds(kubeconfig, way, argv, size) / 1e6:.0f} MB/s",
            flush=True,
        )
        await channel.close()
    await api.close()


async def measure_channels(kubeconfig: str) -> None:
    """Opens many channels to programs that wait."""
    api = Api(read_access({"kubeconfig": kubeconfig, "namespace": NAMESPACE}))

    async def open_channel() -> ExecChannel:
        channel = await open_exec(api, POD, ["cat"])
        await channel.write(b"line\n")
        assert await channel.output.readline() == b"line\n"
        return channel

    channels = [await open_channel()]
    before, began = resident(), time.perf_counter()
    for _ in range(6):
        channels += await asyncio.gather(*(open_channel() for _ in range(10)))
    seconds = (time.perf_counter() - began) / 60
    print(f"an open channel: {(resident() - before) / 60:.2f} MB, {seconds * 1000:.0f} ms to open with nine others")
    for channel in channels:
        await channel.close()
    await api.close()


def kubectl_seconds(kubeconfig: str, way: str, argv: list[str], size: int) -> float:
    command = [str(binaries() / "bin" / "kubectl"), "--kubeconfig", kubeconfig, "--namespace", NAMESPACE]
    command += ["exec", "--stdin", POD, "--", *argv]
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        source = subprocess.DEVNULL
        if way == "to":
            feeder = ["head", "-c", str(size), "/dev/zero"]
            source = stack.enter_context(subprocess.Popen(feeder, stdout=subprocess.PIPE)).stdout
        subprocess.run(command, stdin=source, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def measure_watch(pods: int) -> None:
    """Lists many pods of another process, keeping little of each, and receives as many changes."""
    command = [sys.executable, "-m", "benchmarks.kubernetes_client", "--serve", str(pods)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, limit=MEGABYTE)
    try:
        address, certificate = (await process.stdout.readline()).decode().split()
        api = Api(Access(Cluster(address, Pem(file=Path(certificate))), User(), NAMESPACE))
        await api.get("/version")
        idle, used = resident(), time.process_time()
        kept, changes = {}, 0
        events = watch(api, api.pods, reduce=lambda pod: (pod["metadata"]["name"], pod["status"]["phase"]))
        async with contextlib.aclosing(events):
            async for event in events:
                kept.update(event.objects)
                if event.kind == "reset":
                    per_thousand, used = 1000 / pods, time.process_time() - used
                    print(
                        f"a list of {pods} pods: {used * 1000 * per_thousand:.0f} ms of processor "
                        f"time and {(resident() - idle) * per_thousand:.2f} MB per 1,000 pods",
                        flush=True,
                    )
                    used = time.process_time()
                changes += event.kind == "modified"
                if changes == pods:
                    break
        print(
            f"{pods} changes: {(time.process_time() - used) * 1000 * per_thousand:.0f} ms of processor time per 1,000, "
            f"memory {resident() - idle:.1f} MB more than before the list",
            flush=True,
        )
        await api.close()
    finally:
        process.terminate()
        await process.wait()


async def serve_pods(count: int) -> None:
    """A server with that many pods, each as large as a real one, and a change of each."""

    def pod(number: int) -> dict[str, object]:
        filling = [{"name": f"VARIABLE_{each}", "value": "x" * 100} for each in range(50)]
        spec = {"containers": [{"name": "main", "image": "image", "env": filling}]}
        metadata = {"name": f"tm-run-{number}", "resourceVersion": str(number + 1), "labels": {"a": "b"}}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}

    async def script(exchange) -> None:
        query = exchange.request.query
        if exchange.request.path == "/version":
            await exchange.answer(200, {})
        elif "watch" in query:
            await exchange.begin()
            for number in range(count):
                await exchange.chunk({"type": "MODIFIED", "object": pod(number)})
            await exchange.reader.read()
        else:
            first = int(query.get("continue", "0"))
            last = min(first + int(query["limit"]), count)
            more = str(last) if last < count else ""
            items = [pod(number) for number in range(first, last)]
            await exchange.answer(200, {"items": items, "metadata": {"resourceVersion": "1", "continue": more}})

    with tempfile.TemporaryDirectory() as folder:
        server = ScriptedServer(Path(folder), script)
        async with server.listen():
            print(server.address, server.certificate, flush=True)
            await asyncio.Event().wait()


def resident() -> float:
    """Megabytes of memory that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()

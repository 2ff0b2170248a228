"""What the server costs: a submit over HTTP against one over the socket, 100 clients, a large file, MLflow beside it.

    python -m benchmarks.server [--json] [--seconds 60] [--clients 100] [--megabytes 2048] [--postgresql] [--no-mlflow]

Everything runs on this machine, over loopback. Bare Starlette is an application with the same answers, kept ready, and
no work: it neither knows who asks nor whether the answer is still right. The clients without pauses only read, and
nothing changes meanwhile. Processor time is that of the server and the dispatcher together; it depends less on what
else the machine does than requests per second do. MLflow's server is installed once under ~/.cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.postgresql import run_server

from benchmarks.serving import environment, free_port
from benchmarks.submit import make_source
from trainmaster import Environment, Estimator, Experiment, Workspace
from trainmaster.environments.sources import source_variables

_START_SECONDS = 120.0
_RUNS = 2_000

_BARE = """
import json, sys
from pathlib import Path
import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse, Response
from starlette.routing import Route
folder = Path(sys.argv[2])
answers = {path: body.encode() for path, body in json.loads((folder / "answers.json").read_text()).items()}
async def answer(request):
    await request.body()
    query = f"?{request.url.query}" if request.url.query else ""
    return Response(answers.get(request.url.path + query, b"{}"), media_type="application/json")
async def file(request):
    return FileResponse(folder / "large")
routes = [Route("/large", file), Route("/{path:path}", answer, methods=["GET", "POST"])]
uvicorn.run(Starlette(routes=routes), port=int(sys.argv[1]), log_level="error", access_log=False)
"""

_LOGS = """
import time
from trainmaster import Run
run = Run.get_context()
for number in range(40):
    print(f"step {number} of 40: a line of a log", flush=True)
    run.log("sent", time.time())
    time.sleep(0.25)
"""


class Program:
    """A program that listens on a port of its own."""

    def __init__(self, command: list[str], port: int, log: Path, **variables: str) -> None:
        self.port = port
        self._log = open(log, "wb")  # noqa: SIM115 (the program has it)
        self.process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, env={**os.environ, **variables}, start_new_session=True
        )

    def wait(self, path: str, seconds: float = _START_SECONDS) -> None:
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).close()
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{self.process.args} does not answer; see {self._log.name}")
            time.sleep(0.1)

    def memory(self) -> float:
        """In MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def cpu(self) -> float:
        """Seconds of processor time."""
        return read_cpu(self.process.pid)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                # It is busy with an answer that nobody waits for any more.
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(30)
        self._log.close()


def read_cpu(process: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(*programs: Program) -> Iterator[None]:
    try:
        yield
    finally:
        for program in programs:
            program.end()


class Served:
    """A server with one workspace, and its token. `words` are options of `server init`."""

    def __init__(self, base: Path, *words: str) -> None:
        command = [sys.executable, "-m", "trainmaster", "server"]
        self.root = base / "root"
        made = subprocess.run(
            [*command, "init", "--root", str(self.root), "--json", *words], check=True, capture_output=True, text=True
        )
        self.token = json.loads(made.stdout)["token"]
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.program = Program(
            [*command, "run", "--root", str(self.root), "--port", str(port)], port, base / "server.log"
        )
        self.program.wait("/ready")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return json.loads(self.fetch(method, path, body))

    def fetch(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: bytes = answer.read()
        return found

    def count_requests(self) -> int:
        """How many requests of the API it has answered."""
        lines = self.fetch("GET", "/metrics").decode().splitlines()
        counted = [line for line in lines if line.startswith("trainmaster_requests_total") and "/api/" in line]
        return int(sum(float(line.rpartition(" ")[2]) for line in counted))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, contextlib.ExitStack() as stack:
        base = Path(folder)
        database = stack.enter_context(run_server(durable=True)).create_database() if options.postgresql else ""
        os.environ["XDG_CACHE_HOME"], kept = str(base / "cache"), os.environ.get("XDG_CACHE_HOME")
        served = Served(base, *(["--database", database] if database else []))
        with running(served.program):
            found = measure_served(served, base, options)
        if kept is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = kept
        if options.mlflow:
            found["mlflow"] = measure_mlflow(base, options)
        return found


def measure_served(served: Served, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    os.environ["TRAINMASTER_SERVER"], os.environ["TRAINMASTER_TOKEN"] = served.address, served.token
    remote = Workspace.create("bench", show_output=False)
    del os.environ["TRAINMASTER_SERVER"], os.environ["TRAINMASTER_TOKEN"]
    local = Workspace(path=served.root / "workspaces" / "bench")
    source = make_source(base / "project")
    (source / "log.py").write_text(_LOGS)
    found = {
        "submit": measure_submit(served, local, remote, source, options.rounds),
        "metric": measure_metric(remote, source),
    }
    fill(local, _RUNS)
    found["clients"] = measure_clients(served, local, base, options)
    found["file"] = measure_file(served, local, base, options)
    return found


def measure_submit(served: Served, local: Workspace, remote: Workspace, source: Path, rounds: int) -> dict[str, Any]:
    """`submit()` until it returns, over the socket and over HTTP in turns; and how many requests it takes."""
    took: dict[str, list[float]] = {"socket": [], "http": []}
    requests = 0
    for number in range(rounds + 2):
        for name, workspace in (("socket", local), ("http", remote)):
            before = served.count_requests()
            begun = time.monotonic()
            run = Experiment(workspace, "submit").submit(_estimator(source, "train.py", "/dev/null"))
            if number >= 2:
                took[name].append(1e3 * (time.monotonic() - begun))
            if name == "http":
                requests = served.count_requests() - before
            run.wait_for_completion()
    medians = {name: statistics.median(values) for name, values in took.items()}
    return {
        "socket_ms": medians["socket"],
        "http_ms": medians["http"],
        "added_ms": medians["http"] - medians["socket"],
        "requests_of_an_unchanged_submit": requests,
    }


def _estimator(source: Path, script: str, *words: str) -> Estimator:
    return Estimator(
        str(source),
        entry_script=script,
        script_params=dict.fromkeys(words, ""),
        compute_target="local",
        environment_definition=Environment("bench"),
    )


def measure_metric(remote: Workspace, source: Path) -> dict[str, Any]:
    """From `run.log` in the job to the value at a client that follows the run."""
    run = Experiment(remote, "metric").submit(_estimator(source, "log.py"))
    took: list[float] = []
    count = 0
    for _ in remote.backend.follow_run(run.id, ("journals",)):
        values = run.get_metrics("sent").get("sent", [])
        now = time.time()
        values = values if isinstance(values, list) else [values]
        took += [1e3 * (now - value) for value in values[count:]]
        count = len(values)
    return {"median_ms": statistics.median(took), "longest_ms": max(took), "values": count}


def fill(workspace: Workspace, count: int) -> None:
    """Runs without a job, with a metric each: what a team's workspace has."""
    for first in range(0, count, 100):
        with Experiment(workspace, f"past-{first // 500}").start_logging(snapshot_directory=None) as parent:
            children = parent.create_children(99)
        for child in children:
            child.log("loss", 1.0)
            child.complete()


def measure_clients(served: Served, local: Workspace, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Many clients in turn: with pauses as people make them, then without, then the same of bare Starlette."""
    requests = _requests(served, local)
    answers = {each["path"]: served.fetch("GET", each["path"]).decode() for each in requests if each["method"] == "GET"}
    (base / "answers.json").write_text(json.dumps(answers))
    (base / "bare.py").write_text(_BARE)
    port = free_port()
    bare = Program([sys.executable, str(base / "bare.py"), str(port), str(base)], port, base / "bare.log")
    reads = [each for each in requests if each["method"] == "GET"]
    plan = {"host": "127.0.0.1", "clients": options.clients, "headers": {"Authorization": f"Bearer {served.token}"}}
    ours = {**plan, "port": served.program.port}
    with running(bare):
        bare.wait("/")
        before = served.program.memory()
        mixed = _load(base, {**ours, "requests": requests, "seconds": options.seconds, "pause": options.pause})
        after = served.program.memory()
        dispatcher = int(local.backend.connection.call("status")["pid"])
        used = served.program.cpu() + read_cpu(dispatcher)
        full = _load(base, {**ours, "requests": reads, "seconds": 10, "pause": 0})
        used = served.program.cpu() + read_cpu(dispatcher) - used
        bare_used = bare.cpu()
        limit = _load(base, {**plan, "port": port, "requests": reads, "seconds": 10, "pause": 0})
        bare_used = bare.cpu() - bare_used
    return {
        "mixed": mixed,
        "memory_before_mb": before,
        "memory_after_mb": after,
        "per_second": full["per_second"],
        "bare_per_second": limit["per_second"],
        "ratio_to_bare": full["per_second"] / limit["per_second"],
        "cpu_us": 1e6 * used / full["requests"],
        "bare_cpu_us": 1e6 * bare_used / limit["requests"],
        "p99_ms": full["all"]["p99_ms"],
        "bare_p99_ms": limit["all"]["p99_ms"],
    }


def _requests(served: Served, local: Workspace) -> list[dict[str, Any]]:
    """What the clients ask, and how often; each a path that a client of ours uses."""
    top = "/api/v1/workspaces/bench"
    newest = served.ask("GET", f"{top}/runs?limit=1&filter=experiment%20%3D%20metric")["rows"][0]["id"]
    logs = served.ask("GET", f"{top}/runs/{newest}/logs")["logs"]
    log = next(each["name"] for each in logs if each["rank"] == 0)
    submitted = local.get_run(newest)._record
    record = {
        "id": "load_UNIQUE",
        "experiment": "load",
        "status": "Queued",
        "created_at": time.time(),
        "type": submitted.type,
        "target": submitted.target,
        "snapshot_id": submitted.snapshot_id,
        "spec": submitted.spec.replace('"log.py"', '"train.py"'),
    }
    return [
        {"name": "list", "method": "GET", "path": f"{top}/runs?limit=20", "weight": 40},
        {"name": "metrics", "method": "GET", "path": f"{top}/runs/{newest}/metrics", "weight": 30},
        {"name": "logs", "method": "GET", "path": f"{top}/runs/{newest}/logs/{log}?start=0", "weight": 30},
        {
            "name": "submit",
            "method": "POST",
            "path": f"{top}/operations/runs.submit",
            "body": {"run": record, "sources": source_variables(os.environ)},
            "weight": 0.2,
            "unique": True,
        },
    ]


def _load(base: Path, plan: dict[str, Any]) -> dict[str, Any]:
    (base / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.server_load", str(base / "plan.json")],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_file(served: Served, local: Workspace, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One large file of a run over HTTP, against Starlette's own answer with a file; the best of three each."""
    large = base / "large"
    with open(large, "wb") as file:
        for _ in range(options.megabytes):
            file.write(os.urandom(1 << 20))
    with Experiment(local, "file").start_logging(snapshot_directory=None) as run:
        run.upload_file("outputs/large", str(large))
    port = free_port()
    bare = Program([sys.executable, str(base / "bare.py"), str(port), str(base)], port, base / "bare.log")
    ours = f"{served.address}/api/v1/workspaces/bench/runs/{run.id}/files/outputs/large"
    with running(bare):
        bare.wait("/")
        took = {"bare": [], "ours": []}
        for _ in range(3):
            took["bare"].append(_download(f"http://127.0.0.1:{port}/large", {}))
            took["ours"].append(_download(ours, {"Authorization": f"Bearer {served.token}"}))
    best = {name: min(values) for name, values in took.items()}
    return {
        "megabytes": options.megabytes,
        "bare_mb_per_second": options.megabytes / best["bare"],
        "mb_per_second": options.megabytes / best["ours"],
        "ratio": best["bare"] / best["ours"],
    }


def _download(address: str, headers: dict[str, str]) -> float:
    begun = time.monotonic()
    buffer = bytearray(1 << 20)
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
        while answer.readinto(buffer):
            pass
    return time.monotonic() - begun


def measure_mlflow(base: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The same questions to MLflow's own server: a list of runs by many clients, and one logged value."""
    python = environment("mlflow-server", ["mlflow>=3,<4"])
    port = free_port()
    words = ["server", "--backend-store-uri", f"sqlite:///{base}/mlflow.db", "--port", str(port), "--workers", "1"]
    program = Program([str(python), "-m", "mlflow", *words], port, base / "mlflow.log")
    top = f"http://127.0.0.1:{port}/api/2.0/mlflow"

    def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{top}/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    with running(program):
        program.wait("/health")
        experiment = ask("experiments/create", {"name": "bench"})["experiment_id"]
        for _ in range(200):
            run = ask("runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
        took = []
        for number in range(50):
            begun = time.monotonic()
            ask("runs/log-metric", {"run_id": run, "key": "loss", "value": 1.0, "timestamp": 0, "step": number})
            took.append(1e3 * (time.monotonic() - begun))
        listing = {"experiment_ids": [experiment], "max_results": 20}
        plan = {"host": "127.0.0.1", "port": port, "clients": options.clients, "headers": {}, "seconds": 10, "pause": 0}
        one = {"name": "list", "method": "POST", "path": "/api/2.0/mlflow/runs/search", "body": listing, "weight": 1}
        seen = _load(base, {**plan, "requests": [one]})
    return {
        "log_ms": statistics.median(took),
        "list_per_second": seen["per_second"],
        "list_p99_ms": seen["all"].get("p99_ms"),
        "errors": seen["errors"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=60, help="how long the clients ask (the goal is for 600)")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.5, help="of each client between requests, on average")
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--folder", help="where temporary files are written")
    parser.add_argument("--postgresql", action="store_true", help="the server and its workspace on PostgreSQL")
    parser.add_argument("--no-mlflow", dest="mlflow", action="store_false")
    options = parser.parse_args()
    # The memory that threads keep for later would look like a leak.
    threading.stack_size(1 << 20)
    found = measure(options)
    if options.json:
        print(json.dumps(found))
        return
    show(found)


def show(found: dict[str, Any]) -> None:
    submit, metric, clients, file = found["submit"], found["metric"], found["clients"], found["file"]
    mixed = clients["mixed"]
    print(f"submit() over the socket                        {submit['socket_ms']:8.1f} ms")
    print(f"submit() over HTTP                              {submit['http_ms']:8.1f} ms")
    print(f"added                                           {submit['added_ms']:8.1f} ms   (goal: 15)")
    print(f"requests of a submit, snapshot unchanged        {submit['requests_of_an_unchanged_submit']:8d}")
    print(f"a new value at a remote client, median          {metric['median_ms']:8.1f} ms")
    print(f"a new value at a remote client, longest         {metric['longest_ms']:8.1f} ms   (goal: 300)")
    print(f"clients with pauses: requests/s                 {mixed['per_second']:8.0f}")
    print(f"clients with pauses: p99                        {mixed['all']['p99_ms']:8.1f} ms   (goal: 100)")
    for name in ("list", "metrics", "logs", "submit"):
        if "p99_ms" in mixed.get(name, {}):
            print(f"    {name:<10} {mixed[name]['count']:8d} requests, p99         {mixed[name]['p99_ms']:8.1f} ms")
    print(
        f"clients with pauses: errors                     {mixed['errors']:8d}      (goal: 0) {mixed['first_errors']}"
    )
    before, after = clients["memory_before_mb"], clients["memory_after_mb"]
    print(f"memory of the server, before and after          {before:8.0f} {after:5.0f} MB")
    print(f"clients without pauses: requests/s              {clients['per_second']:8.0f}")
    print(f"bare Starlette: requests/s                      {clients['bare_per_second']:8.0f}")
    print(f"ratio                                           {clients['ratio_to_bare']:8.2f}      (goal: 0.5)")
    cpu, bare_cpu = clients["cpu_us"], clients["bare_cpu_us"]
    print(f"processor time per request, and bare            {cpu:8.0f} {bare_cpu:5.0f} us")
    print(f"a file of {file['megabytes']:5d} MB                             {file['mb_per_second']:8.0f} MB/s")
    print(f"bare Starlette                                  {file['bare_mb_per_second']:8.0f} MB/s")
    print(f"ratio                                           {file['ratio']:8.2f}      (goal: 0.8)")
    if "mlflow" in found:
        mlflow = found["mlflow"]
        print(f"MLflow's server: list of runs, requests/s       {mlflow['list_per_second']:8.0f}")
        print(f"MLflow's server: p99                            {mlflow['list_p99_ms'] or 0:8.1f} ms")
        print(f"MLflow's server: one value logged               {mlflow['log_ms']:8.1f} ms")


if __name__ == "__main__":
    main()

"""MLflow's server and ours for benchmarks, each with the same runs in its database."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.postgresql import run_server

from benchmarks.mlflow_rows import FILL_MLFLOW, PAGE, START, analyze, fill
from benchmarks.server import Program, Served, read_cpu, running
from benchmarks.serving import environment, free_port
from trainmaster import Workspace

PACKAGES = ["mlflow==3.17.2", "psycopg2-binary"]
PATIENCE = 1800.0


@dataclass(frozen=True)
class Asked:
    """A server of MLflow's API, filled with runs."""

    port: int
    prefix: str
    token: str
    experiment_id: str
    long_run: str
    """The run with the long history."""
    read_cpu: Callable[[], float]
    """Seconds of processor time that the server and its database have used."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"


@dataclass(frozen=True)
class Database:
    """An empty database of a PostgreSQL server, or none for a file of SQLite."""

    url: str = ""
    processes: tuple[int, ...] = ()


@contextlib.contextmanager
def open_databases(place: str) -> Iterator[Callable[[], Database]]:
    """A function that makes an empty database of this kind."""
    if place == "sqlite":
        yield Database
    else:
        with run_server(durable=True) as server:
            postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
            yield lambda: Database(server.create_database(), (postmaster,))


def sum_cpu(*processes: int) -> float:
    """Of these processes and all that they have started."""
    found = list(processes)
    for process in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    total = 0.0
    for process in found:
        with contextlib.suppress(OSError):
            total += read_cpu(process)
    return total


@contextlib.contextmanager
def start_mlflow(base: Path, database: Database, options: argparse.Namespace) -> Iterator[Asked]:
    """MLflow's server, as its documentation starts it, with one worker."""
    python = environment("mlflow-servers", PACKAGES)
    address = database.url.replace("postgresql://", "postgresql+psycopg2://") or f"sqlite:///{base}/mlflow.db"
    counts = [str(each) for each in (options.runs, options.points, START, PAGE)]
    filled = subprocess.run(
        [str(python), "-c", FILL_MLFLOW, address, str(base), *counts],
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    experiment_id, long_run = filled.stdout.split()[-2:]
    if database.url:
        analyze(database.url)
    port = free_port()
    words = ["server", "--backend-store-uri", address, "--port", str(port), "--workers", "1"]
    variables = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    program = Program([str(python), "-m", "mlflow", *words], port, base / "mlflow.log", **variables)
    with running(program):
        program.wait("/health", PATIENCE)
        yield Asked(port, "", "", experiment_id, long_run, lambda: sum_cpu(program.process.pid, *database.processes))


@contextlib.contextmanager
def start_ours(base: Path, database: Database, options: argparse.Namespace) -> Iterator[Asked]:
    """Our server with one workspace, whose runs are put into its database while no dispatcher uses it."""
    served = Served(base, *(["--database", database.url] if database.url else []))
    with running(served.program):
        served.ask("POST", "/api/v1/workspaces", {"name": "bench"})
        made = served.ask("POST", "/mlflow/bench/api/2.0/mlflow/experiments/create", {"name": "many"})
        workspace = Workspace(path=served.root / "workspaces" / "bench")
        workspace.backend.connection.call("shutdown")
        long_run = fill(served.root / "workspaces" / "bench", database.url, int(made["experiment_id"]), options)
        dispatcher = int(workspace.backend.connection.call("status")["pid"])
        processes = (served.program.process.pid, dispatcher, *database.processes)
        yield Asked(
            served.program.port,
            "/mlflow/bench",
            served.token,
            made["experiment_id"],
            long_run,
            lambda: sum_cpu(*processes),
        )

"""The real MLflow for tests: clients of two releases in environments of their own, and its own server."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import PATIENCE, until
from tests.python_environments import make_environment
from tests.server_process import ServerProcess

RELEASES = ("2.22.5", "3.17.2")
"""The newest of each generation."""
NEWEST = RELEASES[-1]
_ROOT = Path(__file__).parents[1]


def find_python(release: str = NEWEST) -> Path:
    """The Python of an environment with this release of MLflow."""
    return make_environment(f"mlflow-{release}", f"mlflow=={release}")


def find_python_of_user(release: str = NEWEST) -> Path:
    """The Python of an environment with this release of MLflow, and with Trainmaster from this checkout."""
    settings = hashlib.sha256((_ROOT / "pyproject.toml").read_bytes()).hexdigest()[:12]
    # Entry points are read from what was installed: other settings need another environment.
    return make_environment(f"user-{release}-{settings}", f"mlflow=={release}", "--editable", str(_ROOT))


def run_client(
    script: str,
    address: str = "",
    token: str = "",
    release: str = NEWEST,
    variables: Mapping[str, str] | None = None,
    python: Path | None = None,
) -> str:
    """Run a script with `MLFLOW_TRACKING_URI` set, and return what it prints."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")},
        **({"MLFLOW_TRACKING_URI": address} if address else {}),
        **({"MLFLOW_TRACKING_TOKEN": token} if token else {}),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        **(variables or {}),
    }
    done = subprocess.run(
        [str(python or find_python(release)), "-W", "ignore", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        # Importing it takes long on a busy machine.
        timeout=3 * PATIENCE,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def address_of(server: ServerProcess, workspace: str) -> str:
    """The tracking address of a workspace on one of our servers."""
    return f"{server.url}/mlflow/{workspace}"


@contextmanager
def start_mlflow_server(folder: Path, release: str = NEWEST) -> Iterator[str]:
    """A real MLflow server with SQLite and artifacts through the server; gives its address."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts"]
    words += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    # Without its job runners, which are seven more processes, the server starts in a fifth of the time.
    environment = {
        **os.environ,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(
            [str(find_python(release)), "-m", "mlflow", "server", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: _is_up(address, server, folder / "server.log"), 300, "the start of MLflow's server")
        yield address
    finally:
        # The server has workers; all of them are in its session, which is ours.
        os.killpg(server.pid, 15)
        server.wait(PATIENCE)


def _is_up(address: str, server: subprocess.Popen[bytes], log: Path) -> bool:
    assert server.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False

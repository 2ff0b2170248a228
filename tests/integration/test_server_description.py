"""The server keeps to its own OpenAPI description, whatever it is sent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_process import ServerProcess

SECONDS = 600
CHECKS = (
    "not_a_server_error",
    "unsupported_method",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
# They connect to the hosts that they are given.
CONNECTING = "ask_hosts|ask_kubernetes|ask_slurm"
# They delete the workspace, the user and the token of the test.
ENDING = r"^/api/v1/workspaces/\{workspace\}$|/api/v1/users/\{user\}$|/api/v1/tokens/\{token_id\}$"
LEAKS = re.compile(r"Traceback \(|File \"|site-packages", re.IGNORECASE)
"""What no answer may have: the words of the server's code."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    process.call("vision", "experiments.ensure", name="first")
    yield process
    process.end()


def generate_requests(server: ServerProcess, folder: Path, *options: str) -> None:
    """Send requests that schemathesis makes of the description, and check every answer."""
    run = {"id": f"run-{uuid.uuid4().hex}", "experiment": "first", "status": "Running", "created_at": time.time()}
    server.call("vision", "runs.create", runs=[run])
    parameters = {"path.workspace": "vision", "path.run_id": run["id"]}
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in parameters.items()]
    (folder / "schemathesis.toml").write_text("\n".join(["[parameters]", *lines]))
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {server.token}", "--checks", ",".join(CHECKS)]
    command += ["--seed", "7", "--generation-database", "none"]
    command += ["--report-har-path", "exchanges.har", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[max(done.stdout.find(" FAILURES "), 0) :][:5000]
    for entry in json.loads((folder / "exchanges.har").read_text())["log"]["entries"]:
        text = entry["response"]["content"].get("text", "")
        assert not LEAKS.search(text) or entry["request"]["url"].endswith("/openapi.json"), entry
    assert "Traceback" not in server.log()


def test_random_requests_to_every_route(server: ServerProcess, tmp_path: Path) -> None:
    left_out = f"{CONNECTING}|{ENDING}"
    generate_requests(server, tmp_path, "--phases", "fuzzing", "--max-examples", "5", "--exclude-path-regex", left_out)


def test_the_limits_of_every_argument_of_the_nouns(server: ServerProcess, tmp_path: Path) -> None:
    left_out = f"/operations/|{CONNECTING}|{ENDING}"
    generate_requests(server, tmp_path, "--phases", "coverage", "--exclude-path-regex", left_out)


def test_requests_that_end_what_the_caller_may_do(server: ServerProcess, tmp_path: Path) -> None:
    generate_requests(server, tmp_path, "--phases", "coverage", "--include-path-regex", ENDING)

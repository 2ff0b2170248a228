"""A real `trainmaster server` for tests: a process of its own, on a free port."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE, end_workspace

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class ServerProcess:
    """Creates a server in `root` on its first start. `restart` serves the same root again, on the same port."""

    def __init__(
        self, root: Path, *options: str, settings: Mapping[str, Any] | None = None, database: str = ""
    ) -> None:
        self.root = root
        self._options = options
        words = [TRAINMASTER, "server", "init", "--root", str(root), "--json"]
        made = subprocess.run(
            [*words, *(["--database", database] if database else [])], check=True, capture_output=True
        )
        self.token: str = json.loads(made.stdout)["token"]
        if settings:
            file = root / "server.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start the process, and return when it listens."""
        command = [TRAINMASTER, "server", "run", "--root", str(self.root), "--port", str(self.port), *self._options]
        with open(self.root / "server.log", "ab") as log:
            # Below the server's root: dispatchers that it starts use this home as well.
            home = {**os.environ, "TRAINMASTER_HOME": os.environ.get("TRAINMASTER_HOME", str(self.root / "home"))}
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=home)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r"(https?)://.*:(\d+)", line)
        assert found, self.log()
        self.scheme, self.port = found[1], int(found[2])

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def log(self) -> str:
        """What the server wrote to its log."""
        return (self.root / "server.log").read_text()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request, as the administrator unless there is another token; `token=""` sends none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = dict(headers or {})
        token = self.token if token is None else token
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def create_workspace(self, name: str) -> str:
        """Create a workspace, and return the beginning of its paths."""
        answer = self.request("POST", "/api/v1/workspaces", {"name": name})
        assert answer.status == 200, answer
        return f"/api/v1/workspaces/{name}"

    def call(self, workspace: str, operation: str, **arguments: Any) -> Any:
        """The result of an operation."""
        answer = self.request("POST", f"/api/v1/workspaces/{workspace}/operations/{operation}", arguments)
        assert answer.status == 200, answer
        return answer.json()["result"]

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self._wait()

    def stop(self) -> int:
        """End the process as systemd does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def end(self) -> None:
        """Leave nothing behind: neither the server nor its dispatchers."""
        if self.process.poll() is None:
            self.kill()
        for file in (self.root / "workspaces").glob("*/workspace.json"):
            end_workspace(file.parent)

"""Users of a server for tests: one of each role, with tokens, and an active run with the token of its job."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

from tests.server_process import Answer, ServerProcess
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.owner import this_program
from trainmaster.shared.run_tokens import read_served, sign_run

ROLES = ("reader", "contributor", "owner")


@dataclass(frozen=True)
class People:
    """The tokens of users of a server with the workspaces `vision` and `other`."""

    server: ServerProcess
    tokens: dict[str, str]
    """Of `stranger` (no role), `elsewhere` (owner of `other`), `reader`, `contributor`, `owner`, `administrator`, and
    `job` (of the run `run_id` in `vision`)."""
    run_id: str

    def ask(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request as somebody; `nobody` sends no token."""
        token = "" if who == "nobody" else self.tokens[who]
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.request(method, path, body, token=token, headers=named)

    def call(self, who: str, operation: str, workspace: str = "vision", **arguments: Any) -> Answer:
        """Call an operation as somebody."""
        return self.ask(who, "POST", f"/api/v1/workspaces/{workspace}/operations/{operation}", arguments)


def add_people(server: ServerProcess) -> People:
    """Create the workspaces, users and the run."""
    for workspace in ("vision", "other"):
        server.create_workspace(workspace)
    tokens = {"administrator": server.token}
    for name in ("stranger", "elsewhere", *ROLES):
        tokens[name] = add_user(server, name)
    for role in ROLES:
        grant(server, "vision", role, role)
    grant(server, "other", "elsewhere", "owner")
    run_id = create_run(server, "vision")
    tokens["job"] = make_run_token(server, "vision", run_id)
    return People(server, tokens, run_id)


def add_user(server: ServerProcess, name: str, **token: Any) -> str:
    """Add a user, and return a token of the user."""
    assert server.request("POST", "/api/v1/users", {"name": name}).status == 200
    answer = server.request("POST", "/api/v1/tokens", {"user": name, **token})
    assert answer.status == 200, answer
    text: str = answer.json()["token"]
    return text


def grant(server: ServerProcess, workspace: str, user: str, role: str) -> None:
    """Give a user a role."""
    path = f"/api/v1/workspaces/{workspace}/members/{user}"
    assert server.request("PUT", path, {"role": role}).status == 200


def create_run(server: ServerProcess, workspace: str) -> str:
    """An active run without a job; it lives as long as this process."""
    now, run_id = time.time(), str(uuid.uuid4())
    server.call(workspace, "experiments.ensure", name="logged")
    record = {"id": run_id, "experiment": "logged", "status": "Running", "created_at": now, "started_at": now}
    server.call(workspace, "runs.create", runs=[{**record, "type": "run", "properties": this_program()}])
    return run_id


def make_run_token(server: ServerProcess, workspace: str, run_id: str) -> str:
    """The token that the dispatcher gives to the job of a run."""
    served = read_served(WorkspaceFolder(server.root / "workspaces" / workspace))
    assert served is not None and os.stat(server.root / "workspaces" / workspace / "served.json").st_mode & 0o077 == 0
    return sign_run(run_id, served.key)

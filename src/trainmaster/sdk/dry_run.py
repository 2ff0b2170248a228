"""The dry run: what a submit would do now."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from trainmaster.job.errors import ServiceException, from_wire
from trainmaster.sdk.backend.backend import Connection
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec, dump_spec


def plan_run(spec: JobSpec, experiment: str, connection: Connection) -> dict[str, Any]:
    """`{"target", "environment", "processes"}`. Nothing is queued."""
    found: dict[str, Any] = connection.call("runs.plan", experiment=experiment, spec=dump_spec(spec))
    return found


def plan_without_workspace(spec: JobSpec, experiment: str, folder: WorkspaceFolder) -> dict[str, Any]:
    """As `plan_run`, for a workspace that does not exist and is not created.

    It has no dispatcher, so the dispatcher's code runs in a separate process.
    """
    asked = {"experiment": experiment, "spec": dump_spec(spec)}
    command = [sys.executable, "-P", "-m", "trainmaster.dispatcher.runs.dry_run", str(folder.path)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServiceException("the dry run failed", cause=done.stderr[-2000:].strip())
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise from_wire(answer["error"])
    found: dict[str, Any] = answer["result"]
    return found

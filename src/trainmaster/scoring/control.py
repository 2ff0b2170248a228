"""Starts, changes, inspects and stops a service, from any process of its user.

Plan and state are files, and the supervisor reacts to signals: SIGHUP means "read the plan again", SIGTERM "drain and
end". Every function here can be repeated safely.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.agent import durable, jsonfile, process
from trainmaster.job.agent.tree import Tree
from trainmaster.job.errors import WebserviceException, from_wire
from trainmaster.shared.service_plan import VARIABLE, ServiceFiles, ServicePlan, State, read_state, write_plan

TAKEN = 2
"""The exit code of a supervisor if another one is already running."""
_START_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class Seen:
    """The observed state of a service."""

    alive: bool
    """Whether its supervisor runs. If not, and the state is neither failed nor stopped, it was killed: start it."""
    state: State | None


def start(plan: ServicePlan) -> None:
    """Bring the service to the state of the plan: start a supervisor, or signal the running one.

    Returns when the supervisor has the plan and the address is bound; `wait` returns the result. Raises
    WebserviceException if the address is not available.
    """
    folder = Path(plan.folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_plan(plan)
    end = time.monotonic() + _START_SECONDS
    # Try again if another process does the same, or if the supervisor is just ending.
    while not _signal(folder, signal.SIGHUP) and _start_supervisor(folder) == TAKEN:
        if time.monotonic() > end:
            raise WebserviceException(
                "the supervisor of the service does not respond", hint=f"See {ServiceFiles(folder).log}"
            )
        time.sleep(_LOOK_EVERY_SECONDS)


def look(folder: Path) -> Seen:
    """Inspect the service in `folder`."""
    found = supervisor(folder)
    return Seen(found is not None, read_state(folder))


def wait(folder: Path, generation: int, seconds: float) -> State:
    """Wait until the generation answers requests. Raises WebserviceException if it fails or is not ready in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = look(folder)
        state = settle(seen.state, generation)
        if state is not None:
            return state
        if not seen.alive:
            raise WebserviceException(
                f"the service in {folder} has no supervisor", cause="It was killed, or stopped.", hint="Start it again."
            )
        time.sleep(_LOOK_EVERY_SECONDS)
    raise WebserviceException(
        f"the service is not ready after {seconds:g} seconds", hint=f"See {ServiceFiles(folder).log}"
    )


def settle(state: State | None, generation: int) -> State | None:
    """Return the state if the generation answers requests, None while it starts; raise its error if it failed."""
    if state is None or (state.serving >= generation and state.state == "ready"):
        return state
    if state.failed >= generation:
        raise from_wire(dict(state.error))
    return None


def stop(folder: Path) -> bool:
    """Ask the service to finish its current requests and to end. False if it had no supervisor."""
    if _signal(folder, signal.SIGTERM):
        return True
    sweep(folder)
    return False


def kill(folder: Path) -> bool:
    """Kill the service; its replicas end with the supervisor. False if it had no supervisor."""
    killed = _signal(folder, signal.SIGKILL)
    sweep(folder)
    return killed


def sweep(folder: Path) -> None:
    """Kill leftover processes of a service without a supervisor, such as those that its script started."""
    Tree(f"{VARIABLE}={folder}").kill()


def wait_stopped(folder: Path, seconds: float) -> bool:
    """Wait until the supervisor has ended; return whether it ended in time."""
    end = time.monotonic() + seconds
    while supervisor(folder) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_EVERY_SECONDS)
    return True


def write_keys(file: Path, primary: str, secondary: str) -> None:
    """Write new keys, which take effect at once. Only the user can read the file."""
    durable.write(file, json.dumps({"primary": primary, "secondary": secondary}).encode(), mode=0o600)


def _start_supervisor(folder: Path) -> int:
    """Start the supervisor, which detaches itself once it has the address. Returns 0 or TAKEN."""
    command = [sys.executable, "-m", "trainmaster.scoring.supervisor", str(folder)]
    with open(ServiceFiles(folder).log, "ab") as log:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd="/", timeout=_START_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise WebserviceException(
                f"the supervisor of the service did not start within {_START_SECONDS:g} seconds",
                hint=f"Is the machine overloaded? See {ServiceFiles(folder).log}",
            ) from None
    if done.returncode in (0, TAKEN):
        return done.returncode
    try:
        error = from_wire(json.loads(done.stdout))
    except ValueError:
        error = WebserviceException(
            "the supervisor of the service cannot be started", hint=f"See {ServiceFiles(folder).log}"
        )
    raise error


def supervisor(folder: Path) -> process.Process | None:
    """The supervisor of the service, if it is running."""
    try:
        claim = jsonfile.read(str(ServiceFiles(folder).claim))
        if not process.is_alive(claim["pid"], claim["start_time"], claim["boot_id"]):
            return None
        found: process.Process | None = process.look(claim["pid"])
        return found
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _signal(folder: Path, number: int) -> bool:
    found = supervisor(folder)
    return found is not None and bool(process.send(found, number))

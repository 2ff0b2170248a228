"""How a service is started, changed, looked at and stopped, from any process of its user.

The plan is a file, the state is a file, and the supervisor hears signals: SIGHUP "read the plan again", SIGTERM
"drain and end". Every function here may be repeated without harm.
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
"""What the supervisor's program ends with where another supervisor lives already."""
_START_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class Seen:
    """A service as it was seen."""

    alive: bool
    """Whether its supervisor lives. A state other than failed and stopped without one: it was killed; start it."""
    state: State | None


def start(plan: ServicePlan) -> None:
    """Makes the service be as the plan says: a supervisor is started, or the living one is told.

    Returns when the supervisor has the plan and the address is bound; `wait` tells what came of it. Raises
    WebserviceException if the address cannot be had.
    """
    folder = Path(plan.folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_plan(plan)
    end = time.monotonic() + _START_SECONDS
    # Two may do this at once, or one while the supervisor is about to end: then it is tried again.
    while not _signal(folder, signal.SIGHUP) and _start_supervisor(folder) == TAKEN:
        if time.monotonic() > end:
            raise WebserviceException(
                "the service has a supervisor that does not answer", hint=f"See {ServiceFiles(folder).log}"
            )
        time.sleep(_LOOK_EVERY_SECONDS)


def look(folder: Path) -> Seen:
    """What is known of the service in `folder`."""
    found = supervisor(folder)
    return Seen(found is not None, read_state(folder))


def wait(folder: Path, generation: int, seconds: float) -> State:
    """Waits until the generation answers requests. Raises WebserviceException if it never will, or not in time."""
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
    """The state when the generation answers, none while it is on its way; its own error if it never will answer."""
    if state is None or (state.serving >= generation and state.state == "ready"):
        return state
    if state.failed >= generation:
        raise from_wire(dict(state.error))
    return None


def stop(folder: Path) -> bool:
    """Asks the service to answer what it has begun and to end. False if it had no supervisor."""
    if _signal(folder, signal.SIGTERM):
        return True
    sweep(folder)
    return False


def kill(folder: Path) -> bool:
    """Ends the service at once; its replicas end with the supervisor. False if it had none."""
    killed = _signal(folder, signal.SIGKILL)
    sweep(folder)
    return killed


def sweep(folder: Path) -> None:
    """Ends what is left of a service without a supervisor: what its script started, and was not ended with it."""
    Tree(f"{VARIABLE}={folder}").kill()


def wait_stopped(folder: Path, seconds: float) -> bool:
    """Whether the supervisor is gone, after waiting for it so long at most."""
    end = time.monotonic() + seconds
    while supervisor(folder) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_EVERY_SECONDS)
    return True


def write_keys(file: Path, primary: str, secondary: str) -> None:
    """Puts new keys in force at once; nobody but the user may read them."""
    durable.write(file, json.dumps({"primary": primary, "secondary": secondary}).encode(), mode=0o600)


def _start_supervisor(folder: Path) -> int:
    """The program detaches itself; what it says before that is whether it could. 0 or TAKEN."""
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
    """The supervisor of the service, if it lives."""
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

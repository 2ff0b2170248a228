"""The contract between who wants a service and the supervisor that keeps it: `plan.json` in, `state.json` out.

To start a service, write a plan and call `control.start`; `control.look` reads its state. Both are files in the
folder of the service, so a later dispatcher continues where an earlier one ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from trainmaster.job.agent import durable, jsonfile
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

T = TypeVar("T")

VARIABLE = "TRAINMASTER_SERVICE_FOLDER"
"""By this variable every process of a service is known, those that its script started included."""
SERVER = Path(__file__).resolve().parents[1] / "scoring" / "server"
"""The scoring server as it is installed here. It stands alone: copied anywhere, it runs there."""


@dataclass(frozen=True)
class Batching:
    """Requests that wait at the same time go to `run` together, as one list; 1 is off."""

    max_batch_size: int = 1
    max_latency_ms: float = 5.0
    """How long the first request of a batch waits for others at most, in milliseconds."""


@dataclass(frozen=True)
class Limits:
    """The limits of one replica. Beyond them the answer is 413, 504 or 503 with a reason."""

    body_bytes: int = 100 * 1024 * 1024
    seconds: float = 60.0
    """From the last byte of the request to the answer."""
    in_flight: int = 1000
    """Requests being answered or waiting for their turn."""


@dataclass(frozen=True)
class Scoring:
    """What the server itself reads (`server.json`). A package that runs with plain uvicorn has only this."""

    name: str
    code: str
    """The source folder of the scoring script: the first place it imports from."""
    entry_script: str
    """Relative to `code`."""
    model_dir: str = ""
    """AZUREML_MODEL_DIR."""
    keys_file: str = ""
    """A JSON file `{"primary", "secondary"}`; read again when it changes. Empty: anybody may ask."""
    cors_origins: tuple[str, ...] = ()
    """`*` for all; empty for none."""
    batching: Batching = field(default_factory=Batching)
    limits: Limits = field(default_factory=Limits)
    threads: int = 1
    """How many requests (or batches) `run` is given at once. v1: one; more only if the script bears it."""
    description: str = ""
    version: str = "1"
    """What the OpenAPI description calls the service's version."""
    working: str = ""
    """The folder that the script works in; empty for `code`."""

    @property
    def working_folder(self) -> str:
        """The same, never empty."""
        return self.working or self.code


@dataclass(frozen=True)
class ServicePlan:
    """One service as it shall be. A changed plan needs a higher `generation`; the same one again changes nothing."""

    name: str
    folder: str
    """The service's own folder; all files named here without a path lie in it."""
    generation: int
    scoring: Scoring
    python: str
    """Of the model's environment, which has uvicorn (`trainmaster[serve]`)."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """All that the replicas get, except AZUREML_MODEL_DIR and what the server needs."""
    models_root: str = ""
    """Holds `<name>/<version>/...`; the script finds it as `azureml-models` in its working folder."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: one is chosen the first time, and kept."""
    replicas: int = 1
    drain_seconds: float = 30.0
    """How long an old replica may take to finish its requests."""
    server: str = str(SERVER)
    """The folder of the scoring server; each generation gets a copy."""
    version: Literal[1] = 1


StateName = Literal["starting", "ready", "unhealthy", "failed", "stopping", "stopped"]


@dataclass(frozen=True)
class Replica:
    """One process that answers requests."""

    pid: int
    generation: int
    state: Literal["starting", "ready", "draining"]
    restarts: int = 0
    """How often this place had to be filled again."""


@dataclass(frozen=True)
class State:
    """What the supervisor says of its service, written whole at every change."""

    state: StateName
    """starting: no replica was ready yet. ready: requests are answered. unhealthy: all replicas died, new ones are
    tried. failed: the first generation never got ready, the supervisor has ended. stopped: ended as asked."""
    host: str
    port: int
    serving: int = 0
    """The generation that answers; 0: none."""
    wanted: int = 0
    """The generation of the plan that was read last; it is settled when it is `serving`, or `failed`."""
    failed: int = 0
    """The newest generation that failed to start; `error` says why. The previous one keeps serving."""
    error: Mapping[str, str] = field(default_factory=dict)
    """As `AzureMLException.to_wire` has it; the cause is the traceback of the script where it was that."""
    replicas: tuple[Replica, ...] = ()
    warnings: tuple[str, ...] = ()
    """For people: a model file that changed on disk."""
    changed_at: float = 0.0
    version: Literal[1] = 1


@dataclass(frozen=True)
class ServiceFiles:
    """What lies in the folder of a service."""

    path: Path

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def address(self) -> Path:
        """Host and port: kept, so that a service comes back where it was."""
        return self.path / "address.json"

    @property
    def lock(self) -> Path:
        """Held (`flock`) by the one supervisor."""
        return self.path / "supervisor.lock"

    @property
    def claim(self) -> Path:
        """Which process the supervisor is: its id, start time and boot."""
        return self.path / "supervisor.json"

    @property
    def log(self) -> Path:
        return self.path / "service.log"

    @property
    def numbers(self) -> Path:
        """The replicas' counters, shared memory."""
        return self.path / "numbers"

    def server(self, generation: int) -> Path:
        """The server that the replicas of a generation run: a copy, so that an upgrade does not change it."""
        return self.path / f"server-{generation}"

    def settings(self, generation: int) -> Path:
        """What they read."""
        return self.path / f"server-{generation}.json"

    def models(self, generation: int) -> Path:
        """The model files of a generation as they were when it was first started."""
        return self.path / f"models-{generation}.json"


def write_plan(plan: ServicePlan) -> None:
    """Puts the plan into its folder, whole or not at all. Several may do so at once, each under its own name."""
    place = ServiceFiles(Path(plan.folder)).plan
    durable.write(place, jsonfile.dumps(to_plain(plan)).encode("ascii"))


def read_plan(folder: Path) -> ServicePlan:
    """The plan in `folder`. Raises WebserviceException if there is none, or none that can be used."""
    return _read(ServicePlan, ServiceFiles(folder).plan)


def read_state(folder: Path) -> State | None:
    """What the supervisor wrote last, whether it lives or not; None if it never wrote."""
    place = ServiceFiles(folder).state
    return _read(State, place) if place.exists() else None


def _read(kind: type[T], place: Path) -> T:
    try:
        return from_plain(kind, json.loads(place.read_bytes()))
    except (OSError, ValueError, PlainDataError) as error:
        raise WebserviceException(
            f"{place.name} of the service {place.parent.name} cannot be read", cause=error, hint="Deploy it again."
        ) from None

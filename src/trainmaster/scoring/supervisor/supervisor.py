"""Supervises one service: starts and replaces generations, and restarts replicas that die."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainmaster.job.agent import jsonfile, spawn
from trainmaster.job.agent.tail import tail
from trainmaster.job.errors import WebserviceException
from trainmaster.scoring.control import sweep
from trainmaster.scoring.server import numbers
from trainmaster.scoring.supervisor.models import Models
from trainmaster.scoring.supervisor.replica import ReplicaProcess
from trainmaster.scoring.supervisor.signals import Signals
from trainmaster.scoring.supervisor.unavailable import refuse_waiting
from trainmaster.shared.retry import pause_after
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.service_plan import Replica, ServiceFiles, ServicePlan, State, StateName, read_plan

_TICK_SECONDS = 1.0
_MODELS_EVERY_SECONDS = 2.0
# How often to check whether replicas of the previous generation still accept connections.
_DOORS_SECONDS = 0.01
# Added to the time limit of a request: after that a replica is stuck, not slow.
_STUCK_SECONDS = float(os.environ.get("TRAINMASTER_STUCK_SECONDS", 30.0))
# Extra time for a replica after its own limit for draining.
_LATE_SECONDS = 5.0
# After serving this long, a replica's death counts as its first again.
_SETTLED_SECONDS = 60.0
# The shortest and the longest pause before a replica is restarted; there is none after its first death.
_PAUSES = (0.5, 30.0)
# How long clients wait for the next replica before they get an error.
_PATIENCE_SECONDS = 3.0
_LOG_BYTES = 64 * 1024 * 1024


@dataclass
class Place:
    """One slot of a generation, which holds a replica."""

    replica: ReplicaProcess | None = None
    deaths: int = 0
    """Consecutive deaths."""
    restarts: int = 0
    start_at: float = 0.0


@dataclass
class Generation:
    """One plan and its replicas."""

    plan: ServicePlan
    models: Models
    places: list[Place] = field(default_factory=list)

    @property
    def replicas(self) -> list[ReplicaProcess]:
        return [place.replica for place in self.places if place.replica is not None]

    @property
    def ready(self) -> int:
        return sum(replica.state == "ready" for replica in self.replicas)


class Supervisor:
    """Runs in its own process, in one thread; every event wakes `run`."""

    def __init__(self, plan: ServicePlan, listening: socket.socket, signals: Signals) -> None:
        self._files = ServiceFiles(Path(plan.folder))
        self._listening = listening
        self._host, self._port = plan.host, listening.getsockname()[1]
        self._signals = signals
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals.reading, selectors.EVENT_READ)
        self._numbers = numbers.Numbers(str(self._files.numbers))
        self._current: Generation | None = None
        self._coming: Generation | None = None
        self._before: Generation | None = None
        """The replaced generation, as long as one of its replicas may accept connections."""
        self._replaced_at = 0.0
        self._leaving: list[ReplicaProcess] = []
        self._wanted = plan.generation
        self._failed = 0
        self._error: dict[str, str] = {}
        self._warnings: tuple[str, ...] = ()
        self._stopping = False
        self._ended: StateName | None = None
        self._written: State | None = None
        self._models_at = 0.0
        self._somebody_at = 0.0
        self._first = plan

    def run(self) -> int:
        """Supervise until the service is stopped (0) or its first generation has failed (1)."""
        self._say(f"the supervisor of {self._first.name} listens at {self._host}:{self._port}")
        self._begin(self._first)
        while self._ended is None:
            self._write_state()
            self._wait()
            self._receive()
            self._reap()
            self._handle_signals()
            self._step()
        sweep(self._files.path)
        self._write_state()
        self._say(f"the service has {self._ended}" if self._ended == "failed" else "the service was stopped")
        return 1 if self._ended == "failed" else 0

    # Events

    def _wait(self) -> None:
        now = time.monotonic()
        current = self._current.places if self._current else []
        times = [place.start_at for place in current if place.replica is None]
        due = min([now + (_TICK_SECONDS if self._before is None else _DOORS_SECONDS), *times])
        for key, _ in self._selector.select(max(0.0, due - now)):
            if key.fileobj == self._signals.reading:
                self._signals.clear()

    def _receive(self) -> None:
        for replica in self._all():
            message = replica.receive()
            if message == "ready":
                replica.state = "ready"
                replica.ready_at = time.monotonic()
                if self._coming is None or replica not in self._coming.replicas:
                    replica.send(b"o")
                    self._error = self._error if self._failed else {}
            elif message == "gone":
                self._unwatch(replica)

    def _reap(self) -> None:
        """Reap all processes that have ended."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # Kill what its script started. Until the replica is reaped, its process group id is valid.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(ended.si_pid, signal.SIGKILL)
            _, status = os.waitpid(ended.si_pid, 0)
            for replica in self._all():
                if replica.pid == ended.si_pid:
                    self._handle_end(replica, os.waitstatus_to_exitcode(status))

    def _handle_end(self, replica: ReplicaProcess, code: int) -> None:
        while replica.error is None and replica.receive() not in ("error", "gone", None):
            continue  # its last message may still arrive
        self._unwatch(replica)
        replica.channel.close()
        self._numbers.clear(replica.slot)
        if replica in self._leaving:
            self._leaving.remove(replica)
            if not any(each.generation == replica.generation for each in self._all()) and not self._stopping:
                _tidy(self._files, replica.generation)
            return
        error = replica.error or self._silent_end(replica, code)
        if self._coming is not None and replica in self._coming.replicas:
            self._vacate(self._coming, replica)
            self._give_up(self._coming, error)
        elif self._current is not None:
            self._restart_later(self._current, replica, code, error)

    def _restart_later(self, generation: Generation, replica: ReplicaProcess, code: int, error: dict[str, str]) -> None:
        place = self._vacate(generation, replica)
        now = time.monotonic()
        lasted = replica.state == "ready" and now - replica.ready_at > _SETTLED_SECONDS
        place.deaths = 1 if lasted else place.deaths + 1
        place.start_at = now + pause_after(place.deaths - 1, *_PAUSES)
        if replica.state == "starting":
            self._error = _wire(error)
        self._say(f"a replica (process {replica.pid}) ended with {_how(code)}; starting another one")

    def _handle_signals(self) -> None:
        if self._signals.stops and not self._stopping:
            self._stop()
        elif self._signals.stops > 1:
            for replica in self._all():
                replica.kill()
        if self._signals.plans and not self._stopping:
            self._signals.plans = 0
            self._read_plan()

    def _step(self) -> None:
        """Do what is due now."""
        now = time.monotonic()
        for replica in self._leaving:
            if now > replica.deadline:
                replica.kill()
        if self._stopping:
            if not self._all():
                self._ended = "stopped"
            return
        if not self._files.path.exists():
            self._say("the folder of the service was removed: stopping")
            self._stop()
            return
        if self._coming is not None:
            self._bring_up(self._coming)
        if self._current is not None:
            self._keep_up(self._current, now)
            self._answer_without_replicas(self._current, now)
        if now >= self._models_at:
            self._models_at = now + _MODELS_EVERY_SECONDS
            self._look_at_models()
            self._trim_log()

    # Generations

    def _read_plan(self) -> None:
        try:
            plan = read_plan(self._files.path)
        except WebserviceException as error:
            self._say(error.message)
            return
        if plan.generation <= self._wanted:
            return
        self._wanted = plan.generation
        if self._coming is not None:
            self._drop(self._coming)
        self._begin(plan)

    def _begin(self, plan: ServicePlan) -> None:
        """Start only the first replica of a generation: if it fails, all would fail."""
        if plan.port not in (0, self._port) or plan.host != self._host:
            self._refuse(plan, "the address of a service cannot be changed", hint="Delete it and deploy it again.")
            return
        try:
            _lay_out(plan, self._files)
            models = Models(plan.models_root or plan.scoring.model_dir, self._files.models(plan.generation))
        except OSError as error:
            self._refuse(plan, "the folder of the service cannot be used", cause=str(error))
            return
        changed = models.list_changed()
        if changed:
            # The service was deployed with other contents. Only a new deployment may use these.
            hint = "Register the new contents as a new version, or deploy the service again."
            self._refuse(
                plan, f"the model file {changed[0]} has changed on disk since the service was deployed", hint=hint
            )
            return
        self._coming = Generation(plan, models, [Place() for _ in range(plan.replicas)])
        self._bring_up(self._coming)

    def _bring_up(self, generation: Generation) -> None:
        """Start the remaining replicas of a generation; once all are ready, replace the previous generation."""
        if not generation.replicas:
            self._start(generation, generation.places[0])
        elif generation.ready == len(generation.places):
            self._replace(generation)
        elif generation.ready:
            for place in generation.places:
                if place.replica is None and self._coming is generation:
                    self._start(generation, place)

    def _replace(self, generation: Generation) -> None:
        for replica in generation.replicas:
            replica.send(b"o")
        before, self._current, self._coming = self._current, generation, None
        self._before, self._replaced_at = before, time.monotonic()
        self._failed, self._error, self._warnings = 0, {}, ()
        if before is not None:
            self._drain(before, b"d")
        self._say(f"generation {generation.plan.generation} serves with {len(generation.places)} replica(s)")

    def _keep_up(self, generation: Generation, now: float) -> None:
        for place in generation.places:
            if place.replica is None and now >= place.start_at and not self._models_changed(generation, place, now):
                place.restarts += 1
                self._start(generation, place)
        limit = generation.plan.scoring.limits.seconds + _STUCK_SECONDS
        for replica in generation.replicas:
            beat = self._numbers.slot(replica.slot)[numbers.HEARTBEAT]
            if replica.state == "ready" and now - max(beat, replica.ready_at) > limit:
                self._say(f"a replica (process {replica.pid}) is stuck; killing it")
                replica.kill()

    def _answer_without_replicas(self, generation: Generation, now: float) -> None:
        if generation.replicas:
            self._somebody_at = now
        elif now - self._somebody_at > _PATIENCE_SECONDS:
            refuse_waiting(self._listening)

    def _models_changed(self, generation: Generation, place: Place, now: float) -> bool:
        """Whether a new replica would load other model files than its siblings; if so, delay its start."""
        if not self._look_at_models(generation):
            return False
        place.start_at = now + _MODELS_EVERY_SECONDS
        return True

    def _give_up(self, generation: Generation, error: dict[str, str]) -> None:
        """Give up a generation that cannot be started; the previous one keeps serving."""
        self._drop(generation)
        self._refuse(generation.plan, **error)

    def _refuse(self, plan: ServicePlan, headline: str, cause: str = "", hint: str = "") -> None:
        self._failed = plan.generation
        self._error = _wire({"headline": headline, "cause": cause, "hint": hint})
        self._coming = None
        self._say(f"generation {plan.generation} cannot be started: {headline}")
        if self._current is None:
            self._ended = "failed"

    def _drop(self, generation: Generation) -> None:
        self._coming = None
        for replica in generation.replicas:
            replica.kill()
            self._leaving.append(replica)

    def _drain(self, generation: Generation, command: bytes) -> None:
        for replica in generation.replicas:
            replica.send(command)
            replica.state = "draining"
            replica.deadline = time.monotonic() + generation.plan.drain_seconds + _LATE_SECONDS
            self._leaving.append(replica)

    def _stop(self) -> None:
        self._stopping = True
        # New connections are refused from now on; existing ones still get their answers.
        self._listening.shutdown(socket.SHUT_RD)
        for replica in self._leaving:
            replica.send(b"s")
        if self._coming is not None:
            self._drop(self._coming)
        if self._current is not None:
            self._drain(self._current, b"s")
            self._current = None

    # Replicas

    def _start(self, generation: Generation, place: Place) -> None:
        used = {replica.slot for replica in self._all()}
        slot = next(number for number in range(numbers.SLOTS) if number not in used)
        self._numbers.clear(slot)
        try:
            place.replica = ReplicaProcess(generation.plan, self._files, slot, self._listening.fileno())
        except spawn.StartError as error:
            place.deaths += 1
            place.start_at = time.monotonic() + pause_after(place.deaths - 1, *_PAUSES)
            problem = {"headline": error.headline, "cause": error.cause, "hint": error.hint}
            if generation is self._coming:
                self._give_up(generation, problem)
            else:
                self._error = _wire(problem)
            return
        self._selector.register(place.replica.channel, selectors.EVENT_READ)

    def _vacate(self, generation: Generation, replica: ReplicaProcess) -> Place:
        place = next(place for place in generation.places if place.replica is replica)
        place.replica = None
        return place

    def _all(self) -> list[ReplicaProcess]:
        generations = [generation for generation in (self._current, self._coming) if generation is not None]
        serving = [replica for generation in generations for replica in generation.replicas]
        return [*serving, *(replica for replica in self._leaving if replica not in serving)]

    def _unwatch(self, replica: ReplicaProcess) -> None:
        if replica.channel.fileno() in self._selector.get_map():
            self._selector.unregister(replica.channel)

    def _silent_end(self, replica: ReplicaProcess, code: int) -> dict[str, str]:
        return {
            "headline": f"a replica of the service ended with {_how(code)} without an error message",
            "cause": tail(str(self._files.log)),
            "hint": "Its last lines are above. If the system killed it, there was not enough memory.",
        }

    # State and log

    def _look_at_models(self, generation: Generation | None = None) -> bool:
        generation = generation or self._current
        if generation is None:
            return False
        changed = generation.models.list_changed()
        warnings = tuple(f"the model file {name} has changed on disk" for name in changed)
        if warnings != self._warnings:
            self._warnings = warnings
            for warning in warnings:
                self._say(warning + "; running replicas keep the old contents, and no new replica is started")
        return bool(changed)

    def _write_state(self) -> None:
        state = self._state()
        if self._written is not None and replace(state, changed_at=self._written.changed_at) == self._written:
            return
        try:
            jsonfile.write(str(self._files.state), to_plain(state))
        except OSError as error:
            # A full disk must not end the service; the next iteration tries again.
            self._say(f"the state cannot be written: {error}")
            return
        self._written = state

    def _state(self) -> State:
        return State(
            state=self._name(),
            host=self._host,
            port=self._port,
            serving=self._serving(),
            wanted=self._wanted,
            failed=self._failed,
            error=dict(self._error),
            replicas=tuple(self._describe_replica(replica) for replica in self._all()),
            warnings=self._warnings,
            changed_at=time.time(),
        )

    def _serving(self) -> int:
        """The generation that answers new connections. Replicas of the previous one accept some until they drain.

        A replica that its script blocks is ignored after a while.
        """
        late = time.monotonic() - self._replaced_at > _LATE_SECONDS
        if late or not any(self._numbers.slot(each.slot)[numbers.READY] for each in self._leaving):
            self._before = None
        generation = self._before or self._current
        return generation.plan.generation if generation else 0

    def _name(self) -> StateName:
        if self._ended is not None:
            return self._ended
        if self._stopping:
            return "stopping"
        if self._current is None:
            return "starting"
        return "ready" if self._current.ready else "unhealthy"

    def _describe_replica(self, replica: ReplicaProcess) -> Replica:
        generations = (self._current, self._coming)
        places = [place for generation in generations if generation for place in generation.places]
        restarts = next((place.restarts for place in places if place.replica is replica), 0)
        return Replica(replica.pid, replica.generation, replica.state, restarts)

    def _say(self, text: str) -> None:
        now = time.time()
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{moment}.{int(now % 1 * 1000):03d}Z supervisor | {text}\n")
            sys.stderr.flush()

    def _trim_log(self) -> None:
        """Keep one copy of a log that is too large, and truncate it. Replicas append, so truncating is safe."""
        try:
            if self._files.log.stat().st_size > _LOG_BYTES:
                shutil.copyfile(self._files.log, self._files.log.with_name(self._files.log.name + ".1"))
                os.truncate(self._files.log, 0)
        except OSError as error:
            self._say(f"the log cannot be truncated: {error}")


def _lay_out(plan: ServicePlan, files: ServiceFiles) -> None:
    """Prepare the files of a plan's replicas: the server, its settings, and the models where v1 had them."""
    server = files.server(plan.generation)
    if not server.exists():
        making = server.with_name(server.name + ".part")
        shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(plan.server, making, ignore=shutil.ignore_patterns("__pycache__"))
        making.rename(server)
    jsonfile.write(str(files.settings(plan.generation)), to_plain(plan.scoring))
    place = Path(plan.scoring.working_folder, "azureml-models")
    if plan.models_root and not os.path.lexists(place):
        place.symlink_to(plan.models_root)


def _tidy(files: ServiceFiles, generation: int) -> None:
    """Remove the files of a generation that has ended."""
    for path in (files.server(generation), files.settings(generation), files.models(generation)):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _wire(error: dict[str, str]) -> dict[str, str]:
    return {"type": WebserviceException.__name__, **error}


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

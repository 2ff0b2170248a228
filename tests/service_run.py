"""Scoring services in tests: a real supervisor, real replicas, real requests."""

from __future__ import annotations

import http.client
import json
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE
from trainmaster.scoring import control
from trainmaster.shared.service_plan import Scoring, ServiceFiles, ServicePlan, State

SECONDS = PATIENCE


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service:
    """One service in a folder of its own, in the environment of the tests."""

    def __init__(self, folder: Path, script: str, **settings: Any) -> None:
        self.folder = folder / "service"
        self.code = folder / "code-1"
        self.code.mkdir(parents=True)
        self.write(script)
        plan_only = {name: settings.pop(name) for name in ServicePlan.__dataclass_fields__ if name in settings}
        scoring = Scoring(name="test", code=str(self.code), entry_script="score.py", **settings)
        variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        self.plan = ServicePlan(
            "test", str(self.folder), 1, scoring, **{"python": sys.executable, "variables": variables, **plan_only}
        )

    def write(self, script: str) -> None:
        (self.code / "score.py").write_text(textwrap.dedent(script))

    def start(self) -> Service:
        control.start(self.plan)
        self.wait()
        return self

    def wait(self) -> State:
        return control.wait(self.folder, self.plan.generation, SECONDS)

    def update(self, script: str, **changes: Any) -> None:
        """The next generation, in a folder of its own; does not wait for it."""
        number = self.plan.generation + 1
        self.code = self.code.with_name(f"code-{number}")
        self.code.mkdir()
        self.write(script)
        scoring = replace(self.plan.scoring, code=str(self.code))
        self.plan = replace(self.plan, generation=number, scoring=scoring, **changes)
        control.start(self.plan)

    @property
    def state(self) -> State:
        seen = control.look(self.folder).state
        assert seen is not None
        return seen

    @property
    def port(self) -> int:
        return self.state.port

    @property
    def log(self) -> str:
        return ServiceFiles(self.folder).log.read_text()

    def ask(self, path: str = "/score", body: Any = None, method: str = "", **headers: str) -> Answer:
        """One request on a connection of its own."""
        with Connection(self.port) as connection:
            return connection.ask(path, body, method, **headers)

    def stop(self) -> None:
        control.stop(self.folder)
        if not control.wait_stopped(self.folder, SECONDS):
            control.kill(self.folder)
            raise AssertionError("the service did not stop:\n" + self.log)


class Connection:
    """A connection that stays open, as those of most clients do."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def ask(self, path: str = "/score", body: Any = None, method: str = "", **headers: str) -> Answer:
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method or ("GET" if body is None else "POST"), path, body, named)
        answer = self._connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())


@dataclass
class Load:
    """Clients that ask without pause; each number gets itself back, or it is `wrong`."""

    port: int
    clients: int = 4
    expect: Callable[[int, Any], bool] = lambda number, answer: answer == number
    answered: int = 0
    failed: list[str] = field(default_factory=list)
    wrong: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(SECONDS)

    def wait_for(self, more: int) -> None:
        """Until so many more have been answered."""
        target, end = self.answered + more, time.monotonic() + SECONDS
        while self.answered < target:
            assert time.monotonic() < end, f"only {self.answered} of {target} answers; {self.failed[-3:]}"
            time.sleep(0.01)

    def _ask(self, client: int) -> None:
        number = client * 1_000_000
        while not self._stop.is_set():
            with Connection(self.port) as connection:
                number = self._ask_on(connection, number)

    def _ask_on(self, connection: Connection, number: int) -> int:
        """Asks until the connection fails; the last number."""
        while not self._stop.is_set():
            number += 1
            try:
                answer = connection.ask(body=number)
            except (OSError, http.client.HTTPException) as error:
                self._note(self.failed, repr(error))
                return number
            if answer.status != 200:
                self._note(self.failed, f"{answer.status} {answer.body!r}")
            elif not self.expect(number, answer.json):
                self._note(self.wrong, (number, answer.json))
            else:
                with self._lock:
                    self.answered += 1
                    self.seen.append(answer.json)
        return number

    def _note(self, where: list[Any], what: Any) -> None:
        with self._lock:
            where.append(what)


def wait_until(condition: Callable[[], Any], what: str = "") -> Any:
    """What the condition gives once it is true."""
    end = time.monotonic() + SECONDS
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, what or "it never came"
        time.sleep(0.02)

"""A real MLflow server and one of ours, for tests that send the same calls to both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mlflow_releases import address_of, start_mlflow_server
from tests.mlflow_twin import Line, Pair, Twin
from tests.server_process import ServerProcess

API = "/api/2.0/mlflow"
_WORKSPACE = "team"


@dataclass(frozen=True)
class Servers:
    """The addresses of both."""

    ours: str
    theirs: str
    token: str


@contextmanager
def start_both(folder: Path) -> Iterator[Servers]:
    """Start both servers with empty stores."""
    ours = ServerProcess(folder / "root")
    try:
        ours.create_workspace(_WORKSPACE)
        with start_mlflow_server(folder / "mlflow") as theirs:
            yield Servers(address_of(ours, _WORKSPACE), theirs, ours.token)
    finally:
        ours.end()


@contextmanager
def compare(servers: Servers) -> Iterator[Twin]:
    """Both servers as one. Fails at the end if an answer was different."""
    twin = Twin(Line(servers.ours, servers.token), Line(servers.theirs))
    try:
        yield twin
    finally:
        twin.close()
    shown = [*twin.differences, *(f"in other words: {each}" for each in twin.wordings)]
    assert not shown, f"{len(shown)} differences:\n" + "\n".join(shown)


def create_run(twin: Twin, experiment: Pair, name: str = "one", **more: Any) -> Pair:
    """A new run: what both servers say of it."""
    made = twin.post("runs/create", experiment_id=experiment, start_time=1, user_id="ann", run_name=name, **more)
    return made["run"]["info"]


def post_all(twin: Twin, path: str, calls: Iterable[Mapping[str, Any]], **usual: Any) -> None:
    """Send all calls to one path, each with the usual arguments unless it has its own."""
    for call in calls:
        twin.post(path, **{**usual, **call})


def send_all(twin: Twin, method: str, path: str, calls: Iterable[Mapping[str, Any]], **usual: Any) -> None:
    """The same with any method."""
    for call in calls:
        twin.send(method, f"{API}/{path}", {**usual, **call})


def ask_differently(twin: Twin, method: str, path: str | Pair, arguments: Any) -> Pair:
    """Both answers to a call that is answered differently on purpose."""
    counts = len(twin.differences), len(twin.wordings)
    answers = twin.send(method, path, arguments)
    del twin.differences[counts[0] :], twin.wordings[counts[1] :]
    return answers


def join(pair: Pair, text: str, *more: Pair) -> Pair:
    """A text with the values of each server: `{0}` is the first of them."""
    return Pair(
        text.format(pair.ours, *(each.ours for each in more)), text.format(pair.theirs, *(each.theirs for each in more))
    )

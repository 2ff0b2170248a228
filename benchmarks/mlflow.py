"""MLflow's server and ours, asked the same over MLflow's REST API: logging, searching, reading a long history.

    python -m benchmarks.mlflow [--json] [--runs 100000] [--points 1000000] [--only sqlite,postgresql] [--no-clients]
        [--patience 600]

Both servers run on this machine, have the same runs, and are asked the same in turn, each over one connection that
stays open; before that, a real client of MLflow asks each of them. Runs and points are put into the databases by SQL,
because MLflow's API would take hours. MLflow is installed once under ~/.cache.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.mlflow_client import run_client
from benchmarks.mlflow_rows import START
from benchmarks.mlflow_servers import Asked, open_databases, start_mlflow, start_ours
from trainmaster.dispatcher.mlflow.offsets import write_offset

NAMES = (
    "log_metric",
    "log_batch of 1,000",
    "search_runs, newest 100",
    "get_metric_history, one page of it",
    "get_metric_history, whole",
    # The last one, and ours is asked first: MLflow's server goes on with it after the client has given up.
    "search_runs, sorted by a metric",
)
_BATCH = 1000
_CLIENT_PAGE = 25_000
_ROUNDS = 5


class Line:
    """One connection to a server, which stays open."""

    def __init__(self, asked: Asked, patience: float) -> None:
        self._asked = asked
        self._connection = http.client.HTTPConnection("127.0.0.1", asked.port, timeout=patience)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return json.loads(self._send("POST", path, json.dumps(body).encode()))

    def get(self, path: str, **query: Any) -> bytes:
        return self._send("GET", f"{path}?{urlencode(query)}", None)

    def close(self) -> None:
        """End the connection. The next request opens it again."""
        self._connection.close()

    def _send(self, method: str, path: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._asked.token:
            headers["Authorization"] = f"Bearer {self._asked.token}"
        try:
            self._connection.request(method, f"{self._asked.prefix}/api/2.0/mlflow/{path}", body, headers)
            answer = self._connection.getresponse()
            found = answer.read()
        except TimeoutError:
            self.close()
            raise
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {found[:500]!r}")
        return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds by database, server and question."""
    found: dict[str, Any] = {"runs": options.runs, "points": options.points}
    for place in options.only.split(","):
        with contextlib.ExitStack() as stack:
            base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
            make_database = stack.enter_context(open_databases(place))
            asked: dict[str, Asked] = {}
            for name, start in (("trainmaster", start_ours), ("mlflow", start_mlflow)):
                (base / name).mkdir()
                asked[name] = stack.enter_context(start(base / name, make_database(), options))
            found[place] = {
                f"{name} with a client": run_client(each) for name, each in asked.items() if options.clients
            }
            found[place] |= ask_all(asked, options)
    return found


# The questions


def ask_all(servers: Mapping[str, Asked], options: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Ask the servers in turn, so that what else the machine does slows down all of them."""
    lines = {name: Line(asked, options.patience) for name, asked in servers.items()}
    runs = {name: _create_run(lines[name], asked) for name, asked in servers.items()}
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in servers}
    for question, times, ask in _list_questions(options):
        clocks = {name: Clock(asked.read_cpu, options.patience) for name, asked in servers.items()}
        for part in range(min(times, _ROUNDS)):
            for name, asked in servers.items():
                call = partial(ask, lines[name], asked, runs[name])
                if part == 0 and times > 1:
                    # The first one does not count.
                    clocks[name].warm_up(lambda call=call: call(0))
                clocks[name].measure([partial(call, number) for number in range(1 + part, 1 + times, _ROUNDS)])
                # While the other server is asked, this one would end it.
                lines[name].close()
        for name, clock in clocks.items():
            found[name][question] = clock.summarize()
            print(name, question, found[name][question], file=sys.stderr, flush=True)
    return found


Ask = Callable[[Line, Asked, str, int], None]


def _list_questions(options: argparse.Namespace) -> Iterator[tuple[str, int, Ask]]:
    """Name, how many times, and what is asked."""
    asks: tuple[tuple[int, Ask], ...] = (
        (options.calls, lambda line, _, run_id, number: _log_metric(line, run_id, number)),
        (options.batches, lambda line, _, run_id, number: _log_batch(line, run_id, number)),
        (options.searches, lambda line, asked, *_: _search(line, asked, "attributes.start_time DESC")),
        (3 * options.histories, lambda line, asked, *_: _read_page(line, asked, options.points)),
        (options.histories, lambda line, asked, *_: _read_whole(line, asked, options.points)),
        (options.searches, lambda line, asked, *_: _search(line, asked, "metrics.loss ASC")),
    )
    for name, (times, ask) in zip(NAMES, asks, strict=True):
        yield name, times, ask


def _create_run(line: Line, asked: Asked) -> str:
    found: str = line.post("runs/create", {"experiment_id": asked.experiment_id})["run"]["info"]["run_id"]
    return found


class Clock:
    """Measures the calls of one question to one server. After one that took longer than patience, there are no more."""

    def __init__(self, read_cpu: Callable[[], float], patience: float) -> None:
        self._read_cpu = read_cpu
        self._patience = patience
        self._taken: list[float] = []
        self._used = 0.0
        self._is_given_up = False

    def warm_up(self, call: Callable[[], None]) -> None:
        """A call that is not measured."""
        try:
            call()
        except TimeoutError:
            self._is_given_up = True

    def measure(self, calls: Sequence[Callable[[], None]]) -> None:
        """Measure calls."""
        before = self._read_cpu()
        for call in calls:
            if self._is_given_up:
                return
            begun = time.perf_counter()
            self.warm_up(call)
            self._taken.append(1e3 * (time.perf_counter() - begun))
        # What is still read into the database belongs to it, too.
        time.sleep(0.5)
        self._used += 1e3 * (self._read_cpu() - before)

    def summarize(self) -> dict[str, float]:
        """The median of the milliseconds, and the mean of those of the processor. Infinite if it was given up."""
        if self._is_given_up:
            return {"ms": math.inf, "cpu_ms": math.inf, "patience_ms": 1e3 * self._patience}
        return {"ms": statistics.median(self._taken), "cpu_ms": self._used / len(self._taken)}


def _log_metric(line: Line, run_id: str, number: int) -> None:
    body = {"run_id": run_id, "key": "one", "value": number / 7, "timestamp": START + number, "step": number}
    line.post("runs/log-metric", body)


def _log_batch(line: Line, run_id: str, number: int) -> None:
    steps = range(number * _BATCH, (number + 1) * _BATCH)
    metrics = [{"key": "many", "value": step / 7, "timestamp": START + step, "step": step} for step in steps]
    line.post("runs/log-batch", {"run_id": run_id, "metrics": metrics})


def _search(line: Line, asked: Asked, order: str) -> None:
    body = {"experiment_ids": [asked.experiment_id], "max_results": 100, "order_by": [order]}
    found = line.post("runs/search", body)["runs"]
    assert len(found) == 100, len(found)


def _read_whole(line: Line, asked: Asked, points: int) -> None:
    found = line.get("metrics/get-history", run_id=asked.long_run, metric_key="long")
    count = found.count(b'"timestamp"')
    assert count == points, count


def _read_page(line: Line, asked: Asked, points: int) -> None:
    """The page in the middle, as large as clients ask for. They read all pages, one after the other."""
    count = min(_CLIENT_PAGE, points // 2)
    found = line.get(
        "metrics/get-history",
        run_id=asked.long_run,
        metric_key="long",
        max_results=count,
        page_token=write_offset(points // 2),
    )
    assert found.count(b'"timestamp"') == count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--only", default="sqlite,postgresql")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--histories", type=int, default=1)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which an answer is given up")
    parser.add_argument("--no-clients", dest="clients", action="store_false", help="without MLflow's own client")
    parser.add_argument("--folder", help="where the databases are; a temporary folder without it")
    options = parser.parse_args()
    found = measure(options)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{options.runs:,} runs, a metric of {options.points:,} points; milliseconds, and those of the processor")
    for place in options.only.split(","):
        theirs, ours = found[place]["mlflow"], found[place]["trainmaster"]
        for name in NAMES:
            values = [theirs[name]["ms"], ours[name]["ms"], theirs[name]["cpu_ms"], ours[name]["cpu_ms"]]
            print(f"{place:12} {name:34} {_show(*values[:2])} {_show(*values[2:])}")
        for name, value in found[place].get("trainmaster with a client", {}).items():
            print(f"{place:12} {name + ' (client)':34} {_show(found[place]['mlflow with a client'][name], value)}")


def _show(theirs: float, ours: float) -> str:
    return f"{theirs:12.2f} {ours:10.2f} {theirs / max(ours, 1e-3):8.1f} times"


if __name__ == "__main__":
    sys.exit(main())

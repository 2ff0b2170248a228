"""The studio in a browser: how long a person waits for rows, charts and new values; MLflow's pages beside it.

python -m benchmarks.studio [--json] [--runs 100000] [--minutes 0] [--only runs,charts,live,mlflow]

One chromium (the distribution's) shows both, and both have the same runs: they are copied into MLflow's database.
`--minutes 30` also follows a live run for that long and looks at the memory of the page. MLflow is installed once under
~/.cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from tests.server_process import ServerProcess
from tests.studio import open_browser
from tests.studio_runs import LiveRun, add_runs, make_run

from benchmarks.search import fill
from benchmarks.server import Program, running
from benchmarks.serving import environment, free_port
from trainmaster import Experiment, Workspace
from trainmaster.shared.records import RunRecord

CHARTS = 10
CHART_RUNS = 10
CHART_STEPS = 10_000
LONG_STEPS = 1_000_000

# Figure, what it is, and the most that the issue allows.
GOALS = (
    ("first_table_ms", "first table", 700),
    ("filter_ms", "filter to rows", 150),
    ("sort_ms", "sort by a metric", None),
    ("end_ms", "jump to the last run", None),
    ("charts_ms", "ten charts x ten runs x 10,000 steps", 1000),
    ("value_ms", "a value on screen after run.log", 500),
    ("redraw_ms", "redraw of 1,000,000 points after thinning", 50),
)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds by figure."""
    wanted = options.only.split(",")
    found: dict[str, Any] = {"runs": options.runs}
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        with serve(Path(folder) / "root") as server:
            create_runs(server, options.runs, wanted)
            if "runs" in wanted:
                found |= measure_runs(server, browser, options)
            if "charts" in wanted:
                found |= measure_charts(server, browser, options)
            if "live" in wanted:
                found |= measure_live(server, browser, options)
        if "mlflow" in wanted:
            found["mlflow"] = measure_mlflow(Path(folder), browser, options)
    return found


@contextlib.contextmanager
def serve(root: Path) -> Iterator[ServerProcess]:
    """A server that leaves nothing behind."""
    server = ServerProcess(root)
    try:
        yield server
    finally:
        server.end()


def create_runs(server: ServerProcess, runs: int, wanted: list[str]) -> None:
    """The runs that the studio and MLflow show: many of them, and some with long curves."""
    if "runs" in wanted or "mlflow" in wanted:
        server.create_workspace("many")
        fill(server.root / "workspaces/many/trainmaster.db", runs)
    if "charts" in wanted or "mlflow" in wanted:
        server.create_workspace("charts")
        chance = random.Random(1)
        add_runs(
            server, "charts", [*make_chart_runs(chance), (make_run("long"), {"loss": make_curve(chance, LONG_STEPS)})]
        )


def make_chart_runs(chance: random.Random) -> Iterator[tuple[RunRecord, dict[str, list[float]]]]:
    """Runs with ten metrics each."""
    for number in range(CHART_RUNS):
        yield make_run(f"run-{number}"), {f"metric {m}": make_curve(chance, CHART_STEPS) for m in range(CHARTS)}


def make_curve(chance: random.Random, steps: int) -> list[float]:
    """A loss that falls."""
    return [2 * math.exp(-5 * step / steps) + chance.gauss(0, 0.05) for step in range(steps)]


def open_page(server: ServerProcess, browser: Browser) -> Page:
    """A window in which the administrator has signed in."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=server.url)
    headers = {"Authorization": f"Bearer {server.token}", "Origin": server.url}
    assert context.request.post("/login/session", headers=headers).ok
    return context.new_page()


# Playwright's own calls take milliseconds each, so that the page itself notes when something is on its screen.
_WAIT = """() => new Promise(done => {
  const start = performance.now();
  const look = () => (CONDITION) ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)))
                                 : requestAnimationFrame(look);
  ACT;
  look();
})"""
_POLL = """() => new Promise(done => {
  const end = Date.now() + 1000 * SECONDS;
  const look = () => {
    if (CONDITION) requestAnimationFrame(() => setTimeout(() => done(true)));
    else if (Date.now() > end) done(false);
    else requestAnimationFrame(look);
  };
  look();
})"""
_SET_FILTER = """
  const box = document.getElementById('runs-filter');
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, TEXT);
  box.dispatchEvent(new Event('input', {bubbles: true}));
  box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
"""
_FIRST_NAME = "(document.querySelector('td.name')?.textContent ?? '')"


def time_action(page: Page, act: str, condition: str) -> float:
    """Milliseconds from a script until a condition holds and is drawn."""
    # Not passed as arguments: the page's policy forbids to make functions of texts.
    taken: float = page.evaluate(_WAIT.replace("CONDITION", condition).replace("ACT", act))
    return taken


def time_load(page: Page, path: str, condition: str, seconds: float = 60) -> float:
    """Milliseconds from the start of the navigation until a condition holds and is drawn."""
    page.goto("about:blank")
    page.goto(path, wait_until="commit")
    wait_until(page, condition, seconds)
    # By the clock of the page, whose zero is the start of the navigation.
    taken: float = page.evaluate("performance.now()")
    return taken


def wait_until(page: Page, condition: str, seconds: float = 60) -> None:
    """Wait until a condition holds and is drawn. (Playwright's own way is forbidden by the page's policy.)"""
    if not page.evaluate(_POLL.replace("CONDITION", condition).replace("SECONDS", str(seconds))):
        raise TimeoutError(f"not within {seconds:.0f} s: {condition}")


def repeat(times: int, once: Callable[[int], float]) -> float:
    """The median."""
    return statistics.median(once(number) for number in range(times))


def measure_runs(server: ServerProcess, browser: Browser, options: argparse.Namespace) -> dict[str, Any]:
    """The table of many runs."""
    page = open_page(server, browser)
    has_rows = "document.querySelectorAll('td.name').length > 10"
    # The first time starts the dispatcher and fills the browser's cache.
    found = {"cold_table_ms": time_load(page, "/w/many/runs", has_rows)}
    found["first_table_ms"] = repeat(options.times, lambda _: time_load(page, "/w/many/runs", has_rows))
    newest = f"run-{options.runs}"
    wait_until(page, f"{_FIRST_NAME} === '{newest}'")

    def set_filter(number: int) -> float:
        # Different each time: the server remembers answers.
        act = _SET_FILTER.replace(
            "TEXT",
            json.dumps(
                f"metric.loss >= 0.{number} and metric.loss < 0.{number}2 and tag.kind = base and status = Failed"
            ),
        )
        before = page.evaluate(_FIRST_NAME)
        taken = time_action(page, act, f"{has_rows} && {_FIRST_NAME} !== {json.dumps(before)}")
        clear = _SET_FILTER.replace("TEXT", "''")
        time_action(page, clear, f"{_FIRST_NAME} === '{newest}'")
        return taken

    found["filter_ms"] = repeat(options.times, set_filter)
    sort = "[...document.querySelectorAll('th button')].find(e => e.textContent.startsWith('accuracy')).click()"
    found["sort_ms"] = time_action(page, sort, f"{has_rows} && {_FIRST_NAME} !== '{newest}'")
    page.goto("/w/many/runs")
    wait_until(page, f"{_FIRST_NAME} === '{newest}'")
    page.get_by_text(f"{options.runs:,} runs").wait_for()
    end = "const frame = document.querySelector('.runs-frame'); frame.scrollTop = frame.scrollHeight"
    found["end_ms"] = time_action(
        page, end, "[...document.querySelectorAll('td.name')].at(-1)?.textContent === 'run-1'"
    )
    page.context.close()
    return found


def measure_charts(server: ServerProcess, browser: Browser, options: argparse.Namespace) -> dict[str, Any]:
    """Charts of long curves, and one of a million points."""
    page = open_page(server, browser)
    page.set_viewport_size({"width": 1600, "height": 2400})
    path = f"/w/charts/compare?runs={','.join(f'run-{n}' for n in range(CHART_RUNS))}&tab=curves"
    all_drawn = f"document.querySelectorAll('.uplot canvas').length >= {CHARTS}"
    time_load(page, path, all_drawn)
    found = {"charts_ms": repeat(options.times, lambda _: time_load(page, path, all_drawn))}
    long = "/w/charts/runs/long/charts"
    drawn = "document.querySelectorAll('.uplot canvas').length >= 1"
    time_load(page, long, drawn)
    found["million_ms"] = repeat(options.times, lambda _: time_load(page, long, drawn))
    # Another width draws everything again.
    resize = """([width]) => new Promise(done => {
      const chart = document.querySelector('.uplot');
      const start = performance.now();
      const drawn = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
      const watch = new MutationObserver(() => { watch.disconnect(); drawn(); });
      watch.observe(chart.querySelector('canvas'), {attributes: true});
      chart.parentElement.style.width = width;
    })"""
    widths = [f"{600 + 20 * n}px" for n in range(options.times)]
    found["redraw_ms"] = statistics.median(page.evaluate(resize, [width]) for width in widths)
    page.context.close()
    return found


def measure_live(server: ServerProcess, browser: Browser, options: argparse.Namespace) -> dict[str, Any]:
    """From `run.log` to the screen, and the memory of a page that follows a run."""
    server.create_workspace("live")
    own = Experiment(Workspace(path=server.root / "workspaces/live"), "live").start_logging(snapshot_directory=None)
    for value in (1.0, 1.5, 1.25):
        own.log("loss", value)
    page = open_page(server, browser)
    page.goto(f"/w/live/runs/{own.id}/charts")
    page.locator(".uplot canvas").first.wait_for()
    taken = []
    for number in range(options.times):
        text = f"{number + 2}.25"
        begin = time.perf_counter()
        own.log("loss", float(text))
        wait_until(page, f"document.querySelector('main').textContent.includes('{text}')")
        taken.append((time.perf_counter() - begin) * 1000)
    own.complete()
    found: dict[str, Any] = {"value_ms": statistics.median(taken)}
    run = LiveRun(server, "live", "live one")
    run.log("loss", 1.0, 1.5, 1.25)
    page.goto(f"/w/live/runs/{run.id}/charts")
    page.locator(".uplot canvas").first.wait_for()
    if options.minutes:
        found["memory_mb"] = follow_memory(page, run, options.minutes)
    run.finish()
    page.context.close()
    return found


def follow_memory(page: Page, run: LiveRun, minutes: float) -> list[float]:
    """MB of JavaScript objects of the page at each minute, after its garbage was collected."""
    session = page.context.new_cdp_session(page)
    found = []
    end = time.monotonic() + 60 * minutes
    next_look = time.monotonic()
    step = 0
    while time.monotonic() < end:
        run.log("loss", *(math.sin(step + n) for n in range(10)))
        step += 10
        time.sleep(0.2)
        if time.monotonic() >= next_look:
            next_look += 60
            session.send("HeapProfiler.collectGarbage")
            found.append(round(page.evaluate("performance.memory.usedJSHeapSize") / 1e6, 1))
    return found


# MLflow

_CREATE_MLFLOW = """
import sys
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
store = SqlAlchemyStore(sys.argv[1], sys.argv[2])
print(store.create_experiment("many"), store.create_experiment("charts"))
"""
# Our tables as MLflow's, which has one experiment for what the page shows.
_COPY_RUNS = """
INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time,
                  source_version, lifecycle_stage, artifact_uri, experiment_id)
SELECT printf('%032x', :offset + seq), display_name, 'UNKNOWN', '', '', submitted_by,
       CASE status WHEN 'Completed' THEN 'FINISHED' WHEN 'Failed' THEN 'FAILED' ELSE 'KILLED' END,
       CAST(created_at * 1000 AS INTEGER), CAST(ended_at * 1000 AS INTEGER), '', 'active', :folder, :experiment
FROM ours.runs WHERE display_name LIKE 'run-%'
"""
_COPY_REST = (
    "INSERT INTO params (key, value, run_uuid) "
    "SELECT name, text, printf('%032x', :offset + run_seq) FROM ours.arguments",
    "INSERT INTO tags (key, value, run_uuid) SELECT name, value, printf('%032x', :offset + run_seq) "
    "FROM ours.run_labels WHERE kind = 0",
    "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) "
    "SELECT m.name, last_number, 0, count, 0, printf('%032x', :offset + run_seq) "
    "FROM ours.metrics AS m JOIN ours.runs ON seq = run_seq WHERE display_name LIKE 'run-%'",
)
_COPY_LAST = """
INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid)
SELECT name, last_number, 0, count, 0, printf('%032x', :offset + run_seq) FROM ours.metrics
"""
_COPY_POINTS = """
INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid)
SELECT m.name, p.number, CAST(p.time * 1000 AS INTEGER), p.step, 0, printf('%032x', :offset + m.run_seq)
FROM ours.metrics AS m JOIN ours.metric_points AS p ON p.metric_id = m.id JOIN ours.runs AS r ON r.seq = m.run_seq
WHERE r.display_name LIKE 'run-%'
"""


def copy_to_mlflow(base: Path, workspace: str, experiment: str, points: str) -> None:
    """Write the runs of a workspace into MLflow's database."""
    offset = 16 * 10**9 * int(experiment)
    values = {"offset": offset, "folder": str(base), "experiment": int(experiment)}
    with contextlib.closing(sqlite3.connect(base / "mlflow.db")) as connection:
        connection.execute("ATTACH ? AS ours", [str(base / f"root/workspaces/{workspace}/trainmaster.db")])
        for statement in (_COPY_RUNS, *_COPY_REST, points):
            connection.execute(statement, values)
        connection.commit()


def measure_mlflow(base: Path, browser: Browser, options: argparse.Namespace) -> dict[str, Any]:
    """The same runs in MLflow's own pages: their table, a filter, and the charts of ten of them."""
    python = environment("mlflow-server", ["mlflow>=3,<4"])
    address = f"sqlite:///{base}/mlflow.db"
    variables = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = [str(python), "-c", _CREATE_MLFLOW, address, str(base)]
    created = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    many, few = created.stdout.split()[-2:]
    copy_to_mlflow(base, "many", many, _COPY_LAST)
    copy_to_mlflow(base, "charts", few, _COPY_POINTS)
    port = free_port()
    words = ["server", "--backend-store-uri", address, "--port", str(port), "--workers", "1"]
    program = Program([str(python), "-m", "mlflow", *words], port, base / "mlflow.log", MLFLOW_DISABLE_TELEMETRY="true")
    found: dict[str, Any] = {"runs": options.runs}
    with running(program):
        program.wait("/health")
        page = browser.new_context(viewport={"width": 1600, "height": 2400}).new_page()
        page.set_default_timeout(options.patience * 1000)
        top = f"http://127.0.0.1:{port}/#/experiments"
        table = f"{top}/{many}/runs"
        found["cold_table_ms"] = _try_load(page, table, _MLFLOW_ROWS, options.patience)
        loads = [_try_load(page, table, _MLFLOW_ROWS, options.patience) for _ in range(3)]
        found["first_table_ms"] = statistics.median(loads) if None not in loads else None
        taken = [filter_mlflow(page, number, options.patience) for number in range(3)]
        found["filter_ms"] = statistics.median(taken) if None not in taken else None
        if options.screenshot:
            page.screenshot(path=str(options.screenshot.with_suffix(".table.png")))
        drawn = f"document.querySelectorAll('.js-plotly-plot .trace.scatter').length >= {CHARTS * CHART_RUNS}"
        found["charts_ms"] = _try_load(page, f"{top}/{few}/runs?compareRunsMode=CHART", drawn, options.patience)
        page.screenshot(path=str(options.screenshot)) if options.screenshot else None
        page.context.close()
    return found


_MLFLOW_NAMES = (
    "[...document.querySelectorAll('a')].map(each => each.textContent.trim()).filter(text => text.startsWith('run-'))"
)
_MLFLOW_ROWS = f"{_MLFLOW_NAMES}.length > 10"


def filter_mlflow(page: Page, number: int, seconds: float) -> float | None:
    """Milliseconds from a filter to its rows."""
    before = page.evaluate(f"{_MLFLOW_NAMES}[0]")
    box = page.get_by_placeholder("metrics.rmse").or_(page.locator("[data-testid='search-box']")).first
    loss = f"metrics.loss >= 0.{number} and metrics.loss < 0.{number}2"
    text = f"{loss} and tags.kind = 'base' and attributes.status = 'FAILED'"
    box.fill(text)
    begin = time.perf_counter()
    box.press("Enter")
    try:
        wait_until(page, f"{_MLFLOW_ROWS} && {_MLFLOW_NAMES}[0] !== {json.dumps(before)}", seconds)
    except TimeoutError as error:
        print(f"MLflow: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    return (time.perf_counter() - begin) * 1000


def _try_load(page: Page, address: str, condition: str, seconds: float) -> float | None:
    """None if it took longer than patience."""
    try:
        return time_load(page, address, condition, seconds)
    except TimeoutError as error:
        print(f"MLflow: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=0, help="of a live run, for the memory of the page")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--patience", type=float, default=120, help="seconds to wait for a page of MLflow")
    parser.add_argument("--only", default="runs,charts,live,mlflow")
    parser.add_argument("--screenshot", type=Path, help="of MLflow's charts")
    options = parser.parse_args()
    found = measure(options)
    if options.json:
        print(json.dumps(found))
        return
    for name, label, most in GOALS:
        if name in found:
            goal = f"  (goal {most} ms)" if most else ""
            print(f"{label:45} {found[name]:8.0f} ms{goal}")
    for name in ("cold_table_ms", "million_ms"):
        if name in found:
            print(f"{name[:-3].replace('_', ' '):45} {found[name]:8.0f} ms")
    if "memory_mb" in found:
        print(f"memory of the page at each minute, MB         {found['memory_mb']}")
    for name, value in found.get("mlflow", {}).items():
        if name.endswith("_ms"):
            took = f"{value:8.0f} ms" if value is not None else f"more than {options.patience:.0f} s"
            print(f"MLflow: {name[:-3].replace('_', ' '):37} {took}")


if __name__ == "__main__":
    main()

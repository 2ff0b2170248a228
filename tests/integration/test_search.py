"""Searching runs from the command line, as a person does."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import end_workspace, stop_dispatcher

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

SCRIPT = """
import argparse
from trainmaster import Run
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--batch-size", type=int)
run = Run.get_context()
run.log("loss", parser.parse_args().lr * 2)
run.log("loss", parser.parse_args().lr)
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A workspace with three runs of a script and one that was logged by hand."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "train.py").write_text(SCRIPT)
    ws = Workspace.create("searched", path=folder / "workspace", show_output=False)
    runs = [
        Experiment(ws, "tuned").submit(
            Estimator(
                str(folder),
                entry_script="train.py",
                script_params={"--lr": lr, "--batch-size": 32},
                compute_target="local",
                user_managed=True,
            ),
            tags={"kind": "base" if lr < 0.2 else "large"},
        )
        for lr in (0.1, 0.3, 0.2)
    ]
    for run in runs:
        run.wait_for_completion()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run = Experiment(ws, "by-hand").start_logging()
        run.log("loss", 7.0)
        run.complete()
    yield ws
    end_workspace(ws.path)


def command(workspace: Workspace, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "trainmaster.cli", "runs", "--workspace", str(Path(workspace.path)), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def test_filter_order_and_columns(searched):
    found = searched.connection.call(
        "runs.search",
        filter="lr >= 0.1 and batch-size = 32 and metric.loss.max > 0.3 and status = Completed",
        order="metric.loss desc",
        columns=["lr", "metric.loss", "tag.kind"],
        total=True,
    )
    assert found == {
        "rows": [
            {"lr": 0.3, "metric.loss": 0.3, "tag.kind": "large"},
            {"lr": 0.2, "metric.loss": 0.2, "tag.kind": "large"},
        ],
        "cursor": "",
        "total": 2,
    }


def test_pages_of_one(searched):
    values, cursor = [], ""
    while True:
        page = searched.connection.call(
            "runs.search", order="metric.loss", columns=["metric.loss.last", "waiting_for"], limit=1, cursor=cursor
        )
        values += [row["metric.loss.last"] for row in page["rows"]]
        cursor = page["cursor"]
        if not cursor:
            break
    assert values == [0.1, 0.2, 0.3, 7.0]


@pytest.mark.parametrize(
    ("arguments", "headline"),
    [
        ({"filter": "lr <"}, "the filter cannot be read"),
        ({"order": "lr sideways"}, "the order cannot be read"),
        ({"columns": ["stauts"]}, "Did you mean 'status'"),
        ({"limit": 0}, "limit must be between 1 and 1000"),
        ({"limit": 1001}, "limit must be between 1 and 1000"),
        ({"cursor": "nonsense"}, "the cursor cannot be used"),
        ({"columns": [f"x{n}" for n in range(201)]}, "at most 200 columns"),
    ],
)
def test_what_cannot_be_searched_is_refused(searched, arguments, headline):
    with pytest.raises(UserErrorException, match=headline):
        searched.connection.call("runs.search", **arguments)


def test_the_command_line(searched):
    table = command(searched, "--where", "lr > 0.1", "--sort", "lr").stdout.splitlines()
    assert table[0].split() == ["RUN", "EXPERIMENT", "STATUS", "DURATION", "CREATED", "arg.lr"]
    assert [line.split()[-1] for line in table[1:]] == ["0.2", "0.3"]
    found = command(
        searched, "--where", "lr > 0.1 or lr = 0.1", "--tag", "kind=base", "-e", "tuned", "--status", "ended",
        "--columns", "lr, created", "--json",
    )  # fmt: skip
    ((row),) = json.loads(found.stdout)
    assert row["lr"] == 0.1 and row["created"].endswith("Z")
    nothing = command(searched, "--where", "lr > 100")
    assert nothing.stdout == "" and "no such runs" in nothing.stderr
    wrong = command(searched, "--where", "staus = Failed", code=2)
    assert "Did you mean 'status'?" in wrong.stderr
    assert len(json.loads(command(searched, "--json").stdout)) == 4


def test_a_chart_gets_only_what_is_new(searched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Experiment(searched, "charted").start_logging()
    for value in range(10):
        run.log("curve", value)
    (whole,) = searched.connection.call("runs.series", run_id=run.id, name="curve")
    assert whole["values"] == list(range(10)) and whole["count"] == 10
    for value in (100, 50, 75):
        run.log("curve", value)
    (new,) = searched.connection.call("runs.series", run_id=run.id, name="curve", since=whole["count"])
    assert (new["values"], new["index"], new["count"]) == ([100, 50, 75], [10, 11, 12], 13)
    (none,) = searched.connection.call("runs.series", run_id=run.id, name="curve", since=13)
    assert (none["values"], none["count"]) == ([], 13)
    (thin,) = searched.connection.call("runs.series", run_id=run.id, name="curve", since=1, max_points=4)
    assert (thin["values"], thin["index"]) == ([1, 100, 75], [1, 10, 12])
    run.complete()


def test_one_metric_of_many_runs(searched):
    page = searched.connection.call("runs.search", filter="experiment = tuned", order="lr", columns=["id"])
    ids = [row["id"] for row in page["rows"]]
    found = searched.connection.call("runs.compare", run_ids=[*ids, "nothing"], name="loss", since={ids[0]: 1})
    assert [found[run_id]["values"] for run_id in ids] == [[0.1], [0.4, 0.2], [0.6, 0.3]]
    assert searched.connection.call("runs.compare", run_ids=ids, name="nothing") == {}
    with pytest.raises(UserErrorException, match="500 at most"):
        searched.connection.call("runs.compare", run_ids=["x"] * 501, name="loss")


def test_the_feed_of_changes(searched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changes = partial(searched.connection.call, "workspace.changes")
    first = changes()
    assert not first["whole"] and first["runs"] == []
    run = Experiment(searched, "followed").start_logging()
    created = changes(since=first["version"], seconds=60)
    assert created["runs"] == [{"id": run.id, "kinds": ["created"], "status": "Running"}]
    run.tag("a", "b")
    run.log("loss", 1.0)
    run.get_metrics()
    run.complete()
    version, kinds = created["version"], set()
    while "state" not in kinds:
        found = changes(since=version, seconds=60)
        assert found["whole"] and {each["id"] for each in found["runs"]} == {run.id}
        kinds.update(kind for each in found["runs"] for kind in each["kinds"])
        version = found["version"]
    assert {"labels", "metrics", "state"} <= kinds and found["runs"][0]["status"] == "Completed"
    searched.connection.call("runs.delete", run_ids=[run.id])
    gone = changes(since=version, seconds=60)
    assert [(each["id"], each["kinds"]) for each in gone["runs"]] == [(run.id, ["deleted"])]
    assert changes(since=gone["version"])["runs"] == []
    stop_dispatcher(WorkspaceFolder(searched.path))
    again = changes(since=gone["version"], seconds=60)
    assert not again["whole"] and again["version"] != gone["version"]

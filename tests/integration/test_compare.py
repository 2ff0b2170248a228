"""Looking at many runs and comparing them, from the command line and in a program."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import read_command, run_command, show_command

from trainmaster import Estimator, Experiment, Run, Workspace

BACKENDS = ("local", "server")
SCRIPT = """
import argparse
from trainmaster import Run
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
run = Run.get_context()
for step in range(1, 11):
    run.log("loss", parser.parse_args().lr / step)
    run.log("accuracy", 1 - parser.parse_args().lr / step)
"""


@pytest.fixture(scope="module")
def runs(shared: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Run]]:
    """Three runs, oldest first; the code of the first differs."""
    folder = tmp_path_factory.mktemp("code")
    found = []
    for lr, text in ((0.1, "# old\n"), (0.3, "# new\n"), (0.2, "# new\n")):
        (folder / "train.py").write_text(text + SCRIPT)
        estimator = Estimator(
            str(folder),
            entry_script="train.py",
            script_params={"--lr": lr},
            compute_target="local",
            user_managed=True,
        )
        found.append(Experiment(shared, "tuned").submit(estimator, tags={"kind": "base" if lr < 0.2 else "large"}))
    for run in found:
        run.wait_for_completion()
    yield found


def test_compare_shows_what_differs(shared: Workspace, runs: list[Run]) -> None:
    ids = [run.id for run in runs]
    found = read_command(shared, "compare", *ids)
    assert [run["id"] for run in found["runs"]] == ids
    assert found["arguments"] == [{"name": "lr", "values": ["0.1", "0.3", "0.2"]}]
    assert {"name": "tag.kind", "values": ["base", "large", "large"]} in found["settings"]
    assert found["machine"] == found["packages"] == found["environment"] == []
    assert [row["name"] for row in found["metrics"]] == ["accuracy", "loss"]
    assert [part["run"] for part in found["code"]] == ids[1:]
    (file,) = found["code"][0]["files"]
    assert (file["path"], file["kind"], file["added"], file["removed"]) == ("train.py", "changed", 1, 1)
    assert "-# old\n+# new\n" in file["diff"]
    # The last two have the same code.
    assert read_command(shared, "compare", *ids[1:])["code"][0]["files"] == []
    patch = run_command(shared, "compare", *ids[:2], "--diff").stdout
    assert patch.startswith("--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,4 @@\n-# old\n+# new\n")


def test_compare_on_paper_and_on_a_terminal(shared: Workspace, runs: list[Run], tmp_path: Path) -> None:
    ids = [run.id for run in runs]
    told = run_command(shared, "compare", *ids, "--metric", "loss").stdout
    assert re.search(r"^ARGUMENTS +A +B +C\nlr +0.1 +0.3 +0.2$", told, re.M), told
    assert re.search(r"^CODE  A to B, C: 1 file\n  changed train.py  \+1 -1$", told, re.M), told
    assert re.search(r"^loss\nA  [▁▂▃▄▅▆▇█]{10}  0.01\nB  █[▁▂▃▄▅▆▇]{9}  0.03\n", told, re.M), told
    assert "accuracy\n" not in told
    for width in (80, 120):
        lines = show_command(shared, "compare", *ids, width=width)
        assert max(map(len, lines)) <= width and any("┤" in line and "⠉" in line for line in lines), lines
    for name, start in (("loss.svg", b"<svg "), ("loss.png", b"\x89PNG")):
        run_command(shared, "compare", *ids, "--plot", str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start)


def test_mistakes_have_one_clear_error(shared: Workspace, runs: list[Run]) -> None:
    first, second = runs[0].id, runs[1].id
    mistakes: list[tuple[tuple[str, ...], int, str]] = [
        (("compare", first), 2, "two different runs are needed"),
        (("compare", first, "nothing"), 4, "there is no run 'nothing'"),
        (("compare", first, second, "--metric", "los"), 2, "They have: accuracy, loss."),
        (("compare", first, second, "--plot", "x.gif"), 2, "neither an .svg nor a .png"),
        (("best", "tuned", "--metric", "los", "--goal", "minimize"), 2, "Did you mean loss?"),
        (("best", "tuned", "--metric", "strange"), 2, "Add --goal minimize or --goal maximize."),
        (("best", "tune", "--metric", "loss"), 2, "Did you mean tuned?"),
        (("runs", "--csv", "--limit", "0"), 2, "--limit must be at least 1"),
    ]
    for words, code, text in mistakes:
        assert text in run_command(shared, *words, code=code).stderr
    assert "--csv and --json" in read_command(shared, "runs", "--csv", code=2)["error"]["headline"]


def test_lists_of_runs_have_arguments_metrics_and_tags(shared: Workspace, runs: list[Run]) -> None:
    where = "lr < 0.25 and tag.kind in (base, large)"
    sorted_rows = read_command(shared, "runs", "--where", where, "--sort", "metric:loss desc", "--columns", "id,lr")
    assert sorted_rows == [{"id": runs[2].id, "lr": 0.2}, {"id": runs[0].id, "lr": 0.1}]
    told = run_command(shared, "runs", "-e", "tuned", "--columns", "id,arguments,metrics,tags").stdout
    assert re.search(rf"{runs[0].id}  lr=0.1 +accuracy=0.99 loss=0.01  kind=base", told), told
    rows = list(csv.DictReader(io.StringIO(run_command(shared, "runs", "-e", "tuned", "--csv").stdout)))
    assert [(row["id"], row["arg.lr"], row["tag.kind"]) for row in rows[-1:]] == [(runs[0].id, "0.1", "base")]
    best = read_command(shared, "best", "tuned", "--metric", "loss", "-n", "2")
    assert [(row["id"], row["best"], row["arguments"]) for row in best] == [
        (runs[0].id, pytest.approx(0.01), {"lr": 0.1}),
        (runs[2].id, pytest.approx(0.02), {"lr": 0.2}),
    ]
    assert read_command(shared, "best", "tuned", "--metric", "accuracy")[0]["id"] == runs[0].id


def test_runs_become_a_table(shared: Workspace, runs: list[Run]) -> None:
    experiment = Experiment(shared, "tuned")
    assert next(Run.list(experiment)).id == runs[-1].id
    frame: Any = experiment.get_runs(tags={"kind": "large"}).to_pandas()
    assert list(frame["id"]) == [runs[2].id, runs[1].id]
    assert list(frame["arg.lr"]) == [0.2, 0.3] and list(frame["metric.loss"]) == pytest.approx([0.02, 0.03])
    assert str(frame["created"].dtype).endswith("UTC]") and frame["duration"].min() >= 0
    assert Run.list(experiment, tags="nothing").to_pandas().empty

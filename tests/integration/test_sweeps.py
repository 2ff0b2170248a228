"""Sweeps from end to end: real trials, real dispatcher."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends import folder_of
from tests.conftest import dispatcher_handle, ended, stop_dispatcher, until, wait_gone

from trainmaster import (
    BanditPolicy,
    BayesianParameterSampling,
    ComputeTarget,
    Estimator,
    Experiment,
    GridParameterSampling,
    HyperDriveConfig,
    HyperDriveRun,
    LocalCompute,
    Mpi,
    PrimaryMetricGoal,
    RandomParameterSampling,
    ScriptRunConfig,
    Workspace,
    choice,
    uniform,
)
from trainmaster.job.errors import (
    ActivityFailedException,
    HyperDriveConfigException,
    HyperDriveNotImplementedException,
    UserErrorException,
)
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")

pytestmark = pytest.mark.timeout(600)

Sweep = Callable[..., HyperDriveRun]

# Best at x = 0.3.
PARABOLA = """
import sys
from azureml.core import Run
run = Run.get_context()
x = float(sys.argv[sys.argv.index("--x") + 1])
for step in range(3):
    run.log("score", step / 100 - (x - 0.3) ** 2)
"""


@pytest.fixture(scope="module")
def box(shared: Workspace) -> Workspace:
    """The shared workspace, with a target of four nodes."""
    ComputeTarget.create(shared, "box", LocalCompute.configuration(nodes=4))
    return shared


@pytest.fixture
def sweep(box: Workspace, project: Callable[..., Path]) -> Sweep:
    """Submits a sweep of a script given as text."""

    def send(script: str, sampling: Any, total: int, *, workspace: Workspace = box, **settings: Any) -> HyperDriveRun:
        source = project(train=script)
        of_estimator = {name: settings.pop(name) for name in ("node_count", "distributed_training") if name in settings}
        estimator = Estimator(
            str(source),
            entry_script="train.py",
            compute_target=settings.pop("target", "box"),
            # Open MPI comes with an environment of Trainmaster's.
            user_managed="distributed_training" not in of_estimator,
            **of_estimator,
        )
        settings.setdefault("max_concurrent_runs", 4)
        goal = settings.pop("goal", PrimaryMetricGoal.MAXIMIZE)
        metric = settings.pop("metric", "score")
        config = HyperDriveConfig(sampling, metric, goal, total, estimator=estimator, **settings)
        run = Experiment(workspace, "sweeps").submit(config)
        assert isinstance(run, HyperDriveRun)
        return run

    return send


def random_x(seed: int = 1) -> RandomParameterSampling:
    return RandomParameterSampling({"x": uniform(0, 1)}, {"seed": seed})


def log_of(run: HyperDriveRun) -> list[str]:
    """What hyperdrive.txt says, without the times."""
    folder = WorkspaceFolder(folder_of(run.experiment.workspace)).run(run.id)
    return [line[20:] for line in (folder.logs / "hyperdrive.txt").read_text().splitlines()]


def test_a_sweep_finds_the_best_trial_and_tells_all_of_v1(sweep: Sweep, box: Workspace) -> None:
    run = sweep(PARABOLA, random_x(), 6)
    assert run.type == "hyperdrive"
    assert run.wait_for_completion()["status"] == "Completed"
    sampled = {run_id: json.loads(text)["x"] for run_id, text in run.get_hyperparameters().items()}
    assert sorted(sampled) == [f"{run.id}_{number}" for number in range(6)]
    best = run.get_best_run_by_primary_metric()
    assert best is not None and best.parent is not None and best.parent.id == run.id
    assert best.id == min(sampled, key=lambda run_id: abs(sampled[run_id] - 0.3))
    assert best.get_details()["runDefinition"]["arguments"] == ["--x", str(sampled[best.id])]
    assert len(best.get_metrics()["score"]) == 3
    _check_sorted(run, sampled)
    assert run.get_metrics()[best.id] == best.get_metrics()
    _check_tags(run, sampled)
    again = box.get_run(run.id)
    assert isinstance(again, HyperDriveRun) and isinstance(box.get_run(best.id), type(best))
    assert any(isinstance(each, HyperDriveRun) and each.id == run.id for each in Experiment(box, "sweeps").get_runs())
    config = again.hyperdrive_config
    assert config.run_config is not None and config.run_config.script == "train.py"
    assert config.compile({}).space == {"x": ["uniform", [0, 1]]}
    # All trials have one snapshot.
    assert {child.get_snapshot_id() for child in run.get_children()} == {run.get_snapshot_id()}


def _check_sorted(run: HyperDriveRun, sampled: dict[str, float]) -> None:
    rows = run.get_children_sorted_by_primary_metric()
    assert [row["run_id"] for row in rows] == sorted(sampled, key=lambda run_id: abs(sampled[run_id] - 0.3))
    assert set(rows[0]) == {"run_id", "hyperparameters", "best_primary_metric", "status"}
    assert run.get_children_sorted_by_primary_metric(top=2) == rows[:2]
    assert run.get_children_sorted_by_primary_metric(reverse=True) == rows[::-1]


def _check_tags(run: HyperDriveRun, sampled: dict[str, float]) -> None:
    tags = run.get_tags()
    assert json.loads(tags["primary_metric_config"]) == {"name": "score", "goal": "maximize"}
    assert json.loads(tags["generator_config"])["name"] == "RANDOM"
    assert tags["_aml_system_max_total_jobs"] == tags["max_total_jobs"] == "6"
    assert {run_id: json.loads(tags[run_id])["x"] for run_id in sampled} == sampled
    with pytest.raises(HyperDriveNotImplementedException):
        run.fail()
    with pytest.raises(HyperDriveNotImplementedException):
        run.get_diagnostics()


def test_the_same_seed_gives_the_same_trials(sweep: Sweep) -> None:
    found = []
    for _ in range(2):
        run = sweep(PARABOLA, random_x(7), 3)
        ended(run)
        found.append([json.loads(text) for _, text in sorted(run.get_hyperparameters().items())])
    assert found[0] == found[1]


def test_a_grid_is_walked_once_also_on_local(sweep: Sweep) -> None:
    sampling = GridParameterSampling({"--x": choice(0.1, 0.3, 0.5), "--depth": choice(1, 2)})
    run = sweep(PARABOLA, sampling, 50, target="local")
    assert ended(run)["status"] == "Completed"
    sampled = [json.loads(text) for text in run.get_hyperparameters().values()]
    assert len(sampled) == 6
    assert {(each["--x"], each["--depth"]) for each in sampled} == {(x, d) for x in (0.1, 0.3, 0.5) for d in (1, 2)}
    assert log_of(run)[-1] == "the sweep is Completed: all 6 trials have ended"


def test_bayesian_sampling_learns_from_its_trials_and_from_earlier_sweeps(sweep: Sweep) -> None:
    space = {"x": uniform(0, 1)}
    first = sweep(PARABOLA, BayesianParameterSampling(space, {"seed": 3}), 20, max_concurrent_runs=2)
    assert ended(first)["status"] == "Completed"
    with pytest.warns(UserWarning, match="needs 20 or more"):
        second = sweep(PARABOLA, BayesianParameterSampling(space, {"seed": 4}), 4, resume_from=first)
    assert ended(second)["status"] == "Completed"
    learned = {each["parameters"]["x"] for each in second._call("sweeps.describe")["earlier"]}
    assert learned == {json.loads(text)["x"] for text in first.get_hyperparameters().values()}
    scores = {run.id: max(run.get_metrics()["score"]) for sweep in (first, second) for run in sweep.get_children()}
    best = second.get_best_run_by_primary_metric()
    assert best is not None and scores[best.id] == max(scores.values())
    own = second.get_best_run_by_primary_metric(include_resume_from_runs=False)
    assert own is not None and own.parent is not None and own.parent.id == second.id


# Good ones log three values and end; bad ones wait for the cut that must come.
UNEQUAL = """
import os, sys, time
from azureml.core import Run
run = Run.get_context()
x = float(sys.argv[sys.argv.index("--x") + 1])
for step in range(3):
    run.log("score", x)
if x < 0.5:
    time.sleep(600)
"""


def test_a_policy_cuts_trials_and_says_why(sweep: Sweep) -> None:
    sampling = GridParameterSampling({"--x": choice(0.9, 0.1, 0.8)})
    # One at a time, so that the leader has been when the others come.
    run = sweep(UNEQUAL, sampling, 3, max_concurrent_runs=1, policy=BanditPolicy(slack_factor=0.5))
    assert ended(run)["status"] == "Completed"
    assert [child["status"] for child in _by_number(run)] == ["Completed", "Canceled", "Completed"]
    assert "interval 1: run_1 best 0.1 < 0.9/(1+0.5) = 0.6: cancelled" in log_of(run)
    trial = run.get_view().trials[1]
    assert trial.cut_interval == 1 and trial.cut_reason.endswith(": cancelled")
    only = run.get_children_sorted_by_primary_metric(reverse=True)[0]
    assert only["status"] == "Canceled" and only["best_primary_metric"] == 0.1


def _by_number(run: HyperDriveRun) -> list[dict[str, Any]]:
    rows = run.get_children_sorted_by_primary_metric()
    return sorted(rows, key=lambda row: int(row["run_id"].rsplit("_", 1)[1]))


FAILING = """
import sys
from azureml.core import Run
x = float(sys.argv[sys.argv.index("--x") + 1])
if x > 0.5:
    Run.get_context().log("score", x)
else:
    sys.exit("x is too small")
"""


def test_a_trial_that_fails_does_not_end_the_sweep(sweep: Sweep) -> None:
    run = sweep(FAILING, GridParameterSampling({"--x": choice(0.1, 0.6, 0.2, 0.7)}), 4, max_concurrent_runs=1)
    assert ended(run)["status"] == "Completed"
    assert [child["status"] for child in _by_number(run)] == ["Failed", "Completed", "Failed", "Completed"]
    assert any("run_0 is Failed: " in line for line in log_of(run))


def test_many_failures_in_a_row_end_it_with_the_reason(sweep: Sweep) -> None:
    sampling = GridParameterSampling({"--x": choice([0.01 * n for n in range(40)])})
    run = sweep(FAILING, sampling, 40, max_failures_in_a_row=3, max_concurrent_runs=1)
    with pytest.raises(ActivityFailedException, match="3 trials in a row failed"):
        run.wait_for_completion()
    assert len(run.get_hyperparameters()) == 3
    assert (
        "the last: run_2, rank 0 on node 0 ended with exit code 1: x is too small"
        in run.get_details()["error"]["message"]
    )


def test_a_metric_that_is_never_logged_is_told_with_the_names_that_are(sweep: Sweep) -> None:
    run = sweep(PARABOLA, random_x(), 30, metric="accuracy", max_concurrent_runs=2)
    details = ended(run)
    assert details["status"] == "Failed"
    assert "'accuracy'" in details["error"]["message"] and "'score'" in details["error"]["message"]
    warned = [each["message"] for each in details["warnings"]]
    assert any("without logging the primary metric 'accuracy'; logged instead: 'score'" in text for text in warned)
    assert len(run.get_hyperparameters()) < 30


WAITING = """
import sys, time
from azureml.core import Run
Run.get_context().log("score", 1)
time.sleep(600)
"""


def test_cancelling_a_sweep_ends_its_trials_and_starts_no_more(sweep: Sweep) -> None:
    run = sweep(WAITING, random_x(), 20, max_concurrent_runs=2)
    until(lambda: sum(each.reports > 0 for each in run.get_view().trials) == 2, what="two trials that run")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    states = {each["status"] for each in run.get_children_sorted_by_primary_metric()}
    assert states == {"Canceled"} and len(run.get_hyperparameters()) == 2
    assert log_of(run)[-1] == "the sweep is Canceled: the sweep was cancelled"


def test_no_more_trials_at_once_than_the_target_has_nodes_for(sweep: Sweep, box: Workspace) -> None:
    run = sweep(WAITING, random_x(), 20, max_concurrent_runs=None)
    until(lambda: sum(each.reports > 0 for each in run.get_view().trials) == 4, what="the reports of four trials")
    assert len(run.get_hyperparameters()) == 4
    run.cancel()
    assert ended(run)["status"] == "Canceled"


MPI = """
import os, sys
from azureml.core import Run
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
if rank == 0:
    Run.get_context().log("score", size * float(sys.argv[sys.argv.index("--x") + 1]))
"""


def test_trials_of_two_nodes_with_two_processes_each(sweep: Sweep) -> None:
    run = sweep(
        MPI,
        GridParameterSampling({"--x": choice(1, 2)}),
        2,
        node_count=2,
        distributed_training=Mpi(process_count_per_node=2),
    )
    assert ended(run)["status"] == "Completed"
    assert [row["best_primary_metric"] for row in run.get_children_sorted_by_primary_metric()] == [8.0, 4.0]


RESUMING = """
import os, sys
from azureml.core import Run
run = Run.get_context()
if "--resume-from" in sys.argv:
    folder = sys.argv[sys.argv.index("--resume-from") + 1]
    assert folder == os.environ["MODEL_LOCATION"]
    before = float(open(os.path.join(folder, "checkpoint")).read())
else:
    before = 0.0
with open("outputs/checkpoint", "w") as file:
    file.write(str(before + 1))
run.log("score", before + 1)
"""


def test_single_trials_of_an_earlier_sweep_go_on(sweep: Sweep) -> None:
    first = sweep(RESUMING, random_x(), 2)
    assert ended(first)["status"] == "Completed"
    child = first.get_best_run_by_primary_metric()
    assert child is not None
    second = sweep(RESUMING, random_x(9), 2, resume_child_runs=[child], max_concurrent_runs=1)
    assert ended(second)["status"] == "Completed"
    sampled = second.get_hyperparameters()
    assert sampled[f"{second.id}_0"] == first.get_hyperparameters()[child.id]
    assert [row["best_primary_metric"] for row in _by_number(second)] == [2.0, 1.0]


def test_a_sweep_cannot_start_from_what_is_none(sweep: Sweep, box: Workspace) -> None:
    with pytest.raises(HyperDriveConfigException, match="there is no sweep 'nothing_1'"):
        sweep(PARABOLA, random_x(), 2, resume_from="nothing_1")
    with pytest.raises(HyperDriveConfigException, match="there is no run 'nothing_2'"):
        sweep(PARABOLA, random_x(), 2, resume_child_runs="nothing_2")
    assert not [run for run in Experiment(box, "sweeps").get_runs() if run.id.startswith("nothing")]


def test_an_id_of_ones_own_is_used_once(sweep: Sweep) -> None:
    run = sweep(PARABOLA, random_x(), 1, custom_run_id="mine_1")
    assert run.id == "mine_1"
    with pytest.raises(UserErrorException, match="run 'mine_1' already exists"):
        sweep(PARABOLA, random_x(), 1, custom_run_id="mine_1")
    assert ended(run)["status"] == "Completed"


def test_a_sweep_of_a_script_run_config_with_a_command(box: Workspace, project: Callable[..., Path]) -> None:
    source = project(train=PARABOLA)
    script = ScriptRunConfig(str(source), command=[sys.executable, "train.py"], compute_target="box")
    script.run_config.environment.python.user_managed_dependencies = True
    config = HyperDriveConfig(random_x(), "score", PrimaryMetricGoal.MAXIMIZE, 2, run_config=script)
    run = Experiment(box, "sweeps").submit(config)
    assert ended(run)["status"] == "Completed"


def test_a_sweep_with_a_cluster_of_its_own(box: Workspace, project: Callable[..., Path]) -> None:
    estimator = Estimator(
        str(project(train=PARABOLA)), entry_script="train.py", vm_size="STANDARD_D2", user_managed=True
    )
    config = HyperDriveConfig(random_x(), "score", PrimaryMetricGoal.MAXIMIZE, 3, estimator=estimator)
    run = Experiment(box, "sweeps").submit(config)
    assert ended(run)["status"] == "Completed"
    (target,) = {child.get_details()["target"] for child in run.get_children()}
    assert target == run.get_details()["target"] != "local"
    assert target not in box.compute_targets


def test_waiting_shows_what_the_sweep_does(sweep: Sweep, capsys: pytest.CaptureFixture[str]) -> None:
    run = sweep(PARABOLA, random_x(), 2)
    run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    assert "Streaming azureml-logs/hyperdrive.txt" in shown
    assert re.search(r"run_1 starts: --x 0\.\d+", shown)
    assert "the sweep is Completed: all 2 trials have ended" in shown


def test_watching_gives_each_change_and_the_end(sweep: Sweep) -> None:
    run = sweep(PARABOLA, random_x(), 4)
    views = list(run.watch())
    assert views[-1].has_ended and len(views[-1].trials) == 4
    assert views[-1] == run.get_view()
    assert [len(view.trials) for view in views] == sorted(len(view.trials) for view in views)


def test_a_sweep_goes_on_with_the_next_dispatcher(sweep: Sweep, workspace: Workspace) -> None:
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=2))
    run = sweep(PARABOLA, random_x(), 12, workspace=workspace, max_concurrent_runs=2)
    folder = WorkspaceFolder(folder_of(workspace))
    until(lambda: (folder.runs / f"{run.id}_2").exists(), what="the third trial")
    handle = dispatcher_handle(folder)
    assert handle is not None
    os.kill(int(folder.lock.read_text()), 9)
    wait_gone(handle)
    assert ended(run)["status"] == "Completed"
    uninterrupted = sweep(PARABOLA, random_x(), 12, workspace=workspace, max_concurrent_runs=2)
    ended(uninterrupted)
    expected = [json.loads(text) for text in uninterrupted.get_hyperparameters().values()]
    assert [json.loads(text) for text in run.get_hyperparameters().values()] == expected


def test_a_sweep_whose_time_is_up_ends_with_what_it_has(sweep: Sweep, workspace: Workspace) -> None:
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=2))
    run = sweep(WAITING, random_x(), 9, workspace=workspace, max_concurrent_runs=2, max_duration_minutes=1)
    until(lambda: sum(each.reports > 0 for each in run.get_view().trials) == 2, what="the reports of two trials")
    folder = WorkspaceFolder(folder_of(workspace))
    workspace.connection.close()
    stop_dispatcher(folder)
    with contextlib.closing(sqlite3.connect(folder.database)) as database, database:
        database.execute("UPDATE runs SET started_at = started_at - 60 WHERE id = ?", (run.id,))
    assert ended(run)["status"] == "Completed"
    assert {row["status"] for row in run.get_children_sorted_by_primary_metric()} == {"Canceled"}
    assert log_of(run)[-1] == "the sweep is Completed: max_duration_minutes=1 have passed"


def test_a_sweep_whose_description_is_damaged_says_so(sweep: Sweep, workspace: Workspace) -> None:
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=2))
    run = sweep(WAITING, random_x(), 9, workspace=workspace, max_concurrent_runs=1)
    until(lambda: run.get_view().trials, what="a trial")
    folder = WorkspaceFolder(folder_of(workspace))
    workspace.connection.close()
    stop_dispatcher(folder)
    with contextlib.closing(sqlite3.connect(folder.database)) as database, database:
        database.execute("UPDATE sweeps SET spec = '{'")
    details = ended(run)
    assert details["status"] == "Failed" and "is not JSON" in details["error"]["message"]
    (trial,) = run.get_children()
    details = ended(trial)
    assert details["status"] == "Canceled", details.get("error")

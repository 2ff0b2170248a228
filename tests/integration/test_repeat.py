"""Running a run again, and continuing one from the files it left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.wheels import make_wheel
from tests.commands import read_command, run_command
from tests.conftest import until

from trainmaster import (
    ComputeTarget,
    Environment,
    Estimator,
    Experiment,
    Gloo,
    LocalCompute,
    PyTorch,
    Run,
    ScriptRunConfig,
    Workspace,
)
from trainmaster.job.errors import UserErrorException

BACKENDS = ("local", "server")
SCRIPT = """
import argparse, json, os, sys, time
from trainmaster import Run
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--end", default="well")
given = parser.parse_args()
rank = int(os.environ.get("RANK", "0"))
place = "outputs/checkpoint-%d.json" % rank
start = json.load(open(place)) if os.path.exists(place) else 0
Run.get_context().log("start", start)
Run.get_context().log("lr", given.lr)
print("resumed", os.environ.get("TRAINMASTER_RESUMED_FROM", "nothing"), os.path.exists("scratch.txt"))
for epoch in range(start, given.epochs):
    with open(place, "w") as file:
        json.dump(epoch + 1, file)
if rank == 0:
    open("scratch.txt", "w").close()
if given.end == "fail":
    sys.exit("as it was told")
if given.end == "wait":
    open("outputs/waits", "w").close()
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("code")
    (made / "train.py").write_text(SCRIPT)
    return made


@pytest.fixture(scope="module")
def experiment(shared: Workspace) -> Iterator[Experiment]:
    yield Experiment(shared, "again")


def submit(experiment: Experiment, folder: Path, kind: Any = Estimator, **settings: Any) -> Run:
    given = {f"--{name}": value for name, value in settings.pop("arguments", {}).items()}
    own = {"compute_target": "local", **settings}
    return experiment.submit(
        kind(str(folder), entry_script="train.py", script_params=given, user_managed=True, **own), tags={"kind": "base"}
    )


def end(run: Run, status: str = "Completed") -> Run:
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == status, run.get_details().get("error")
    return run


def log_of(run: Run) -> str:
    return str(run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"])


def test_rerun_changes_one_thing(shared: Workspace, experiment: Experiment, folder: Path, tmp_path: Path) -> None:
    first = end(submit(experiment, folder, arguments={"lr": 0.1}))
    told = read_command(
        shared, "rerun", first.id, "--set", "lr=0.2", "--set", "tag.kind=other", "--set", "name=two", "-w"
    )
    again = shared.get_run(told["id"])
    assert (told["status"], told["display_name"], told["tags"]) == ("Completed", "two", {"kind": "other"})
    assert again.get_metrics() == {"start": 0, "lr": 0.2} and again.get_snapshot_id() == first.get_snapshot_id()
    assert again.get_details()["properties"]["origin"] == first.id
    assert f"rerun of    {first.id}" in run_command(shared, "show", again.id).stdout
    assert read_command(shared, "show", again.id)["origin"] == first.id
    lineage = shared.connection.call("runs.lineage", run_id=first.id)
    assert [link["run_id"] for link in lineage["reruns"]] == [again.id] and not lineage["resumed_by"]
    # New arguments replace all, and --fresh-code takes the folder as it is now.
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "train.py").write_text(SCRIPT + "print('changed')\n")
    words = ("rerun", again.id, "--source", str(copy), "--wait", "--", "--lr", "0.3")
    assert "changed" in run_command(shared, *words).stdout
    third = next(experiment.get_runs())
    assert third.get_metrics()["lr"] == 0.3 and third.get_snapshot_id() != first.get_snapshot_id()
    fourth = end(third.rerun(settings={"lr": 0.4}, fresh_code=True))
    assert fourth.get_metrics()["lr"] == 0.4 and fourth.get_snapshot_id() == third.get_snapshot_id()


def test_a_rerun_has_exactly_the_same_packages(shared: Workspace, experiment: Experiment, tmp_path: Path) -> None:
    wheels, code = tmp_path / "wheels", tmp_path / "code"
    make_wheel(wheels, "demo-package", "1.0", files={"demo_package.py": "VERSION = 1\n"})
    code.mkdir()
    (code / "train.py").write_text("import demo_package\nprint('version', demo_package.VERSION)\n")
    environment = Environment("demo")
    environment.python.conda_dependencies.set_pip_requirements(["--no-index", f"--find-links {wheels}", "demo-package"])
    config = ScriptRunConfig(str(code), script="train.py", compute_target="local", environment=environment)
    first = end(experiment.submit(config))
    make_wheel(wheels, "demo-package", "2.0", files={"demo_package.py": "VERSION = 2\n"})
    removed = read_command(shared, "env", "prune", "--keep-bytes", "0")["removed"]
    assert len(removed) == 1
    # The build is gone. It is built again from the lock, and nothing is resolved.
    again = end(first.rerun())
    assert "version 1" in log_of(again)
    build_log = again.get_details_with_logs()["logFiles"]["azureml-logs/20_image_build_log.txt"]
    assert "the packages are those of an earlier lock" in build_log and "compile" not in build_log
    environments = [run.get_environment() for run in (first, again)]
    assert len({found.lock for found in environments if found}) == 1
    fresh = end(again.rerun(fresh_env=True))
    assert "version 2" in log_of(fresh)
    # There are builds of both now, and a rerun of each takes its own.
    builds = read_command(shared, "env", "list")
    assert "version 1" in log_of(end(first.rerun())) and "version 2" in log_of(end(fresh.rerun()))
    assert len(read_command(shared, "env", "list")) == len(builds) == 2
    found = read_command(shared, "compare", first.id, fresh.id)
    assert found["packages"] == [{"name": "demo-package", "values": ["1.0", "2.0"]}] and not found["environment"]


def test_resume_continues_from_the_files_of_a_run(shared: Workspace, experiment: Experiment, folder: Path) -> None:
    failed = end(submit(experiment, folder, arguments={"end": "fail"}), "Failed")
    told = run_command(shared, "resume", failed.id, "--set", "epochs=5", "--set", "end=well", "--wait").stdout
    assert f"resumed {failed.id} True" in told
    resumed = next(experiment.get_runs())
    assert resumed.get_metrics()["start"] == 2 and "outputs/checkpoint-0.json" in resumed.get_file_names()
    assert f"resumes     {failed.id}" in run_command(shared, "show", resumed.id).stdout
    lineage = shared.connection.call("runs.lineage", run_id=failed.id)
    assert [link["run_id"] for link in lineage["resumed_by"]] == [resumed.id] and not lineage["reruns"]
    lineage = shared.connection.call("runs.lineage", run_id=resumed.id)
    assert lineage["is_resumed"] and lineage["origin_id"] == failed.id
    # The earlier run stays as it was. A completed one is continued too, even if its working folder is gone.
    assert json.loads(_read(failed, "outputs/checkpoint-0.json")) == 2 and failed.get_status() == "Failed"
    resumed.clean()
    longer = end(resumed.resume(settings={"epochs": 7}))
    assert longer.get_metrics()["start"] == 5 and json.loads(_read(longer, "outputs/checkpoint-0.json")) == 7
    assert f"resumed {resumed.id} False" in log_of(longer)


def test_resume_of_a_canceled_distributed_run(shared: Workspace, experiment: Experiment, folder: Path) -> None:
    ComputeTarget.create(shared, "pair", LocalCompute.configuration(nodes=2))
    settings = {"compute_target": "pair", "node_count": 2, "distributed_training": Gloo()}
    run = submit(experiment, folder, PyTorch, arguments={"end": "wait"}, **settings)
    until(lambda: "outputs/waits" in run.get_file_names())
    with pytest.raises(UserErrorException, match="has not ended"):
        run.resume()
    until(lambda: len([name for name in run.get_file_names() if "checkpoint" in name]) == 2)
    run.cancel()
    end(run, "Canceled")
    resumed = end(run.resume(settings={"end": "well", "epochs": 3}))
    assert resumed.get_metrics_by_rank("start") == {0: {"start": 2}, 1: {"start": 2}}


def test_mistakes_have_one_clear_error(shared: Workspace, experiment: Experiment, folder: Path, tmp_path: Path) -> None:
    run = end(submit(experiment, folder))
    mistakes: list[tuple[tuple[str, ...], int, str]] = [
        (("rerun", "nothing"), 4, "there is no run 'nothing'"),
        (("rerun", run.id, "--set", "lr"), 2, "--set 'lr' is not NAME=VALUE"),
        (("rerun", run.id, "--set", "taget=x"), 2, "Did you mean target?"),
        (("rerun", run.id, "--set", "target=x"), 4, "there is no compute target 'x'"),
        (("rerun", run.id, "--set", "nodes=2"), 2, "it has one node"),
        (("rerun", run.id, "--set", "max_retries=-1"), 2, "not a whole number"),
        (("rerun", run.id, "--source", str(tmp_path / "gone")), 2, "Name the folder with --source"),
        (("rerun", run.id, "--source", str(tmp_path)), 2, "there is no script train.py"),
        (("rerun", run.id, "--fresh-env"), 2, "not installed by Trainmaster"),
    ]
    for words, code, text in mistakes:
        done = run_command(shared, *words, code=code)
        assert text in done.stderr, done.stderr


def _read(run: Run, name: str) -> bytes:
    return run._files.read(name)

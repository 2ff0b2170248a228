"""Names, tags, notes and archiving: on the command line and in programs, over both backends."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends import folder_of
from tests.conftest import ended, stop_dispatcher, until

from trainmaster import Estimator, Experiment, Run, Workspace
from trainmaster.cli.entry import run as run_command
from trainmaster.job.errors import RunNotFoundException
from trainmaster.sdk.report.writing import write_report
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")
EVIL = "<img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture
def command(shared: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in the shared workspace; returns what it prints."""
    place = shared.backend.as_config()
    where = place.get("path") or f"{place['server']}/w/{shared.name}"

    def call(*argv: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run_command([*argv, "--workspace", where]) == code, capsys.readouterr()
        printed = capsys.readouterr()
        return printed.out if code == 0 else printed.err

    return call


@pytest.fixture(scope="module")
def finished(shared: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Makes runs without a job that have ended."""

    def make(experiment: str = "organised", **labels: Any) -> Run:
        run = Experiment(shared, experiment).start_logging(snapshot_directory=None, **labels)
        run.complete()
        return run

    return make


def test_tags_are_set_shown_and_removed(command: Any, finished: Callable[..., Run]) -> None:
    run = finished()
    assert command("tag", run.id).strip() == f"{run.id}: no tags"
    assert command("tag", run.id, "kind=a=b", "good").strip() == f"{run.id}: kind=a=b, good"
    assert run.get_tags() == {"kind": "a=b", "good": None}
    data = json.loads(command("tag", run.id, "kind=c", "--remove", "good", "--json"))
    assert data["tags"] == run.get_tags() == {"kind": "c"}
    assert "kind=c" in command("runs", "-e", "organised")
    assert "is both set and removed" in command("tag", run.id, "a=1", "--remove", "a", code=2)
    assert "is not NAME=VALUE" in command("tag", run.id, "=1", code=2)


def test_a_name_is_shown_everywhere(command: Any, finished: Callable[..., Run], tmp_path: Path) -> None:
    run = finished("named")
    assert "NAME" not in command("runs", "-e", "named")
    assert command("name", run.id, "first with", "dropout").strip() == f"{run.id} is now 'first with dropout'"
    assert command("name", run.id).strip() == "first with dropout"
    lines = command("runs", "-e", "named").splitlines()
    assert "NAME" in lines[0] and "first with dropout" in lines[1]
    assert "first with dropout" in command("show", run.id)
    assert run.get_details()["displayName"] == "first with dropout" == run.display_name
    assert json.loads(command("runs", "-e", "named", "--where", 'name ~ "first*"', "--json"))[0]["id"] == run.id
    run.display_name = "second"
    assert json.loads(command("show", run.id, "--json"))["display_name"] == "second"
    write_report(run.experiment.workspace, run.id, tmp_path / "report.html")
    assert "<h1>second</h1>" in (tmp_path / "report.html").read_text()
    command("name", run.id, "")
    assert json.loads(command("show", run.id, "--json"))["display_name"] == run.id


def test_a_run_is_named_at_its_submit(shared: Workspace, project: Callable[..., Path]) -> None:
    estimator = Estimator(str(project(train="")), entry_script="train.py", user_managed=True, compute_target="local")
    run = Experiment(shared, "submitted").submit(estimator, display_name="from the start", tags={"kind": "x"})
    assert run.display_name == "from the start"
    details = ended(run)
    assert (details["displayName"], details["tags"], details["description"]) == ("from the start", {"kind": "x"}, "")


def test_a_note_comes_from_words_a_file_or_a_pipe(
    command: Any, finished: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished("noted")
    assert command("note", run.id) == ""
    command("note", run.id, "# Finding\n\n- *lr* is too high")
    assert run.get_details()["description"] == "# Finding\n\n- *lr* is too high"
    assert command("note", run.id) == "# Finding\n\n- *lr* is too high\n"
    assert "  # Finding\n\n  - *lr* is too high\n" in command("show", run.id)
    (tmp_path / "note.md").write_text("from größe\n")
    assert (
        json.loads(command("note", run.id, "--file", str(tmp_path / "note.md"), "--json"))["description"]
        == "from größe"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    command("note", run.id, "-")
    assert Run.get(run.experiment.workspace, run.id).description == "from a pipe"
    assert "Specify only one" in command("note", run.id, "x", "--file", "y", code=2)
    assert "cannot be read" in command("note", run.id, "--file", str(tmp_path / "absent"), code=2)
    command("note", run.id, "")
    assert command("note", run.id) == ""


def test_a_note_is_only_text(command: Any, finished: Callable[..., Run], tmp_path: Path) -> None:
    run = finished("evil")
    command("note", run.id, EVIL)
    command("name", run.id, EVIL)
    assert "\x1b" not in command("runs", "-e", "evil")
    write_report(run.experiment.workspace, run.id, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<img src=x" not in text and "&lt;img src=x" in text


def test_archived_runs_are_left_out_of_lists(command: Any, finished: Callable[..., Run]) -> None:
    first, second = finished("stored"), finished("stored")
    assert command("archive", first.id, second.id).splitlines() == [
        f"{first.id} is archived",
        f"{second.id} is archived",
    ]
    assert json.loads(command("archive", first.id, "--json")) == {"archived": []}
    assert json.loads(command("runs", "-e", "stored", "--json")) == []
    assert len(json.loads(command("runs", "-e", "stored", "--archived", "--json"))) == 2
    assert "archived" in command("runs", "-e", "stored", "--archived")
    found = json.loads(command("runs", "-e", "stored", "--archived", "--columns", "id", "--json"))
    assert [each["id"] for each in found] == [second.id, first.id]
    assert json.loads(command("restore", first.id, "--json")) == {"restored": [first.id]}
    second.restore()
    assert len(list(Run.list(first.experiment))) == 2
    first.archive()
    assert [run.id for run in Run.list(first.experiment)] == [second.id]


# Retention rules


def test_a_dry_run_says_why_each_run_stays_or_goes(command: Any, shared: Workspace) -> None:
    experiment = Experiment(shared, "retained")
    runs = [experiment.start_logging(snapshot_directory=None) for _ in range(5)]
    for number, run in enumerate(runs):
        run.log("accuracy", [0.9, 0.5, 0.4, 0.3, 0.2][number])
    child = runs[2].child_run("a trial")
    child.tag("good")
    child.complete()
    for run in runs[:4]:
        run.complete()
    model = tmp_file(runs[3])
    runs[3].upload_file("outputs/model.txt", str(model))
    Run.get(shared, runs[3].id).register_model("retained", "outputs/model.txt")
    plan = json.loads(
        command(
            "retention", "apply", "retained", "--dry-run", "--rule", "best 1 by accuracy, tagged", "--now", "--json"
        )
    )
    assert plan["remove"] == [runs[1].id]
    assert {each["run"]: each["reason"] for each in plan["keep"]} == {
        runs[0].id: "best 1 by accuracy highest",
        runs[2].id: "tagged",
        runs[3].id: "a model was registered from it",
    }
    spared = command("retention", "apply", "retained", "--dry-run", "--rule", "newest 1")
    assert "it ended less than 60 minutes ago" in spared
    assert "has no retention rule" in command("retention", "apply", "retained", code=2)
    assert "best 1 by accuracy highest, tagged" in command("retention", "set", "retained", "best 1 by accuracy, tagged")
    assert "best 1 by accuracy highest, tagged" in command("retention", "show")
    assert json.loads(command("retention", "apply", "retained", "--json"))["removed"] == []
    done = json.loads(command("retention", "apply", "retained", "--now", "--json"))
    assert done["removed"] == [runs[1].id]
    left = {run.id for run in Run.list(experiment, include_children=True)}
    assert left == {runs[0].id, runs[2].id, runs[3].id, runs[4].id, child.id}
    command("retention", "delete", "retained")
    assert json.loads(command("retention", "show", "--json")) == []
    assert "has no retention rule" in command("retention", "delete", "retained", code=2)
    runs[4].complete()


def tmp_file(run: Run) -> Path:
    path = Path(os.environ["TRAINMASTER_HOME"]) / f"{run.id}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("weights")
    return path


def test_wrong_rules_are_refused(command: Any, finished: Callable[..., Run]) -> None:
    finished("ruled")
    assert "does not say whether low or high" in command("retention", "set", "ruled", "best 5 by loss", code=2)
    assert "is not a part of a retention rule" in command("retention", "set", "ruled", "oldest 5", code=2)
    assert "there is no experiment 'absent'" in command("retention", "set", "absent", "newest 1", code=2)
    assert "--rule needs --dry-run" in command("retention", "apply", "ruled", "--rule", "newest 1", code=2)


@pytest.mark.local_only("the variable is that of the dispatcher")
def test_the_dispatcher_applies_a_rule_by_itself(
    workspace: Workspace, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_dispatcher(WorkspaceFolder(folder_of(workspace)))
    monkeypatch.setenv("TRAINMASTER_RETENTION_GRACE_SECONDS", "0")
    experiment = Experiment(workspace, "applied")
    workspace.connection.call("retention.set", experiment="applied", rule="newest 2")
    estimator = Estimator(str(project(train="")), entry_script="train.py", user_managed=True, compute_target="local")
    runs = [experiment.submit(estimator) for _ in range(3)]
    for run in runs:
        with contextlib.suppress(RunNotFoundException):
            ended(run)
    until(lambda: {run.id for run in Run.list(experiment)} == {runs[1].id, runs[2].id})


def test_rules_in_a_program(shared: Workspace) -> None:
    experiment = Experiment(shared, "by-program")
    for number in range(3):
        run = experiment.start_logging()
        run.log("loss", number)
        run.complete()
    assert experiment.retention.rule is None
    assert experiment.retention.set("newest 2") == experiment.retention.rule == "newest 2"
    assert all(each.is_kept for each in experiment.retention.dry_run())
    verdicts = experiment.retention.dry_run("best 1 by loss lowest", at_once=True)
    assert sorted(each.is_kept for each in verdicts) == [False, False, True]
    deleted = experiment.retention.apply(at_once=True)
    assert len(deleted) == 1 and len(list(experiment.get_runs())) == 2
    assert experiment.retention.delete() and not experiment.retention.delete()
    assert experiment.retention.rule is None

"""Names, tags, notes and archiving: on the command line and in programs, over both backends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended

from trainmaster import Estimator, Experiment, Run, Workspace
from trainmaster.cli.entry import run as run_command
from trainmaster.sdk.report.writing import write_report

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

"""Links of runs and experiments: to the studio if one runs, otherwise to a report."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.integration.test_studio_command import StudioProcess

from trainmaster import Experiment, RunDetails, StudioPage, Workspace
from trainmaster.cli.entry import run as run_command
from trainmaster.job.errors import UserErrorException
from trainmaster.notebook.widgets.page import page as write_widget
from trainmaster.notebook.widgets.view import look_at
from trainmaster.sdk.run.run import Run
from trainmaster.shared.filters import parse_filter

BACKENDS = ("local", "server")
LOGS = "print('hello')"


def start(workspace: Workspace) -> Run:
    return Experiment(workspace, "by-hand").start_logging(snapshot_directory=None)


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Iterator[StudioProcess]:
    process = StudioProcess(tmp_path)
    yield process
    process.end()


@pytest.mark.local_only("without a server there may be no studio")
def test_without_a_studio_a_run_has_a_report(workspace: Workspace) -> None:
    run = start(workspace)
    run.log("loss", 0.125)
    address = run.get_portal_url()
    report = Path(address.removeprefix("file://"))
    assert report == workspace.path / "runs" / run.id / "report.html"
    assert "Running" in report.read_text() and "trainmaster studio" in report.read_text()
    run.complete()
    assert run.get_portal_url() == address
    assert "Completed" in report.read_text() and "0.125" in report.read_text()
    # Written once more only if there can be something new.
    written = report.stat().st_mtime_ns
    assert Workspace(path=workspace.path).get_run(run.id).get_portal_url() == address
    assert report.stat().st_mtime_ns == written
    # It is not a file of the run.
    assert run.get_file_names() == []
    assert f'href="{address}"' in run._repr_html_()


@pytest.mark.local_only("the folder of a run")
def test_a_run_that_was_deleted_leaves_no_report(workspace: Workspace) -> None:
    run = start(workspace)
    run.complete()
    assert run_command(["runs", "delete", run.id, "--workspace", str(workspace.path)]) == 0
    assert run.get_portal_url().startswith("file://")
    assert not (workspace.path / "runs" / run.id).exists()


@pytest.mark.local_only("the studio of one person")
def test_with_a_studio_all_links_lead_there(
    workspace: Workspace,
    own: StudioProcess,
    submit: Callable[..., Run],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = submit(LOGS)
    page = f"{own.url}/w/tested/runs/{run.id}"
    run.wait_for_completion(show_output=True)
    assert capsys.readouterr().out.count(f"Web View: {page}\n") == 2
    assert run.get_portal_url() == page
    assert f'href="{page}"' in run._repr_html_()
    address = run.experiment.get_portal_url()
    assert address.startswith(f"{own.url}/w/tested/runs?filter=")
    parse_filter(unquote(address.partition("filter=")[2]), now=0.0)
    assert f'href="{page}"' in write_widget(look_at(run), 0.0)
    RunDetails(run).show()
    assert run_command(["show", run.id, "--json", "--workspace", str(workspace.path)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["page"] == page
    own.end()
    assert run.get_portal_url().startswith("file://")


def test_pages_of_a_server(workspace: Workspace, submit: Callable[..., Run], backend: Any) -> None:
    run = submit("from trainmaster import Run; print('page', Run.get_context().get_portal_url())")
    run.wait_for_completion()
    log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    if backend is None:
        assert log == "page \n"
        return
    page = f"{backend.url}/w/{workspace.name}/runs/{run.id}"
    assert run.get_portal_url() == page and log == f"page {page}\n"
    # A link that somebody has copied from the browser names the workspace too.
    assert run_command(["show", run.id, "--workspace", f"{backend.url}/w/{workspace.name}/runs"]) == 0


def test_the_pages_of_several_runs_and_of_nothing(workspace: Workspace) -> None:
    first, second = start(workspace), start(workspace)
    first.complete()
    second.complete()
    assert StudioPage([first, second])._path == f"compare?runs={first.id},{second.id}"
    assert StudioPage(workspace)._path == "runs"
    for nothing in ("a", [], None, [first, "b"]):
        with pytest.raises(UserErrorException, match="has no page"):
            StudioPage(nothing)


@pytest.mark.local_only("a folder of this machine")
def test_a_report_that_cannot_be_written_is_no_error(workspace: Workspace) -> None:
    run = start(workspace)
    run.complete()
    folder = workspace.path / "runs" / run.id
    folder.mkdir(exist_ok=True)
    (folder / "report.html").mkdir()
    (folder / "report.html" / "x").write_text("")
    os.utime(folder / "report.html", (0, time.time() - 1000))
    assert run.get_portal_url() == folder.as_uri()

"""The report of a run as HTML: everything about it in one file, without scripts and without requests."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.studio import check_accessibility, open_browser

from trainmaster import Experiment, Workspace
from trainmaster.cli.entry import run as run_command
from trainmaster.sdk.report.writing import write_report
from trainmaster.sdk.run.run import Run

BACKENDS = ("local", "server")

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
# Where charts are counted: a slow machine takes longer than a second, from which on a run is measured.
UNMEASURED = {"TRAINMASTER_SYSTEM_METRICS": "off"}

TRAIN = f"""
import os, sys
from trainmaster import Run

run = Run.get_context()
for step in range(300):
    run.log("loss", 1 / (step + 1))
run.log("{EVIL}", 1)
run.log("{EVIL}", 2)
run.tag("{EVIL}", "{EVIL}")
os.makedirs("outputs", exist_ok=True)
open("outputs/a&b<c>.txt", "w").write("x")
print("\\033[31m{EVIL}\\033[0m")
if "--fail" in sys.argv:
    raise ValueError("{EVIL}")
"""

ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "footer", "div", "span", "p", "h1", "h2"),
    *("table", "thead", "tbody", "tr", "th", "td", "pre", "strong", "details", "summary"),
    *("figure", "figcaption", "img", "svg", "path", "text", "circle"),
}


class Elements(HTMLParser):
    """What a browser would make of the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


def check_harmless(text: str) -> Elements:
    """Nothing runs and nothing is loaded."""
    found = Elements(text)
    assert set(found.names) <= ALLOWED
    for name, value in found.attributes:
        assert not name.startswith("on") and name not in ("href", "style", "action", "srcdoc")
        assert name != "src" or str(value).startswith("data:image/")
    assert "url(" not in text and "@import" not in text
    return found


def write(workspace: Workspace, run: Run, place: Path) -> str:
    write_report(workspace, run.id, place / "report.html")
    return (place / "report.html").read_text()


def test_a_failed_run(launch: Callable[..., Run], shared: Workspace, tmp_path: Path) -> None:
    run = launch(TRAIN, script_params={"--lr": 0.25, "--note": EVIL, "--fail": ""}, environment_variables=UNMEASURED)
    run.wait_for_completion(raise_on_error=False)
    text = write(shared, run, tmp_path)
    found = check_harmless(text)
    # The state and its reason come before everything else.
    assert found.words.index("ValueError") < found.words.index("Submitted by")
    assert f"ValueError: {EVIL}" in found.words
    for shown in (run.id, "Failed", "0.25", "300 values", "70_driver_log", "outputs/a&b<c>.txt", "restore_snapshot"):
        assert shown in found.words, shown
    assert found.names.count("svg") == 2
    assert "\x1b" not in text


def test_the_command(
    launch: Callable[..., Run], shared: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: Any
) -> None:
    run = launch("print('hello')", max_run_duration_seconds=77)
    run.wait_for_completion()
    place = shared.name if backend else str(shared.path)
    options = ["--html", str(tmp_path / "r.html"), "--workspace", place]
    assert run_command(["show", run.id, *options]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/r.html\n"
    assert "hello" in check_harmless((tmp_path / "r.html").read_text()).words
    assert run_command(["show", run.id, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": run.id, "file": f"{tmp_path}/r.html"}
    assert run_command(["show", run.id, "--html", str(tmp_path / "no" / "r.html"), "--workspace", place]) == 2


def test_how_to_repeat_a_run_works(
    launch: Callable[..., Run], shared: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch("import sys; print('arguments', sys.argv[1:])", script_params={"--lr": 0.5})
    run.wait_for_completion()
    words = Elements(write(shared, run, tmp_path)).words
    program = words[words.index("import shutil") : words.index("Written by")]
    monkeypatch.chdir(tmp_path)
    shared.write_config()
    (tmp_path / "repeat.py").write_text(program)
    runpy.run_path(str(tmp_path / "repeat.py"))
    again = next(Experiment(shared, run.experiment.name).get_runs())
    assert again.id != run.id
    again.wait_for_completion()
    assert "arguments ['--lr', '0.5']" in check_harmless(write(shared, again, tmp_path)).words


def test_many_metrics_and_a_long_log_stay_small(launch: Callable[..., Run], shared: Workspace, tmp_path: Path) -> None:
    script = """
from trainmaster import Run
run = Run.get_context()
for name in range(1000):
    for step in range(100):
        run.log(f"metric {name}", step * name)
for line in range(400_000):
    print("a line of the log", line)
print("the last line")
"""
    run = launch(script, environment_variables=UNMEASURED)
    run.wait_for_completion()
    text = write(shared, run, tmp_path)
    assert len(text) < 6_000_000
    found = check_harmless(text)
    assert found.names.count("svg") == 1000
    assert "the last line" in found.words and "only its last lines" in found.words


def test_a_run_that_still_logs(shared: Workspace, tmp_path: Path) -> None:
    run = Experiment(shared, "by-hand").start_logging(snapshot_directory=None)
    run.log("loss", float("nan"))
    run.log("loss", 3)
    run.log_table("table", {"x": [1, 2], "y": [EVIL, EVIL]})
    run.flush()
    text = write(shared, run, tmp_path)
    assert "Running" in check_harmless(text).words
    run.complete()
    assert "Completed" in check_harmless(write(shared, run, tmp_path)).words


def test_the_policy_forbids_scripts_and_requests(shared: Workspace, tmp_path: Path) -> None:
    run = Experiment(shared, "by-hand").start_logging(snapshot_directory=None)
    run.complete()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', write(shared, run, tmp_path))
    assert policy and "default-src &#x27;none&#x27;" in policy[1] and "unsafe" not in policy[1]


@pytest.mark.local_only("what the browser shows is the same")
def test_in_a_browser(launch: Callable[..., Run], shared: Workspace, tmp_path: Path) -> None:
    """Nothing of what a run contains is executed, the file loads nothing, and axe finds nothing serious."""
    run = launch(TRAIN, script_params={"--note": EVIL, "--fail": ""})
    run.wait_for_completion(raise_on_error=False)
    write(shared, run, tmp_path)
    # What a mistake in the escaping would do: the policy stops it.
    spoiled = (tmp_path / "report.html").read_text().replace("</main>", f"{EVIL}</main>")
    (tmp_path / "spoiled.html").write_text(spoiled)
    with open_browser() as browser:
        for theme in ("light", "dark"):
            page = browser.new_page(
                color_scheme="dark" if theme == "dark" else "light", viewport={"width": 390, "height": 800}
            )
            requests: list[str] = []
            dialogs: list[str] = []
            page.on("request", lambda request, requests=requests: requests.append(request.url))
            page.on("dialog", lambda dialog, dialogs=dialogs: dialogs.append(dialog.message) or dialog.dismiss())
            page.goto((tmp_path / "report.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            check_accessibility(page)
            assert len(requests) == 1 and not dialogs
            page.goto((tmp_path / "spoiled.html").as_uri())
            page.wait_for_function("document.images.length > 0")
            assert not dialogs
            page.close()

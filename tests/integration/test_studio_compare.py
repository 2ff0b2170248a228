"""The studio's page that compares runs, in a browser, with real runs that differ in code, packages and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.conftest import until
from tests.studio import Studio, refuse_until_retried
from tests.studio_team import ATTACK, ask, use_workspace

from trainmaster import Estimator, Experiment, Run

_SCRIPT = """
import sys
from azureml.core import Run

run = Run.get_context()
rate = float(sys.argv[sys.argv.index("--rate") + 1])


def learn(step):
    return 1 - rate ** (step + 1)


for step in range(10):
    run.log("accuracy", learn(step))
    run.log("loss", 1 - learn(step))
"""
# A name that is a file's and an attack at the same time: it has no slash.
_FILE = "<img src=x onerror=alert(1)>.py"


class Runs:
    """Two runs with an environment each, and one that a program logs to itself."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        size = {"engine": "local", "nodes": 4, "cpus_per_node": 8, "gpus_per_node": 0}
        ask(studio, "PUT", "/targets/box", {**size, "options": {"class": "LocalCompute"}})
        changed = _SCRIPT.replace("return 1 - rate", f"# {ATTACK}\n    return 0.9 - rate")
        with use_workspace(studio, "contributor", folder / "cache") as workspace:
            self.experiment = Experiment(workspace, "compared")
            self.first = self._submit(folder, "first", {"train.py": _SCRIPT}, 0.5, ["idna==3.6", "packaging==24.0"])
            files = {"train.py": changed, _FILE: f"print('{ATTACK}')\n"}
            self.second = self._submit(folder, "second", files, 0.4, ["packaging==24.1", "six==1.16.0"])
            self.second.tag(ATTACK, ATTACK)
            for run in (self.first, self.second):
                run.wait_for_completion()
            self.program = Experiment(workspace, "elsewhere").start_logging(snapshot_directory=None)
            self.program.log("accuracy", 0.25)
            self.program.flush()

    def _submit(self, folder: Path, name: str, files: dict[str, str], rate: float, packages: list[str]) -> Run:
        code = folder / name
        code.mkdir()
        for file, text in files.items():
            (code / file).write_text(text)
        estimator = Estimator(
            str(code),
            entry_script="train.py",
            compute_target="box",
            script_params={"--rate": rate, "--seed": 7},
            pip_packages=packages,
        )
        run = self.experiment.submit(estimator)
        run.display_name = f"{name} {ATTACK}" if name == "second" else name
        return run

    def page(self, *more: str, **query: str) -> str:
        given = "".join(f"&{name}={value}" for name, value in query.items())
        return f"compare?runs={','.join([self.first.id, self.second.id, *more])}{given}"


@pytest.fixture(scope="module", autouse=True)
def runs(studio_server: Studio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    found = Runs(studio_server, tmp_path_factory.mktemp("compare"))
    yield found
    # It would look for the server after its end.
    found.program.complete()


def test_the_table_shows_only_what_differs_and_marks_the_best(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page(), "reader")
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    table = page.get_by_role("group", name="Table of differences")
    expect(table.get_by_role("row", name="rate")).to_contain_text("0.5")
    expect(table.get_by_role("row", name="accuracy")).to_contain_text(re.compile(r"0\.99902 ★.*0\.8999"))
    expect(table.get_by_role("row", name="pip_packages")).to_contain_text("idna==3.6, packaging==24.0")
    expect(table.get_by_role("row", name=ATTACK).first).to_be_visible()
    expect(table.get_by_role("row", name="seed")).to_have_count(0)
    page.get_by_label("Only what differs").uncheck()
    expect(table.get_by_role("row", name="seed 7 7")).to_be_visible()
    expect(page).to_have_url(re.compile("all=1"))
    page.get_by_label("Results show the").select_option("lowest value")
    expect(table.get_by_role("row", name="accuracy")).to_contain_text(re.compile(r"0\.5.*0\.5"))
    assert page.locator("main img").count() == 0


def test_the_baseline_is_chosen_and_runs_are_removed_and_added(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page())
    row = page.get_by_role("group", name="Table of differences").get_by_role("row", name="accuracy")
    expect(row.get_by_role("cell").nth(1)).to_contain_text("−0.09")
    page.get_by_label("Baseline second").check()
    expect(page).to_have_url(re.compile(f"base={runs.second.id}"))
    expect(row.get_by_role("cell").nth(0)).to_contain_text("+0.09")

    # A run of another experiment, which has no job, and one that is not there.
    for each in (runs.program.id, "gone_1"):
        page.get_by_label("Id of a run").fill(each)
        page.get_by_role("button", name="Add run").click()
    expect(page.get_by_role("heading", name="Compare 3 runs")).to_be_visible()
    expect(page.get_by_text("Not in this workspace, or deleted: gone_1.")).to_be_visible()
    expect(page.get_by_role("row", name="experiment")).to_contain_text("elsewhere")
    page.get_by_role("button", name="Leave out").click()
    expect(page.get_by_text("Not in this workspace")).to_have_count(0)
    page.get_by_role("button", name="Remove first").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Compare 3 runs")).to_be_visible()


def test_code_and_packages_of_two_runs_are_compared_line_by_line(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page(tab="code"), "reader")
    packages = page.get_by_role("group", name="Packages that differ")
    for name, words in (("idna", "removed 3.6 none"), ("packaging", "changed 24.0 24.1"), ("six", "added none 1.16.0")):
        expect(packages.get_by_role("row", name=f"{name} {words}")).to_be_visible()
    expect(page.get_by_role("heading", name="2 files differ")).to_be_visible()
    lines = page.get_by_role("group", name="Lines of train.py")
    expect(lines.get_by_role("row", name="6 equal lines")).to_be_visible()
    expect(lines.get_by_role("row", name=re.compile(r"^10 removed: return 1 - rate"))).to_be_visible()
    expect(lines.get_by_role("row", name=re.compile(rf"^10 added: # {re.escape(ATTACK)}"))).to_be_visible()
    expect(page.get_by_role("group", name=f"Lines of {_FILE}")).to_contain_text(f"print('{ATTACK}')")
    page.get_by_label("Show lines").select_option("side by side")
    expect(lines.get_by_role("row", name=re.compile(r"^10 removed: return 1 - rate.* 10 added: #"))).to_be_visible()
    page.get_by_role("button", name="Swap both runs").click()
    expect(packages.get_by_role("row", name="idna added none 3.6")).to_be_visible()
    assert page.locator("main img").count() == 0


def test_curves_of_all_runs_lie_over_each_other_and_grow(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page(runs.program.id, tab="curves"))
    chart = page.get_by_role("figure", name="accuracy")
    expect(chart.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_role("figure", name="loss").get_by_role("listitem")).to_have_count(2)
    expect(chart).to_contain_text("best 0.99902 by first")
    runs.program.log("accuracy", 0.9999)
    runs.program.flush()
    expect(chart).to_contain_text("best 0.9999 by")


def test_charts_are_brushed_over_the_chosen_axes(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page(tab="charts"))
    parallel = page.get_by_role("region", name="Parallel coordinates")
    image = parallel.get_by_role("img")
    expect(image).to_have_attribute(
        "aria-label",
        "Parallel coordinates of 2 runs over 3 axes: rate, accuracy, loss. 2 match the filters.",
    )
    parallel.get_by_text("Axes (3 of 3)").click()
    parallel.get_by_label("loss", exact=True).uncheck()
    parallel.get_by_text("Filters as fields").click()
    parallel.get_by_label("rate from").fill("0.45")
    parallel.get_by_label("rate from").press("Enter")
    expect(image).to_have_attribute("aria-label", re.compile("2 axes: rate, accuracy. 1 match the filters."))
    scatter = page.get_by_role("region", name="Scatter")
    scatter.get_by_label("Up").select_option("loss")
    expect(scatter.get_by_role("img")).to_have_attribute(
        "aria-label", "Scatter chart of loss over rate: 2 of 2 runs have both values."
    )


def test_archived_and_deleted_runs_are_named(studio: Studio, runs: Runs, tmp_path: Path) -> None:
    with use_workspace(studio, "contributor", tmp_path / "cache"):
        other = runs.experiment.start_logging(snapshot_directory=None)
        other.complete()
    until(lambda: ask(studio, "GET", f"/runs/{other.id}")["status"] == "Completed")
    ask(studio, "POST", "/archived-runs", {"run_ids": [other.id]})
    page = studio.open(runs.page(other.id))
    expect(page.get_by_text(f"Archived: {other.id}.")).to_be_visible()
    ask(studio, "DELETE", f"/runs/{other.id}")
    page.reload()
    expect(page.get_by_text(f"Not in this workspace, or deleted: {other.id}.")).to_be_visible()


def test_a_dropped_connection_is_said_and_made_good(studio: Studio, runs: Runs) -> None:
    page = studio.open("runs")
    refuse_until_retried(page, "/run-outlines")
    page.goto(f"/w/team/{runs.page(runs.program.id, tab='curves')}")
    expect(page.get_by_role("alert")).to_contain_text("the server cannot be reached")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/run" in request.url else None)
    page.get_by_role("button", name="Try again").click()
    chart = page.get_by_role("figure", name="accuracy")
    expect(chart.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(3)
    # One request is enough for all runs. A change in the feed may have asked it again.
    assert {url.rpartition("/")[2] for url in asked} == {"run-outlines"}
    studio.server.kill()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    studio.server.start()
    expect(page.get_by_text("The connection is lost.")).to_have_count(0)
    runs.program.log("accuracy", 0.99999)
    runs.program.flush()
    expect(chart).to_contain_text("best 0.99999 by")


def test_without_runs_the_page_says_what_to_do(studio: Studio) -> None:
    page = studio.open(f"compare?runs={ATTACK}")
    expect(page.get_by_text(f"Not in this workspace, or deleted: {ATTACK}.")).to_be_visible()
    page.get_by_role("button", name="Leave out").click()
    expect(page.get_by_text("Choose runs to compare.")).to_be_visible()
    page.get_by_role("link", name="table of runs").click()
    expect(page).to_have_url(re.compile("/w/team/runs$"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_no_serious_finding_of_axe(studio: Studio, runs: Runs, theme: str) -> None:
    page = studio.open(runs.page(runs.program.id), theme="dark" if theme == "dark" else "light")
    for tab, shown in (
        ("Differences", page.get_by_role("row", name="accuracy")),
        ("Curves", page.get_by_role("figure", name="accuracy")),
        ("Code and packages", page.get_by_role("group", name="Lines of train.py")),
        ("Charts", page.get_by_role("region", name="Scatter")),
    ):
        page.get_by_role("navigation", name="Parts of the comparison").get_by_role("link", name=tab).click()
        expect(shown).to_be_visible()
        studio.check_accessibility(page)


def test_a_phone_shows_it_without_scrolling_the_page_sideways(studio: Studio, runs: Runs) -> None:
    page = studio.open(runs.page(), width=390, height=844)
    for tab, shown in (
        ("Differences", page.get_by_role("row", name="accuracy")),
        ("Curves", page.get_by_role("figure", name="accuracy")),
        ("Code and packages", page.get_by_role("group", name="Lines of train.py")),
        ("Charts", page.get_by_role("region", name="Scatter")),
    ):
        page.get_by_role("navigation", name="Parts of the comparison").get_by_role("link", name=tab).click()
        expect(shown).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab

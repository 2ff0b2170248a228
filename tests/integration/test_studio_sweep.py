"""The studio's pages of sweeps, in a browser, with a real sweep that goes on while they are open."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.conftest import until
from tests.made_sweeps import sweep_of
from tests.studio import Studio, refuse_until_retried
from tests.studio_team import ATTACK, ask, use_workspace

from trainmaster import (
    BanditPolicy,
    Estimator,
    Experiment,
    HyperDriveConfig,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
    uniform,
)
from trainmaster.shared.serialization import to_plain

# Best at x = 0.3. Trials wait for a file before they go on, so that a test can look at them before. Weak ones report
# until they are cut. Strong ones wait for a second file, so that the policy decides on one of them before its end.
_SCRIPT = """
import os, sys, time
from azureml.core import Run
run = Run.get_context()
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
x = float(given["--x"])
is_weak = given["--kind"] == "weak"
top = 1 - (x - 0.3) ** 2 - (0.5 if is_weak else 0)
for step in range(3):
    run.log("score", top * (step + 1) / 4)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
for step in range(3, 400):
    run.log("score", top)
    if is_weak:
        time.sleep(0.2)
    while step == 10 and not is_weak and not os.path.exists(sys.argv[1] + "-decided"):
        time.sleep(0.05)
run.log("other", x)
"""


class Sweep:
    """Twelve trials, four at a time, which go on when `go_on` was called."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        self._studio = studio
        self._gate = folder / "gate"
        size = {"engine": "local", "nodes": 4, "cpus_per_node": 8, "gpus_per_node": 0}
        ask(studio, "PUT", "/targets/box", {**size, "options": {"class": "LocalCompute"}})
        code = folder / "code"
        code.mkdir()
        (code / "train.py").write_text(_SCRIPT)
        estimator = Estimator(
            str(code),
            entry_script="train.py",
            compute_target="box",
            script_params={str(self._gate): ""},
            user_managed=True,
        )
        space = {"--x": uniform(0, 1), "--kind": choice("strong", "weak"), f"--{ATTACK}": choice(ATTACK, "other")}
        config = HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=RandomParameterSampling(space, {"seed": 2}),
            policy=BanditPolicy(slack_amount=0.2, delay_evaluation=4),
            primary_metric_name="score",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=12,
            max_concurrent_runs=4,
        )
        with use_workspace(studio, "contributor", folder / "cache") as workspace:
            self.run_id = Experiment(workspace, "curves").submit(config).id

    @property
    def page(self) -> str:
        return f"sweeps/{self.run_id}"

    def go_on(self) -> None:
        self._gate.touch()
        until(self._has_kept_a_trial, what="a decision to keep a trial")
        self._gate.with_name("gate-decided").touch()

    def _has_kept_a_trial(self) -> bool:
        decisions = ask(self._studio, "GET", f"/sweeps/{self.run_id}/decisions")["decisions"]
        return any(not each["is_cut"] for each in decisions)


@pytest.fixture(scope="module", autouse=True)
def sweep(studio_server: Studio, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return Sweep(studio_server, tmp_path_factory.mktemp("sweep"))


@pytest.fixture
def ended(studio: Studio, sweep: Sweep) -> Sweep:
    """The sweep after its end, also if only one test runs."""
    sweep.go_on()
    page = studio.open(sweep.page)
    expect(page.locator("h1 + .status")).to_have_text("Completed")
    page.close()
    return sweep


def rows_of(page: Page) -> list[str]:
    return page.get_by_role("group", name="Trials").locator("tbody tr").all_inner_texts()


def test_trials_their_values_and_the_best_appear_while_the_sweep_goes_on(studio: Studio, sweep: Sweep) -> None:
    page = studio.open(sweep.page)
    listed = studio.open("sweeps")
    expect(page.get_by_role("heading", name=sweep.run_id)).to_be_visible()
    rows = page.get_by_role("group", name="Trials").locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(page.get_by_role("region", name="Best trial")).to_contain_text(re.compile(r"0\.7\d*"))
    expect(listed.get_by_role("row", name=sweep.run_id)).to_contain_text("4 of 12: 4 running or waiting")
    expect(page.get_by_role("button", name="Cancel sweep")).to_be_visible()

    sweep.go_on()
    expect(rows).to_have_count(12)
    expect(page.locator("h1 + .status")).to_have_text("Completed")
    expect(page.get_by_text(re.compile(r"12 of 12: \d+ completed, \d+ cut"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"cut at \d+")).first).to_be_visible()
    expect(page.get_by_role("button", name="Cancel sweep")).to_have_count(0)
    expect(listed.get_by_role("row", name=sweep.run_id)).to_contain_text("Completed")
    values = [float(row.split("\t")[3].split()[0]) for row in rows_of(page)]
    assert values == sorted(values, reverse=True)
    best = ask(studio, "GET", "/sweeps?limit=1")["sweeps"][0]["best"]
    expect(rows.first).to_contain_text(f"Trial {best['number']}")
    page.get_by_role("region", name="Best trial").get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"/runs/{best['run_id']}$"))


def test_a_brush_filters_the_table_and_is_in_the_address(studio: Studio, ended: Sweep) -> None:
    page = studio.open(ended.page)
    box = page.locator(".parallel canvas").last.bounding_box()
    assert box is not None
    # The first axis is x: its upper half.
    axis, top, bottom = box["x"] + 56, box["y"] + 34, box["y"] + box["height"] - 30
    page.mouse.move(axis, (top + bottom) / 2)
    page.mouse.down()
    page.mouse.move(axis, top + 20)
    page.mouse.move(axis, top - 5)
    page.mouse.up()
    chip = page.get_by_role("button", name="Clear filter x")
    expect(chip).to_be_visible()
    chosen = json.loads(page.evaluate("new URLSearchParams(location.search).get('brush')"))["--x"]
    view = ask(studio, "GET", f"/sweeps/{ended.run_id}")
    within = {f"Trial {each['number']}" for each in view["trials"] if each["parameters"]["--x"] >= chosen["from"]}
    assert 0 < len(within) < 12
    expect(page.get_by_text(f"{len(within)} of 12 trials match")).to_be_visible()
    assert {row.split("\t")[1].strip() for row in rows_of(page)} == within

    # A second axis by keyboard; a colleague who opens the address sees the same.
    page.get_by_text("Filters as fields").click()
    page.get_by_role("group", name="kind").get_by_label("strong").check()
    strong = {f"Trial {each['number']}" for each in view["trials"] if each["parameters"]["--kind"] == "strong"}
    expect(page.get_by_text(f"{len(within & strong)} of 12 trials match")).to_be_visible()
    other = studio.open(page.url.removeprefix(studio.server.url), "reader")
    expect(other.get_by_text(f"{len(within & strong)} of 12 trials match")).to_be_visible()
    page.get_by_role("button", name="Clear all").click()
    expect(page.get_by_role("group", name="Trials").locator("tbody tr")).to_have_count(12)

    # Another colour.
    page.get_by_label("Colour").select_option("kind")
    expect(page.locator(".plot-legend")).to_contain_text(re.compile("kind.*strong.*weak", re.DOTALL))

    # A click on a brushed axis clears it.
    page.mouse.move(axis, (top + bottom) / 2)
    page.mouse.down()
    page.mouse.move(axis, top)
    page.mouse.up()
    expect(chip).to_be_visible()
    page.mouse.click(axis, top + 3)
    expect(chip).to_have_count(0)


def test_a_finger_brushes_an_axis_and_scrolls_beside_it(studio: Studio, ended: Sweep) -> None:
    page = studio.open(ended.page, width=390, height=844, has_touch=True)
    canvas = page.locator(".parallel canvas").last
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    top, bottom = box["y"] + 34, box["y"] + box["height"] - 30
    drag_finger(page, box["x"] + 56, (top + bottom) / 2, top - 5)
    expect(page).to_have_url(re.compile("brush="))
    expect(page.get_by_text(re.compile(r"\d+ of 12 trials match"))).to_be_visible()
    address, scrolled = page.url, page.evaluate("scrollY")
    drag_finger(page, box["x"] + 104, bottom, top)
    until(lambda: page.evaluate("scrollY") > scrolled)
    assert page.url == address


def drag_finger(page: Page, x: float, start: float, end: float) -> None:
    """Move a finger up or down."""
    session = page.context.new_cdp_session(page)
    send = lambda kind, y: session.send(  # noqa: E731
        "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}] if kind != "touchEnd" else []}
    )
    send("touchStart", start)
    for part in range(1, 6):
        send("touchMove", start + (end - start) * part / 5)
    send("touchEnd", end)


def test_the_table_sorts_and_selected_trials_are_compared(studio: Studio, ended: Sweep) -> None:
    page = studio.open(ended.page)
    page.get_by_role("button", name="x", exact=True).click()
    expect(page).to_have_url(re.compile("sort=parameter"))
    order = [float(row.split("\t")[6]) for row in rows_of(page)]
    assert order == sorted(order)
    page.get_by_label("Select trial 3").check()
    page.get_by_label("Select trial 5").check()
    page.get_by_role("link", name="Compare 2 selected").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()


def test_every_decision_is_said_with_its_numbers(studio: Studio, ended: Sweep) -> None:
    page = studio.open(f"{ended.page}?tab=decisions")
    sentence = re.compile(
        r"Cut trial \d+ at interval \d+: [\d.]+ is worse than the best [\d.]+ "
        r"by more than the slack 0\.2 \(limit [\d.]+\)\."
    )
    expect(page.get_by_text(sentence).first).to_be_visible()
    cuts = sum(each["cut_interval"] is not None for each in ask(studio, "GET", f"/sweeps/{ended.run_id}")["trials"])
    expect(page.get_by_role("listitem")).to_have_count(cuts)
    page.get_by_label("Show").select_option("all")
    expect(
        page.get_by_text(re.compile(r"Kept trial \d+ at interval \d+: [\d.]+ is within the slack")).first
    ).to_be_visible()
    page.get_by_role("link", name="Specification").click()
    expect(page.get_by_role("region", name="Parameter space")).to_contain_text("uniform from 0 to 1")
    expect(page.get_by_role("region", name="Parameter space")).to_contain_text(f"one of {ATTACK}, other")
    expect(page.get_by_role("region", name="Sampling, policy and limits")).to_contain_text("12 in all, 4 at a time")


def test_charts_show_the_chosen_parameter_and_metric(studio: Studio, ended: Sweep) -> None:
    page = studio.open(f"{ended.page}?tab=charts")
    scatter = page.get_by_role("region", name="Scatter")
    expect(scatter.get_by_role("img")).to_have_attribute(
        "aria-label", "Scatter chart of score over x: 12 of 12 trials have both values."
    )
    scatter.get_by_label("Metric").select_option("other (last)")
    completed = sum(each["status"] == "Completed" for each in ask(studio, "GET", f"/sweeps/{ended.run_id}")["trials"])
    expect(scatter.get_by_role("img")).to_have_attribute(
        "aria-label", f"Scatter chart of other (last) over x: {completed} of 12 trials have both values."
    )
    scatter.get_by_text("Show as a table").click()
    expect(scatter.get_by_role("columnheader", name="other (last)")).to_be_visible()
    expect(page.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(10)
    importance = page.get_by_role("region", name="Importance of parameters")
    expect(importance).to_contain_text(re.compile(r"from 12 trials.*kind\s*\d+ %", re.DOTALL))
    expect(importance.get_by_role("term")).to_have_count(3)


def test_names_and_values_are_only_text(studio: Studio, ended: Sweep) -> None:
    page = studio.open(ended.page)
    expect(page.get_by_role("columnheader", name=ATTACK)).to_be_visible()
    page.get_by_text("Filters as fields").click()
    expect(page.get_by_label(ATTACK, exact=True).first).to_be_visible()
    page.get_by_text("Show as a table").click()
    assert page.locator("main img[src=x]").count() == 0
    gone = studio.open(f"sweeps/{ATTACK}")
    expect(gone.get_by_role("alert")).to_contain_text("there is no sweep '<img")


def test_a_reader_cannot_cancel_and_a_contributor_can(studio: Studio, sweep: Sweep, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("import time\ntime.sleep(600)\n")
    estimator = Estimator(str(code), entry_script="train.py", compute_target="box", user_managed=True)
    config = HyperDriveConfig(
        estimator=estimator,
        hyperparameter_sampling=RandomParameterSampling({"--x": uniform(0, 1)}),
        primary_metric_name="score",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=2,
        max_concurrent_runs=1,
    )
    with use_workspace(studio, "contributor", tmp_path / "cache") as workspace:
        run = Experiment(workspace, "long").submit(config)
    reader = studio.open(f"sweeps/{run.id}", "reader")
    expect(reader.get_by_role("heading", name=run.id)).to_be_visible()
    expect(reader.get_by_role("button", name="Cancel sweep")).to_have_count(0)
    page = studio.open(f"sweeps/{run.id}", "contributor")
    page.get_by_role("button", name="Cancel sweep").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel sweep").click()
    for each in (page, reader):
        expect(each.locator("h1 + .status")).to_have_text("Canceled")


def test_a_dropped_connection_is_said_and_made_good(studio: Studio, sweep: Sweep) -> None:
    page = studio.open("sweeps")
    refuse_until_retried(page, "/changes")
    page.goto(f"/w/team/{sweep.page}")
    expect(page.get_by_role("alert")).to_contain_text("the server cannot be reached")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name=sweep.run_id)).to_be_visible()


def test_ten_thousand_trials_are_drawn_and_filtered(studio: Studio) -> None:
    view = to_plain(sweep_of(10_000, 8))
    page = studio.open("runs")
    page.route(
        "**/sweeps/digits_1/changes*",
        lambda route: route.fulfill(json={"view": view, "version": "", "whole": True}),
    )
    page.goto("/w/team/sweeps/digits_1")
    image = page.get_by_role("img", name=re.compile("Parallel coordinates of 10000 trials over 9 axes"))
    expect(image).to_be_visible()
    # Only rows in view are drawn, down to the last.
    table = page.get_by_role("group", name="Trials")
    expect(table.get_by_role("table")).to_have_attribute("aria-rowcount", "10001")
    rows = table.locator("tbody tr[data-trial]")
    expect(rows.first).to_be_visible()
    first = rows.first.inner_text()
    assert rows.count() < 100
    table.evaluate("frame => { frame.scrollTop = frame.scrollHeight }")
    expect(table.locator("[aria-rowindex='10001']")).to_be_visible()
    assert rows.count() < 100
    table.evaluate("frame => { frame.scrollTop = 0 }")
    expect(table.locator("[aria-rowindex='2']")).to_have_text(re.compile(first.split("\t")[1]))
    page.get_by_text("Filters as fields").click()
    page.get_by_role("group", name="optimizer").get_by_label("adam").check()
    page.get_by_label("dropout from").fill("0.3")
    page.get_by_label("dropout from").press("Enter")
    adam = [each for each in view["trials"] if each["parameters"]["--optimizer"] == "adam"]
    count = sum(each["parameters"]["--dropout"] >= 0.3 for each in adam)
    expect(page.get_by_text(f"{count} of 10000 trials match")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_have_no_serious_finding_of_axe(studio: Studio, ended: Sweep, theme: str) -> None:
    page = studio.open("sweeps", theme="dark" if theme == "dark" else "light")
    expect(page.get_by_role("row", name=ended.run_id)).to_be_visible()
    studio.check_accessibility(page)
    page.get_by_role("link", name=ended.run_id).click()
    expect(page.get_by_role("region", name="Best trial")).to_be_visible()
    page.get_by_text("Filters as fields").click()
    studio.check_accessibility(page)
    for tab in ("Charts", "Decisions", "Specification"):
        page.get_by_role("navigation", name="Parts of the sweep").get_by_role("link", name=tab).click()
        expect(page.get_by_role("heading", level=2).first).to_be_visible()
        studio.check_accessibility(page)


def test_a_phone_shows_it_without_scrolling_the_page_sideways(studio: Studio, ended: Sweep) -> None:
    page = studio.open(ended.page, width=390, height=844)
    expect(page.get_by_role("region", name="Best trial")).to_be_visible()
    for tab in ("Trials", "Charts", "Decisions", "Specification"):
        page.get_by_role("navigation", name="Parts of the sweep").get_by_role("link", name=tab).click()
        expect(page.get_by_role("heading", level=2).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab

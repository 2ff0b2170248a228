"""The studio's page of a run, in a browser, with real jobs that train while it is open."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.conftest import until
from tests.studio import Studio
from tests.studio_team import ATTACK, ask

from trainmaster import Environment, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, Workspace

# Does what a file beside it says, one line after the other: log a metric, or end in one way or another.
_SCRIPT = """
import os, sys, time
from trainmaster import Run
run = Run.get_context()
rank = int(os.environ.get("RANK", "0"))
done = 0
while True:
    with open(sys.argv[1]) as file:
        lines = file.read().split("\\n")[:-1]
    for line in lines[done:]:
        verb, _, rest = line.partition(" ")
        if verb == "log":
            name, value = rest.split()
            run.log(name, float(value) + rank)
        if verb == "end":
            sys.exit(0)
        if verb == "raise" and rank == int(rest.split()[0]):
            print("about to fail")
            raise ValueError(rest.split(" ", 1)[1])
        done += 1
    time.sleep(0.02)
"""


class Job:
    """A real run whose script does what the test tells it to."""

    def __init__(self, run: Run, orders: Path) -> None:
        self.run = run
        self.id = run.id
        self._orders = orders

    def tell(self, *lines: str) -> None:
        with self._orders.open("a") as file:
            file.writelines(line + "\n" for line in lines)


class Jobs:
    """Submits runs to a target with one node."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        self.studio = studio
        self.folder = folder
        self.workspace = Workspace(path=studio.server.root / "workspaces" / "team")
        (folder / "code").mkdir()
        (folder / "code/train.py").write_text(_SCRIPT)
        size = {"engine": "local", "nodes": 1, "cpus_per_node": 1, "gpus_per_node": 0}
        ask(studio, "PUT", "/targets/single", size)
        self._count = 0

    def submit(self, *further: str, processes: int = 1, target: str = "local") -> Job:
        self._count += 1
        orders = self.folder / f"orders-{self._count}"
        orders.touch()
        environment = Environment("own")
        environment.python.user_managed_dependencies = True
        config = ScriptRunConfig(
            str(self.folder / "code"),
            script="train.py",
            arguments=[str(orders), *further],
            compute_target=target,
            environment=environment,
            distributed_job_config=PyTorchConfiguration("Gloo", process_count=processes) if processes > 1 else None,
        )
        return Job(Experiment(self.workspace, "digits").submit(config), orders)

    def start_logging(self) -> Run:
        return Experiment(self.workspace, "digits").start_logging(snapshot_directory=None)

    def status(self, run_id: str) -> str:
        return str(ask(self.studio, "GET", f"/runs/{run_id}")["status"])


@pytest.fixture(scope="module")
def jobs_of_module(studio_server: Studio, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(studio_server, tmp_path_factory.mktemp("run-page"))


@pytest.fixture
def jobs(jobs_of_module: Jobs, studio: Studio) -> Jobs:
    return jobs_of_module


@pytest.fixture(scope="module")
def failed(jobs_of_module: Jobs) -> str:
    """A run with two ranks, the second of which failed."""
    job = jobs_of_module.submit(processes=2)
    job.tell("log train/loss 0.5", "log train/loss 0.25")
    summaries = f"/runs/{job.id}/metric-summaries"
    until(lambda: [each["count"] for each in ask(jobs_of_module.studio, "GET", summaries)["metrics"]] == [4])
    job.tell(f"raise 1 the loss is {ATTACK}")
    until(lambda: jobs_of_module.status(job.id) == "Failed")
    return job.id


def expect_state(page: Page, name: str) -> None:
    expect(page.locator(".run-header .status")).to_have_text(name)


def test_values_and_states_appear_while_the_run_trains(jobs: Jobs) -> None:
    job = jobs.submit()
    page = jobs.studio.open(f"runs/{job.id}")
    expect_state(page, "Running")
    metrics = page.get_by_role("region", name="Metrics")
    job.tell("log train/loss 0.5")
    expect(metrics.get_by_role("row", name="train/loss")).to_contain_text("0.5")
    page.get_by_role("link", name="Charts", exact=True).first.click()
    # One value is a number; two are a line.
    expect(page.get_by_role("definition")).to_have_text("0.5")
    job.tell("log train/loss 0.25")
    chart = page.get_by_role("figure", name="train/loss")
    expect(chart.locator(".chart-numbers")).to_contain_text("0.25 best 0.25 at step 1")
    job.tell("log train/loss 0.75", "log val/accuracy 1", "log val/accuracy 0.5")
    expect(chart.locator(".chart-numbers")).to_contain_text("0.75 best 0.25 at step 1")
    expect(page.get_by_role("figure", name="val/accuracy").locator("canvas")).to_be_visible()
    expect(chart.get_by_role("img")).to_have_attribute(
        "aria-label", "train/loss. 3 values, last 0.75 at step 2, smallest 0.25 at step 1, largest 0.75 at step 2."
    )
    # What it uses of the machine is measured meanwhile, and stands apart.
    system = page.get_by_role("region", name="System use")
    expect(system.get_by_role("figure", name="system/memory_gb").locator("canvas")).to_be_visible()
    job.tell("end")
    expect_state(page, "Completed")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()


def test_a_failed_run_shows_its_exception_and_rank(jobs: Jobs, failed: str) -> None:
    page = jobs.studio.open(f"runs/{failed}")
    state = page.get_by_role("region", name="State")
    expect(state.locator("strong")).to_have_text(f"ValueError: the loss is {ATTACK}")
    expect(state).to_contain_text("Rank 1, node 0, exit code 1")
    expect(state.get_by_label("Last lines")).to_contain_text("about to fail")
    expect(page.locator("img[src=x]")).to_have_count(0)
    state.get_by_role("link", name="All logs").click()
    expect(page).to_have_url(re.compile(f"/runs/{failed}/logs"))


def test_a_run_that_hung_shows_where_each_rank_was(jobs: Jobs) -> None:
    run = jobs.start_logging()
    frame = f'File "train.py", line 7 in wait_for_{ATTACK}'
    details = {"hang_seconds": 90, "stacks": {"0": frame, "1": frame}, "hint": f"Look at {ATTACK}."}
    error = {"code": "Hanging", "message": "all ranks were silent for 90 s", "details": details}
    ask(jobs.studio, "POST", f"/runs/{run.id}/finish", {"status": "Failed", "error": error})
    page = jobs.studio.open(f"runs/{run.id}", "reader")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.locator("strong")).to_have_text("all ranks were silent for 90 s")
    expect(state).to_contain_text("silent for 1 min 30 s")
    expect(state).to_contain_text(f"Look at {ATTACK}.")
    ranks = state.get_by_role("region", name="Where each rank was").locator("details")
    expect(ranks).to_have_count(2)
    ranks.nth(1).locator("summary").click()
    expect(ranks.nth(1).locator("pre")).to_contain_text(frame)
    expect(page.locator("img[src=x]")).to_have_count(0)


def test_each_rank_has_a_line_of_its_own(jobs: Jobs, failed: str) -> None:
    page = jobs.studio.open(f"runs/{failed}/charts")
    lines = page.get_by_role("figure", name="train/loss").get_by_role("list", name="Lines")
    expect(lines.get_by_role("button")).to_have_text(["Rank 0", "Rank 1"])
    image = page.get_by_role("figure", name="train/loss").get_by_role("img")
    expect(image).to_have_attribute("aria-label", re.compile("Rank 1: 2 values, last 1.25 at step 1"))
    lines.get_by_role("button", name="Rank 0").click()
    expect(lines.get_by_role("button", name="Rank 0")).to_have_attribute("aria-pressed", "false")
    expect(image).not_to_have_attribute("aria-label", re.compile("0.25"))


def test_a_waiting_run_says_for_what_and_is_cancelled_by_a_button(jobs: Jobs) -> None:
    first, second = jobs.submit(target="single"), jobs.submit(target="single")
    until(lambda: jobs.status(second.id) == "Queued")
    page = jobs.studio.open(f"runs/{second.id}", "contributor")
    state = page.get_by_role("region", name="State")
    expect(state.locator("strong")).to_contain_text(re.compile(f"single.*{first.id}"))
    # When the node is free, the page says so without being loaded again.
    first.tell("end")
    expect_state(page, "Running")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    expect_state(page, "Canceled")
    assert jobs.status(second.id) == "Canceled"


def test_rerun_with_other_arguments(jobs: Jobs) -> None:
    job = jobs.submit("--lr", "0.1", "--fast", f"--note={ATTACK}")
    job.tell("end")
    until(lambda: jobs.status(job.id) == "Completed")
    page = jobs.studio.open(f"runs/{job.id}", "contributor")
    page.get_by_role("button", name="Rerun with changes").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Value of --note")).to_have_value(ATTACK)
    dialog.get_by_label("Value of --lr").fill("0.5")
    dialog.get_by_role("button", name="Remove --fast").click()
    dialog.get_by_label("Name", exact=True).fill("faster")
    dialog.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="faster", level=1)).to_be_visible()
    expect_state(page, "Completed")
    rows = page.get_by_role("region", name="Arguments").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_have_text(re.compile("--lr *0.5"))
    expect(rows.nth(2)).to_contain_text(ATTACK)
    lineage = page.get_by_role("region", name="Lineage")
    expect(lineage.get_by_role("link")).to_have_attribute("href", f"/w/team/runs/{job.id}")
    page.get_by_role("button", name="Retry").click()
    expect(lineage.get_by_role("link", name="faster")).to_be_visible()
    expect_state(page, "Completed")


def test_name_description_and_tags_are_edited_in_place(jobs: Jobs) -> None:
    run = jobs.start_logging()
    page = jobs.studio.open(f"runs/{run.id}", "contributor")
    page.get_by_role("button", name="Edit the name").click()
    page.get_by_label("The name").fill("forest of 100 trees")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="forest of 100 trees", level=1)).to_be_visible()
    page.get_by_role("button", name="Edit the description").click()
    page.get_by_label("The description").fill(
        f"**Why**: see https://example.org/a\n\n- {ATTACK}\n- [x](javascript:alert(1))"
    )
    page.get_by_role("button", name="Save").click()
    about = page.get_by_role("region", name="About this run")
    expect(about.locator("strong")).to_have_text("Why")
    expect(about.get_by_role("link")).to_have_attribute("href", "https://example.org/a")
    expect(about.get_by_role("listitem").first).to_have_text(ATTACK)
    page.get_by_role("button", name="Add to tags").click()
    page.get_by_label("Name", exact=True).fill("stage")
    page.get_by_label("Value", exact=True).fill("test")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("button", name="Remove stage")).to_be_visible()
    assert ask(jobs.studio, "GET", f"/runs/{run.id}")["tags"] == {"stage": "test"}
    page.get_by_role("button", name="Remove stage").click()
    expect(page.get_by_role("button", name="Remove stage")).to_have_count(0)
    # Somebody else's change appears by itself.
    run.tag("reviewed", "yes")
    expect(about.get_by_text("reviewed")).to_be_visible()
    run.complete()


def test_a_run_is_archived_restored_and_deleted(jobs: Jobs) -> None:
    run = jobs.start_logging()
    run.complete()
    page = jobs.studio.open(f"runs/{run.id}", "owner")
    page.get_by_role("button", name="Archive").click()
    expect(page.locator(".run-header").get_by_text("Archived")).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the run").click()
    expect(page).to_have_url(re.compile("/w/team/runs$"))
    assert jobs.studio.server.request("GET", f"{jobs.studio.api}/runs/{run.id}").status == 404


def test_a_reader_changes_nothing(jobs: Jobs, failed: str) -> None:
    page = jobs.studio.open(f"runs/{failed}", "reader")
    expect(page.get_by_role("region", name="State")).to_contain_text("ValueError")
    actions = page.get_by_role("group", name="Actions").get_by_role("button")
    expect(actions).to_have_text(["Copy id", "Copy link"])
    expect(page.get_by_role("button", name=re.compile("Edit|Add|Remove"))).to_have_count(0)
    # The server refuses too: the page only hides what would be refused.
    path = f"{jobs.studio.api}/runs/{failed}/rerun"
    assert jobs.studio.server.request("POST", path, {}, token=jobs.studio.token("reader")).status == 403


def test_texts_of_a_run_are_never_html(jobs: Jobs) -> None:
    run = jobs.start_logging()
    run.display_name = ATTACK
    run.description = f"# {ATTACK}\n```\n{ATTACK}\n```"
    run.tag(ATTACK, ATTACK)
    run.add_properties({ATTACK: ATTACK})
    for value in (0.5, 0.25):
        run.log(f"{ATTACK}/{ATTACK}", value)
    run.log("single", ATTACK)
    run.log_list("texts", [ATTACK, "b"])
    run.log_row("rows", **{ATTACK: ATTACK, "other": 1})
    data = {"class_labels": [ATTACK, "b"], "matrix": [[1, 2], [3, 4]]}
    run.log_confusion_matrix("matrix", {"schema_type": "confusion_matrix", "schema_version": "v1", "data": data})
    run.fail(error_details=ATTACK, error_code=ATTACK)
    page = jobs.studio.open(f"runs/{run.id}")
    expect(page.get_by_role("region", name="State")).to_contain_text(ATTACK)
    expect(page.get_by_role("region", name="Properties")).to_contain_text(ATTACK)
    assert_no_html(page)
    page.get_by_role("link", name="Charts", exact=True).first.click()
    expect(page.get_by_role("figure", name=ATTACK).locator("canvas")).to_be_visible()
    expect(page.get_by_role("columnheader", name=ATTACK).first).to_be_visible()
    expect(page.get_by_role("rowheader", name=ATTACK)).to_be_visible()
    expect(page.get_by_role("definition")).to_have_text(ATTACK)
    page.get_by_role("button", name=f"Values of {ATTACK}").first.click()
    assert_no_html(page)


def assert_no_html(page: Page) -> None:
    expect(page.locator("img[src=x]")).to_have_count(0)
    expect(page.get_by_text(ATTACK).first).to_be_visible()


def test_after_a_lost_connection_the_page_goes_on(jobs: Jobs) -> None:
    job = jobs.submit()
    job.tell("log loss 1", "log loss 2")
    page = jobs.studio.open(f"runs/{job.id}/charts")
    numbers = page.get_by_role("figure", name="loss").locator(".chart-numbers")
    expect(numbers).to_contain_text("2 best 1")
    jobs.studio.server.kill()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    job.tell("log loss 0.5")
    jobs.studio.server.start()
    expect(numbers).to_contain_text("0.5 best 0.5 at step 2")
    expect(page.get_by_text("The connection is lost.")).to_have_count(0)
    job.tell("end")
    expect_state(page, "Completed")


@pytest.fixture(scope="module")
def large(jobs_of_module: Jobs) -> str:
    """A run with ten metrics of 10,000 steps, and 1,000 others."""
    run = jobs_of_module.start_logging()
    for metric in range(10):
        run.log_list(f"curves/{metric}", [((step * 37 + metric) % 1000) / (step + 1) for step in range(10_000)])
    for metric in range(1000):
        run.log_list(f"layers/{metric:03d}", [metric, metric + 1])
    run.complete()
    return run.id


def test_ten_charts_of_10000_steps_and_1000_further_metrics(jobs: Jobs, large: str) -> None:
    page = jobs.studio.open(f"runs/{large}/charts")
    expect(page.get_by_text("1010 metrics")).to_be_visible()
    curves = page.get_by_role("region", name="curves").get_by_role("figure")
    for number in range(10):
        chart = curves.nth(number)
        chart.scroll_into_view_if_needed()
        expect(chart.locator("canvas")).to_be_visible()
    # Of the others only those near the screen are drawn.
    assert page.locator("canvas").count() < 60
    search = page.get_by_label("Search metrics")
    search.fill("layers 777")
    expect(page.get_by_text("1 of 1010 metrics")).to_be_visible()
    expect(page.get_by_role("figure", name="layers/777").locator("canvas")).to_be_visible()
    expect(page).to_have_url(re.compile("metrics=layers"))


def test_how_charts_are_drawn_is_in_the_address(jobs: Jobs, large: str) -> None:
    page = jobs.studio.open(f"runs/{large}/charts?metrics=curves%2F0")
    chart = page.get_by_role("figure", name="curves/0")
    chart.get_by_role("img").hover()
    expect(chart.locator(".chart-numbers")).to_contain_text("at step")
    drag(page, chart.get_by_role("img"))
    expect(page).to_have_url(re.compile(r"zoom=3\d\d\d(\.\d+)?%7E5\d\d\d"))
    page.get_by_label("Log values").check()
    page.get_by_label("Smoothing").fill("0.6")
    expect(page).to_have_url(re.compile("zoom.*log=y.*smooth=0.6"))
    # A colleague sees the same, and back to all of it.
    other = jobs.studio.open(page.url.removeprefix(jobs.studio.server.url))
    expect(other.get_by_label("Log values")).to_be_checked()
    other.get_by_role("button", name="Show all").click()
    expect(other).not_to_have_url(re.compile("zoom"))
    other.get_by_label("Horizontal axis").select_option("relative")
    other.get_by_role("figure", name="curves/0").get_by_role("img").hover()
    expect(other.locator(".chart-numbers")).to_contain_text(re.compile("at .* s$"))
    chart.get_by_role("button", name="Values of curves/0 as a table").click()
    table = chart.get_by_role("region", name="Values of curves/0").get_by_role("row")
    # It has the part to which the chart is zoomed.
    expect(table.nth(1)).to_contain_text(re.compile(r"^3\d\d\d"))
    assert 50 < table.count() < 150
    # Keys: a number for each part of the run, and a slash for the search.
    page.keyboard.press("/")
    expect(page.get_by_label("Search metrics")).to_be_focused()
    chart.get_by_role("button", name="Values of").focus()
    page.keyboard.press("1")
    expect(page).to_have_url(re.compile(f"/runs/{large}$"))


@pytest.mark.parametrize("view", ["runs/{run}/charts", "compare?runs={run}&tab=curves"])
def test_a_zoom_shows_points_that_were_left_out(jobs: Jobs, large: str, view: str) -> None:
    path = view.format(run=large)
    page = jobs.studio.open(f"{path}{'&' if '?' in path else '?'}metrics=curves%2F3&zoom=5000~5030")
    chart = page.get_by_role("figure", name="curves/3")
    chart.get_by_role("button", name="Values of curves/3 as a table").click()
    rows = chart.get_by_role("region", name="Values of curves/3").get_by_role("row")
    expect(rows).to_have_count(32)
    expect(rows.nth(18)).to_have_text(f"5017{format(((5017 * 37 + 3) % 1000) / 5018, '.5g')}")
    page.get_by_role("button", name="Show all").click()
    expect(rows.nth(1)).to_contain_text(re.compile("^0"))


def drag(page: Page, chart: Locator) -> None:
    """Mark a part of a chart with the mouse."""
    box = chart.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=5)
    page.mouse.up()


@pytest.fixture(scope="module")
def rich(jobs_of_module: Jobs) -> str:
    """A run with a child and one metric of each kind."""
    run = jobs_of_module.start_logging()
    run.display_name = "all kinds"
    run.description = "Every kind of metric."
    run.tag("stage", "test")
    for step in range(30):
        run.log("train/loss", 1 / (step + 1), step=step)
    run.log("train/loss", float("nan"), step=30)
    run.log("system/memory", 1.5)
    run.log("system/memory", 2.5)
    run.log("parameters", 1_234_567)
    run.log_table("by class", {"label": ["cat", "dog"], "recall": [0.5, 0.75]})
    for kind, data in _STRUCTURED.items():
        log: Any = getattr(run, f"log_{kind}")
        log(kind, {"schema_type": kind, "schema_version": "v1", "data": data})
    child = run.child_run("fold 1")
    child.complete()
    run.complete()
    return run.id


_STRUCTURED = {
    "confusion_matrix": {"class_labels": ["cat", "dog"], "matrix": [[8, 2], [1, 9]]},
    "accuracy_table": {"probability_tables": [[[5, 5, 0, 0], [4, 1, 4, 1], [0, 0, 5, 5]]], "class_labels": ["cat"]},
    "residuals": {"bin_edges": [-1, 0, 1], "bin_counts": [3, 4], "mean": 0.1, "stddev": 0.5},
    "predictions": {"bin_edges": [0, 1, 2], "bin_averages": [0.4, 1.6], "bin_errors": [0, 0], "bin_counts": [1, 1]},
}


def test_every_kind_of_metric_is_shown_as_what_it_is(jobs: Jobs, rich: str) -> None:
    page = jobs.studio.open(f"runs/{rich}/charts", height=2000)
    expect(page.get_by_role("definition")).to_have_text("1234567")
    expect(page.get_by_role("region", name="by class").get_by_role("row", name="dog")).to_contain_text("0.75")
    matrix = page.get_by_role("region", name="confusion_matrix").get_by_role("row", name="dog")
    expect(matrix.last.get_by_role("cell")).to_have_text(["1", "9"])
    for name in ("accuracy_table", "residuals", "predictions"):
        expect(page.get_by_role("region", name=name).get_by_role("img")).to_be_visible()
    system = page.get_by_role("region", name="System use")
    expect(system.get_by_role("figure", name="system/memory").locator("canvas")).to_be_visible()


def test_a_parent_shows_its_children_as_they_come(jobs: Jobs) -> None:
    run = jobs.start_logging()
    page = jobs.studio.open(f"runs/{run.id}")
    expect_state(page, "Running")
    child = run.child_run("fold 1")
    children = page.get_by_role("region", name="Child runs")
    expect(children.get_by_role("row", name="fold 1")).to_contain_text("Running")
    child.complete()
    expect(children.get_by_role("row", name="fold 1")).to_contain_text("Completed")
    children.get_by_role("link", name="fold 1").click()
    expect(page.get_by_role("heading", name="fold 1", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Lineage").get_by_role("link")).to_have_attribute(
        "href", f"/w/team/runs/{run.id}"
    )
    run.complete()


def test_a_child_that_comes_before_the_feed_of_changes_is_shown(jobs: Jobs) -> None:
    run = jobs.start_logging()
    page = jobs.studio.open("runs")
    held: list[Route] = []
    page.route("**/workspaces/team/changes*", lambda route: held.append(route))
    with page.expect_request("**/workspaces/team/changes*"), page.expect_response("**/children*"):
        page.goto(f"/w/team/runs/{run.id}")
    expect_state(page, "Running")
    child = run.child_run("fold 1")
    expect(page.get_by_role("region", name="Child runs")).to_have_count(0)
    held[0].continue_()
    row = page.get_by_role("region", name="Child runs").get_by_role("row", name="fold 1")
    expect(row).to_be_visible()
    child.complete()
    run.complete()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_serious_finding_of_axe(jobs: Jobs, failed: str, rich: str, theme: str, width: int) -> None:
    shown = {f"runs/{failed}": "Last lines", f"runs/{rich}": "Child runs", f"runs/{rich}/charts": "by class"}
    for path, label in shown.items():
        page = jobs.studio.open(path, theme="dark" if theme == "dark" else "light", width=width)
        expect(page.get_by_label(label).first).to_be_attached()
        jobs.studio.check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Theme: as the system").click()
    jobs.studio.check_accessibility(page)


def test_a_run_that_is_not_there_is_named(jobs: Jobs) -> None:
    page = jobs.studio.open(f"runs/{ATTACK}")
    expect(page.get_by_role("alert")).to_contain_text("there is no run")
    expect(page.locator("img[src=x]")).to_have_count(0)

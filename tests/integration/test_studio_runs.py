"""The table of runs in a browser: searching, sorting, grouping, choosing columns, following, and acting on runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.conftest import until
from tests.studio import WORKSPACE, Studio, run_studio
from tests.studio_runs import LiveRun, add_runs, make_run

from trainmaster.shared.records import RunError, Status

XSS = '<img src=x onerror="window.hacked=1">'
MANY = "many"


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with run_studio(tmp_path_factory.mktemp("studio") / "root") as studio:
        add_runs(studio.server, WORKSPACE, _make_runs())
        yield studio


def _make_runs() -> list[tuple[Any, dict[str, list[float]]]]:
    """Twelve runs of two experiments, the newest last; a few have something special."""
    found = []
    for number in range(12):
        record = make_run(
            f"run-{number}",
            experiment="vision" if number % 2 else "text",
            arguments={"lr": 10 ** -(number % 4), "model": "resnet"},
            tags={"kind": "base" if number % 3 else "large"} if number < 9 else {},
            created_at=1_700_000_000.0 + 60 * number,
            submitted_by="ada" if number % 2 else "grace",
        )
        if number == 5:
            record = make_run(
                "run-5",
                experiment="vision",
                status=Status.FAILED,
                error=RunError("ScriptError", "out of memory"),
                created_at=1_700_000_300.0,
                tags={"kind": "base"},
            )
        found.append((record, {"loss": [2.0, 1.0 + number / 10, number / 10]} if number != 5 else {}))
    return found


def rows(page: Page) -> Locator:
    """The rows of runs that are drawn."""
    return page.locator("tr[data-position]:not(.runs-group)")


def names(page: Page) -> Locator:
    return page.locator("tr[data-position] td.name")


def set_filter(page: Page, text: str) -> None:
    box = page.get_by_role("combobox", name="Filter")
    box.fill(text)
    box.press("Enter")


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_newest_runs_come_first_with_a_metric_and_its_chart(studio: Studio) -> None:
    page = studio.open("runs")
    expect(names(page).first).to_have_text("run-11")
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "13")
    expect(page.get_by_role("columnheader", name="loss", exact=True)).to_be_visible()
    expect(rows(page).first.get_by_role("img", name="loss: from 2 to 1.1")).to_be_visible()
    expect(page.get_by_text("12 runs")).to_be_visible()


def test_a_filter_is_in_the_address_and_back_removes_it(studio: Studio) -> None:
    page = studio.open("runs")
    set_filter(page, "lr < 0.05 and experiment = vision")
    expect(names(page)).to_have_text(["run-11", "run-7", "run-3"])
    assert query(page)["filter"] == ["lr < 0.05 and experiment = vision"]
    link = studio.open(urlsplit(page.url)._replace(scheme="", netloc="").geturl())
    expect(names(link)).to_have_count(3)
    page.go_back()
    expect(names(page)).to_have_count(12)
    set_filter(page, "lr > 1000")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    expect(names(page)).to_have_count(12)


def test_an_unreadable_filter_says_where_and_what_to_write(studio: Studio) -> None:
    page = studio.open("runs")
    set_filter(page, "staus = Failed")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("there is no field 'staus' (position 1)")
    expect(alert).to_contain_text("Did you mean 'status'?")
    expect(names(page)).to_have_count(12)
    studio.check_accessibility(page)
    set_filter(page, "status = Failed")
    expect(alert).to_have_count(0)
    expect(names(page)).to_have_text(["run-5"])


def test_names_and_values_are_completed(studio: Studio) -> None:
    page = studio.open("runs")
    box = page.get_by_role("combobox", name="Filter")
    box.press_sequentially("tag.k")
    expect(page.get_by_role("option", name=re.compile("tag.kind"))).to_be_visible()
    box.press("ArrowDown")
    box.press("Enter")
    expect(box).to_have_value("tag.kind ")
    box.press_sequentially("= la")
    page.get_by_role("option", name="large").click()
    # A whole filter takes effect without Enter.
    expect(names(page)).to_have_text(["run-6", "run-3", "run-0"])


def test_a_click_on_a_header_sorts(studio: Studio) -> None:
    page = studio.open("runs?cols=name,metric.loss.min,lr")
    header = page.get_by_role("columnheader", name="loss min")
    header.get_by_role("button").click()
    expect(names(page).first).to_have_text("run-0")
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(names(page).last).to_have_text("run-5")
    header.get_by_role("button").click()
    expect(names(page).first).to_have_text("run-11")
    assert query(page)["sort"] == ["metric.loss.min desc"]
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "none")


def test_runs_are_grouped_by_experiment_or_tag(studio: Studio) -> None:
    page = studio.open("runs")
    page.get_by_label("Group by").select_option("experiment")
    group = page.get_by_role("button", name="vision")
    expect(group).to_have_attribute("aria-expanded", "false")
    expect(names(page)).to_have_count(6)
    group.click()
    expect(names(page)).to_have_count(12)
    expect(page.get_by_role("button", name="text 6")).to_be_visible()
    link = studio.open(urlsplit(page.url)._replace(scheme="", netloc="").geturl())
    expect(names(link)).to_have_count(12)
    page.get_by_label("Group by").select_option("tag.kind")
    expect(page.get_by_role("button", name="base 6")).to_be_visible()
    expect(page.get_by_role("button", name="Without kind 3")).to_be_visible()
    expect(names(page)).to_have_count(6)


def test_columns_are_chosen_ordered_and_kept_in_the_address(studio: Studio) -> None:
    page = studio.open("runs")
    expect(names(page)).to_have_count(12)
    page.get_by_role("button", name="Columns").click()
    dialog = page.get_by_role("dialog", name="Columns")
    dialog.get_by_label("Search columns").fill("l")
    dialog.get_by_role("checkbox", name="loss max").check()
    dialog.get_by_role("checkbox", name="lr").check()
    dialog.get_by_role("button", name="Move lr up").click()
    dialog.get_by_role("button", name="Hide Experiment").click()
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_role("columnheader", name="Experiment")).to_have_count(0)
    assert query(page)["cols"][0].endswith("metric.loss,arg.lr,metric.loss.max")
    expect(rows(page).first.get_by_role("cell", name="0.001")).to_be_visible()
    expect(rows(page).first.get_by_role("cell", name="2.1")).to_be_visible()


def test_a_column_is_made_wider(studio: Studio) -> None:
    page = studio.open("runs?cols=status,name")
    header = page.get_by_role("columnheader", name="Status")
    box = header.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] + 77, box["y"] + 10)
    page.mouse.up()
    expect(page).to_have_url(re.compile("widths=205"))
    page.reload()
    expect(page.locator("col").nth(1)).to_have_css("width", "205px")


def test_only_columns_that_differ(studio: Studio) -> None:
    page = studio.open("runs?cols=name,target,experiment,model,metric.loss&filter=lr %3C 5")
    expect(page.get_by_role("columnheader", name="Compute target")).to_be_visible()
    page.get_by_label("Only columns that differ").check()
    expect(page.get_by_role("columnheader", name="lr")).to_be_visible()
    expect(page.get_by_role("columnheader", name="kind")).to_be_visible()
    for name in ("Compute target", "model"):
        expect(page.get_by_role("columnheader", name=name)).to_have_count(0)


def test_a_view_is_saved_shared_and_deleted(studio: Studio) -> None:
    page = studio.open("runs?filter=experiment %3D vision&sort=lr", "contributor")
    expect(names(page)).to_have_count(6)
    for name, is_shared in (("Vision by lr", True), ("Mine", False)):
        page.get_by_role("button", name="Views").click()
        dialog = page.get_by_role("dialog", name="Views")
        dialog.get_by_label("Name of the view").fill(name)
        dialog.get_by_label(f"Share with everybody in {WORKSPACE}").set_checked(is_shared)
        dialog.get_by_role("button", name="Save view").click()
        expect(dialog.get_by_role("link", name=name)).to_be_visible()
        page.keyboard.press("Escape")
    other = studio.open("runs", "reader")
    other.get_by_role("button", name="Views").click()
    expect(other.get_by_role("dialog").get_by_text("shared by contributor")).to_have_count(1)
    # A reader may neither share a view nor delete what others share.
    expect(other.get_by_label(re.compile("Share with"))).to_have_count(0)
    expect(other.get_by_role("button", name=re.compile("Delete the view"))).to_have_count(0)
    other.get_by_role("link", name="Vision by lr").click()
    expect(names(other)).to_have_count(6)
    assert query(other) == {"filter": ["experiment = vision"], "sort": ["lr"]}
    page.get_by_role("button", name="Views").click()
    for name in ("Vision by lr", "Mine"):
        page.get_by_role("button", name=f"Delete the view {name}").click()
        expect(page.get_by_role("dialog").get_by_role("link", name=name)).to_have_count(0)


def test_keys_move_select_compare_and_open(studio: Studio) -> None:
    page = studio.open("runs")
    expect(names(page)).to_have_count(12)
    page.keyboard.press("j")
    expect(names(page).nth(0).get_by_role("link")).to_be_focused()
    page.keyboard.press("x")
    for key in ("j", "j", "k", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("region", name="Selected runs")).to_contain_text("2 runs selected")
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/w/team/compare\?runs=run-11,run-10$"))
    page.go_back()
    expect(names(page)).to_have_count(12)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("Compare the selected runs")
    studio.check_accessibility(page)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Filter")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile("/w/team/runs/run-10$"))


def test_clicks_and_shift_select(studio: Studio) -> None:
    page = studio.open("runs")
    rows(page).nth(1).get_by_role("cell").nth(4).click()
    rows(page).nth(4).get_by_role("checkbox").click(modifiers=["Shift"])
    bar = page.get_by_role("region", name="Selected runs")
    expect(bar).to_contain_text("4 runs selected")
    expect(page.locator("tr[aria-selected=true]")).to_have_count(4)
    rows(page).nth(2).get_by_role("checkbox").click()
    expect(bar).to_contain_text("3 runs selected")
    bar.get_by_role("button", name="Clear selection").click()
    expect(bar).to_have_count(0)


def test_runs_are_tagged_archived_restored_and_deleted(studio: Studio) -> None:
    run = LiveRun(studio.server, WORKSPACE, "to delete", experiment="actions")
    page = studio.open("runs?filter=experiment %3D actions&cols=name,status,tag.stage", "owner")
    bar = page.get_by_role("region", name="Selected runs")
    rows(page).get_by_role("checkbox").check()
    bar.get_by_role("button", name="Tag").click()
    page.get_by_label("Name", exact=True).fill("stage")
    page.get_by_label("Value").fill("final")
    page.get_by_role("button", name="Set tag").click()
    expect(rows(page).get_by_role("cell", name="final")).to_be_visible()
    # It has not ended, so that it can only be canceled.
    expect(bar.get_by_role("button", name="Delete")).to_be_disabled()
    bar.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 1 run").click()
    expect(rows(page).get_by_text("Canceled")).to_be_visible()
    bar.get_by_role("button", name="Clear selection").click()
    rows(page).get_by_role("checkbox").check()
    bar.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("No run matches.")).to_be_visible()
    page.get_by_label("Archived").check()
    rows(page).get_by_role("checkbox").check()
    bar.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 1 run?")
    expect(dialog).to_contain_text("to delete: metrics, logs and")
    dialog.get_by_role("button", name="Keep").click()
    bar.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete 1 run").click()
    expect(page.get_by_text("No run matches.")).to_be_visible()
    assert studio.server.request("GET", f"{studio.api}/runs/{run.id}").status == 404


def test_archived_runs_are_restored(studio: Studio) -> None:
    run = LiveRun(studio.server, WORKSPACE, "to restore", experiment="archive")
    run.finish()
    studio.server.call(WORKSPACE, "runs.archive", run_ids=[run.id])
    page = studio.open("runs?filter=experiment %3D archive and archived is set&cols=name,archived")
    rows(page).get_by_role("checkbox").check()
    page.get_by_role("region", name="Selected runs").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("No run matches.")).to_be_visible()
    set_filter(page, "experiment = archive")
    expect(names(page)).to_have_text(["to restore"])


def test_a_reader_can_only_compare(studio: Studio) -> None:
    page = studio.open("runs", "reader")
    for number in (0, 1):
        rows(page).nth(number).get_by_role("checkbox").check()
    bar = page.get_by_role("region", name="Selected runs")
    expect(bar.get_by_role("link", name="Compare")).to_be_visible()
    expect(bar.get_by_role("button")).to_have_text(["Clear selection"])
    contributor = studio.open("runs", "contributor")
    rows(contributor).nth(0).get_by_role("checkbox").check()
    bar = contributor.get_by_role("region", name="Selected runs")
    expect(bar.get_by_role("button")).to_have_text(["Tag", "Archive", "Clear selection"])


def test_new_runs_states_and_values_appear_in_two_browsers(studio: Studio) -> None:
    path = "runs?filter=experiment %3D live&cols=name,status,metric.loss,~loss"
    pages = [studio.open(path), studio.open(path, "reader")]
    for page in pages:
        expect(page.get_by_text("No run matches.")).to_be_visible()
    run = LiveRun(studio.server, WORKSPACE, "live one")
    for page in pages:
        expect(names(page)).to_have_text(["live one"])
        expect(rows(page).get_by_text("Running")).to_be_visible()
    run.log("loss", 3.0, 2.0, 1.5)
    for page in pages:
        expect(rows(page).get_by_role("cell", name="1.5", exact=True)).to_be_visible()
        expect(rows(page).get_by_role("img", name="loss: from 3 to 1.5")).to_be_visible()
    second = LiveRun(studio.server, WORKSPACE, "live two")
    run.finish()
    for page in pages:
        expect(names(page)).to_have_text(["live two", "live one"])
        expect(rows(page).nth(1).get_by_text("Completed")).to_be_visible()
    second.finish("Failed")
    for page in pages:
        expect(rows(page).nth(0).get_by_text("Failed")).to_be_visible()


def test_a_run_that_no_longer_matches_leaves_the_table(studio: Studio) -> None:
    run = LiveRun(studio.server, WORKSPACE, "passing", experiment="passing")
    page = studio.open("runs?filter=experiment %3D passing and status %3D Running")
    expect(names(page)).to_have_text(["passing"])
    run.finish()
    expect(page.get_by_text("No run matches.")).to_be_visible()


def test_in_another_order_new_runs_wait_for_a_click(studio: Studio) -> None:
    first = LiveRun(studio.server, WORKSPACE, "sorted b", experiment="sorted")
    page = studio.open("runs?sort=name&filter=experiment %3D sorted")
    expect(rows(page).get_by_text("Running")).to_be_visible()
    first.finish()
    expect(rows(page).get_by_text("Completed")).to_be_visible()
    second = LiveRun(studio.server, WORKSPACE, "sorted a", experiment="sorted")
    page.get_by_role("button", name="Show 1 new run").click()
    expect(names(page)).to_have_text(["sorted a", "sorted b"])
    second.finish()


def test_a_dropped_connection_is_made_again(studio: Studio) -> None:
    page = studio.open("runs?filter=experiment %3D dropped")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    studio.server.kill()
    studio.server.start()
    run = LiveRun(studio.server, WORKSPACE, "after the drop", experiment="dropped")
    expect(names(page)).to_have_text(["after the drop"])
    run.finish()
    expect(rows(page).get_by_text("Completed")).to_be_visible()


def test_texts_of_runs_are_never_markup(studio: Studio) -> None:
    run = LiveRun(studio.server, WORKSPACE, XSS, experiment="markup", description=XSS, tags={XSS: XSS, "plain": XSS})
    run.log(XSS, 1.0)
    run.finish()
    metric = XSS.replace('"', '\\"')
    page = studio.open("runs")
    columns = f'name,description,tags,tag.plain,metric."{metric}",~"{metric}"'
    page.goto(f"/w/{WORKSPACE}/runs?" + "&".join((f"cols={_quote(columns)}", "group=experiment", 'open=["markup"]')))
    expect(names(page)).to_have_text([XSS])
    expect(rows(page).get_by_role("cell", name="1", exact=True)).to_be_visible()
    set_filter(page, f"name = {_quote_value(XSS)}")
    expect(names(page)).to_have_text([XSS])
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Search columns").fill("<img")
    expect(page.get_by_role("dialog").get_by_text(XSS).first).to_be_visible()
    page.get_by_role("button", name="Done").click()
    rows(page).get_by_role("checkbox").check()
    page.get_by_role("region", name="Selected runs").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(XSS)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0


def _quote(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _quote_value(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_table_has_no_serious_finding_of_axe(studio: Studio, theme: Any) -> None:
    page = studio.open("runs?group=experiment&cols=name,status,tags,metric.loss,~loss,error", theme=theme)
    expect(names(page).first).to_be_visible()
    rows(page).first.get_by_role("checkbox").check()
    studio.check_accessibility(page)
    for name in ("Views", "Columns"):
        page.get_by_role("button", name=name).click()
        studio.check_accessibility(page)
        page.keyboard.press("Escape")
    phone = studio.open("runs", theme=theme, width=390)
    expect(phone.get_by_role("link", name="run-11")).to_be_visible()
    studio.check_accessibility(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390


def test_an_empty_workspace_says_how_to_submit_the_first_run(studio: Studio) -> None:
    studio.server.create_workspace("empty")
    page = studio.open("/w/empty/runs")
    expect(page.get_by_text("There are no runs in this workspace yet.")).to_be_visible()
    expect(page.get_by_label("Command to sign in")).to_contain_text(f"trainmaster login {studio.server.url}")
    studio.check_accessibility(page)
    run = LiveRun(studio.server, "empty", "the first")
    expect(names(page)).to_have_text(["the first"])
    run.finish()


def test_100_000_runs_are_scrolled_to_the_end(studio: Studio) -> None:
    from benchmarks.search import fill

    studio.server.create_workspace(MANY)
    fill(studio.server.root / "workspaces" / MANY / "trainmaster.db", 100_000)
    page = studio.open(f"/w/{MANY}/runs")
    expect(names(page).first).to_have_text("run-100000")
    expect(page.get_by_text("100,000 runs")).to_be_visible()
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "100001")
    page.keyboard.press("G")
    expect(names(page).last).to_have_text("run-1")
    expect(names(page).last.get_by_role("link")).to_be_focused()
    frame = page.get_by_role("region", name="Table of runs")
    frame.evaluate("element => { element.scrollTop = element.scrollHeight / 2 }")
    expect(page.locator(".runs-unread")).to_have_count(0)
    drawn = [int(each.split("-")[1]) for each in names(page).all_inner_texts()]
    assert drawn == list(range(drawn[0], drawn[0] - len(drawn), -1)) and 49_900 < drawn[0] < 50_100
    assert rows(page).count() < 80
    # New runs do not move what is in view.
    before = names(page).nth(8).inner_text()
    top = names(page).nth(8).bounding_box()
    run = LiveRun(studio.server, MANY, "newest")
    expect(page.get_by_text("100,001 runs")).to_be_visible()
    assert until(lambda: page.get_by_role("link", name=before, exact=True).count() == 1, 10)
    assert page.get_by_role("link", name=before, exact=True).locator("..").bounding_box() == top
    run.finish()


def test_1000_metric_names_are_searched_in_the_chooser(studio: Studio) -> None:
    studio.server.create_workspace("names")
    metrics = {f"layer{number:04d}/gradient norm": [float(number)] for number in range(1000)}
    add_runs(studio.server, "names", [(make_run("wide"), metrics)])
    page = studio.open("/w/names/runs")
    expect(names(page)).to_have_text(["wide"])
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Search columns").fill("layer0777")
    page.get_by_role("checkbox", name="layer0777/gradient norm max").check()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("columnheader", name="layer0777/gradient norm max")).to_be_visible()
    expect(rows(page).get_by_role("cell", name="777", exact=True)).to_be_visible()

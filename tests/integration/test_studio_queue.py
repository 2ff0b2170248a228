"""The studio's page of the queue, in a browser, with real jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.conftest import until
from tests.studio import Studio
from tests.studio_team import ATTACK, ask, submit_waiting, use_workspace


class Jobs:
    """Jobs of a contributor on a target with four nodes, three of which wait for their files."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        self.folder = folder
        size = {"engine": "local", "nodes": 4, "cpus_per_node": 8, "gpus_per_node": 0}
        ask(studio, "PUT", "/targets/cpu-cluster", {**size, "options": {"class": "LocalCompute"}})
        hosts = {"hosts": ["forge-1", "forge-2", ATTACK], "class": "SshCompute"}
        ask(
            studio, "PUT", "/targets/forge", {**size, "engine": "ssh", "nodes": 3, "gpus_per_node": 2, "options": hosts}
        )
        slurm = {"partition": "gpu", "login": "login.example.org", "class": "SlurmCompute"}
        ask(studio, "PUT", "/targets/slurm-gpu", {**size, "engine": "slurm", "nodes": 16, "options": slurm})
        ask(studio, "PATCH", "/quotas", {"owner": "contributor", "runs": 2, "nodes": 3})
        with use_workspace(studio, "contributor", folder / "cache") as workspace:
            self.runs = [
                submit_waiting(workspace, folder, name, compute_target="cpu-cluster", display_name=title)
                for name, title in (("a", "baseline"), ("b", ATTACK), ("c", "deeper trees"))
            ]
        until(
            lambda: [run["status"] for run in ask(studio, "GET", "/queue")["queue"]] == ["Running", "Running", "Queued"]
        )

    def open(self, name: str) -> None:
        """Let the job that waits for this file end."""
        (self.folder / name).touch()


@pytest.fixture(scope="module", autouse=True)
def jobs(studio_server: Studio, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(studio_server, tmp_path_factory.mktemp("queue"))


def test_who_runs_where_and_who_waits_for_what(studio: Studio) -> None:
    page = studio.open("queue", "reader")
    expect(page.get_by_text("2 runs are executing, 1 waits.")).to_be_visible()
    card = page.get_by_role("article", name="cpu-cluster")
    expect(card).to_contain_text("2 of 4 in use, 1 waiting")
    expect(card).to_contain_text("4 nodes, each with 8 CPUs.")
    nodes = card.get_by_role("list", name="Nodes of cpu-cluster").get_by_role("listitem")
    assert [each.split() for each in nodes.all_inner_texts()] == [
        ["0", "contributor"],
        ["1", "contributor"],
        ["2", "free"],
        ["3", "free"],
    ]
    expect(page.get_by_text(f"3 machines over SSH: forge-1, forge-2, {ATTACK}.")).to_be_visible()
    expect(page.get_by_text("Slurm cluster, partition gpu, submitted through login.example.org.")).to_be_visible()
    rows = page.get_by_role("group", name="Active runs").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("baseline")
    expect(rows.nth(2)).to_contain_text(ATTACK)
    expect(rows.nth(3)).to_contain_text("waiting for the quota of user 'contributor': 2 of 2 active runs in use")
    quotas = page.get_by_role("group", name="Quotas").get_by_role("row", name="contributor")
    expect(quotas).to_contain_text("2 of 2")
    expect(quotas).to_contain_text("2 of 3")
    # A reader may not end runs.
    expect(page.get_by_role("button", name="Cancel baseline")).to_have_count(0)


def test_the_page_of_a_target_shows_its_own_runs(studio: Studio) -> None:
    page = studio.open("queue", "contributor")
    page.get_by_role("article", name="forge").get_by_role("link", name="forge", exact=True).click()
    expect(page.get_by_role("heading", name="forge", exact=True)).to_be_visible()
    expect(page.get_by_text("No run uses this target or waits for it.")).to_be_visible()
    # Contributors may not delete targets.
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("link", name="Queue and compute").click()
    expect(page.get_by_role("article")).to_have_count(4)
    assert page.goto(f"/w/team/queue/{ATTACK}") is not None
    expect(page.get_by_text(f'There is no compute target "{ATTACK}".')).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_serious_finding_of_axe(studio: Studio, theme: str, width: int) -> None:
    for path, heading in (("queue", "Queue and compute"), ("queue/cpu-cluster", "cpu-cluster")):
        page = studio.open(path, theme="dark" if theme == "dark" else "light", width=width)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        studio.check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_owner_deletes_a_target_after_a_question(studio: Studio) -> None:
    page = studio.open("queue/slurm-gpu", "owner")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the target").click()
    expect(page.get_by_role("heading", name="Queue and compute")).to_be_visible()
    expect(page.get_by_role("article", name="slurm-gpu")).to_have_count(0)


def test_the_page_follows_the_runs_and_a_contributor_cancels_one(jobs: Jobs, studio: Studio) -> None:
    page = studio.open("queue", "contributor")
    expect(page.get_by_text("2 runs are executing, 1 waits.")).to_be_visible()
    page.context.set_offline(True)
    jobs.open("a")
    until(lambda: len(ask(studio, "GET", "/queue")["queue"]) == 2)
    page.context.set_offline(False)
    # The third run starts when the first has ended; nobody loads the page again.
    expect(page.get_by_text("2 runs are executing.")).to_be_visible()
    expect(page.get_by_role("article", name="cpu-cluster")).to_contain_text("2 of 4 in use")
    page.get_by_role("button", name="Cancel deeper trees").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("1 run is executing.")).to_be_visible()
    jobs.open("b")
    expect(page.get_by_text("Nothing runs or waits.").first).to_be_visible()
    expect(page.get_by_text("Submit a run")).to_be_visible()

"""The frame of the studio, in a browser: navigation, sign-in, themes, and how its files are built and served."""

from __future__ import annotations

import filecmp
import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.node_packages import find_node
from tests.studio import Studio

from trainmaster.server.api.openapi import describe_table
from trainmaster.server.api.typescript import write_types
from trainmaster.server.assembly import make_table
from trainmaster.server.studio.pages import BUILT, read_pages

_SOURCE = Path(__file__).parents[2] / "studio"


def test_the_first_page_shows_the_runs_of_the_first_workspace(studio: Studio) -> None:
    page = studio.open("/")
    expect(page).to_have_url(re.compile("/w/team/runs$"))
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_every_page_of_the_navigation_opens_and_back_returns(studio: Studio) -> None:
    page = studio.open("runs")
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(links).to_have_count(8)
    names = links.all_inner_texts()
    for name in names:
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_text(name)
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.go_back()
    expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_text(names[-2])


def test_on_a_phone_the_name_of_the_current_page_is_in_view(studio: Studio) -> None:
    page = studio.open("settings", width=390)
    expect(page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_be_in_viewport(ratio=0.9)


def test_whoever_is_not_signed_in_is_asked_to(studio: Studio) -> None:
    page = studio.browser.new_context(base_url=studio.server.url).new_page()
    page.goto("/w/team/runs?filter=x")
    expect(page).to_have_url(re.compile("/login"))
    page.context.close()


def test_a_workspace_that_is_not_there_is_named(studio: Studio) -> None:
    page = studio.open("/w/<img src=x onerror=alert(1)>/runs")
    expect(page.get_by_text('There is no workspace "<img src=x onerror=alert(1)>"')).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_frame_has_no_serious_finding_of_axe(studio: Studio, theme: str) -> None:
    page = studio.open("runs", theme="dark" if theme == "dark" else "light")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    studio.check_accessibility(page)


def test_the_theme_stays_chosen(studio: Studio) -> None:
    page = studio.open("runs")
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"


def test_assets_are_kept_forever_and_pages_are_not(studio: Studio) -> None:
    pages = read_pages()
    assert pages is not None
    answer = studio.server.request("GET", f"/assets/{pages.digest}/studio.js", token="")
    assert answer.status == 200
    assert "immutable" in answer.headers["cache-control"]
    page = studio.server.request("GET", "/w/team/runs/any", token="")
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    for path in ("/assets/000000000000/studio.js", f"/assets/{pages.digest}/..%2f..%2fpages.py"):
        assert studio.server.request("GET", path, token="").status == 404


def test_the_built_files_are_those_of_the_source(tmp_path: Path) -> None:
    node, npm = find_node()
    source = tmp_path / "studio"
    shutil.copytree(_SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run([*npm, "ci", "--no-audit", "--no-fund"], cwd=source, check=True, capture_output=True)
    subprocess.run([node, "node_modules/typescript/bin/tsc", "--noEmit"], cwd=source, check=True)
    subprocess.run([node, "build.mjs", "--test"], cwd=source, check=True, capture_output=True)
    subprocess.run([node, "build.mjs", str(tmp_path / "built")], cwd=source, check=True, capture_output=True)
    (made,) = (tmp_path / "built").iterdir()
    (kept,) = BUILT.iterdir()
    assert made.name == kept.name, "make studio, and commit what it builds"
    names = sorted(each.name for each in made.iterdir())
    assert sorted(each.name for each in kept.iterdir()) == names
    assert filecmp.cmpfiles(made, kept, names, shallow=False) == (names, [], [])


def test_all_files_together_are_small() -> None:
    pages = read_pages()
    assert pages is not None
    assert sum(len(gzip.compress(each)) for each in pages.files.values()) <= 150_000


def test_the_types_are_those_of_the_table_of_routes() -> None:
    assert write_types(describe_table(make_table())) == (_SOURCE / "src/api/types.ts").read_text(), "make studio"

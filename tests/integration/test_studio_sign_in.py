"""Signing in to the studio in a real browser: links, tokens, where they lead, signing out, and frames."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.conftest import end_workspace, wait_gone
from tests.integration.test_studio_command import StudioProcess
from tests.studio import Studio

from trainmaster import Experiment, StudioPage, Workspace
from trainmaster.shared.own_studio import find_studio, find_studio_folder
from trainmaster.shared.owner import owner_of


@pytest.fixture
def page(studio: Studio) -> Iterator[Page]:
    """A browser in which nobody has signed in."""
    context = studio.browser.new_context(base_url=studio.server.url)
    yield context.new_page()
    context.close()


def create_link(studio: Studio) -> str:
    url: str = studio.server.request("POST", "/api/v1/users/admin/sign-in-link").json()["url"]
    return url


def test_a_link_to_a_page_leads_there_after_the_sign_in(studio: Studio, page: Page) -> None:
    page.goto("/w/team/runs?filter=status%20%3D%20Failed")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    page.get_by_label("Token").fill(studio.server.token)
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page).to_have_url(re.compile(r"/w/team/runs\?filter=status"))
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_a_link_works_once_and_its_code_does_not_stay_in_the_address(studio: Studio, page: Page) -> None:
    link = create_link(studio)
    page.goto(f"{link}&next=/w/team/queue")
    expect(page.get_by_text("It works once")).to_be_visible()
    assert "code" not in page.url
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page).to_have_url(re.compile("/w/team/queue$"))
    other = studio.browser.new_context(base_url=studio.server.url).new_page()
    other.goto(link)
    other.get_by_role("button", name="Sign in", exact=True).click()
    expect(other.get_by_role("status")).to_contain_text("cannot be used")
    other.context.close()


def test_signing_out(studio: Studio) -> None:
    page = studio.open("runs")
    page.get_by_role("link", name="admin").click()
    expect(page.get_by_text("You are signed in as admin")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    expect(page.get_by_label("Token")).to_be_visible()
    page.goto("/w/team/runs")
    expect(page).to_have_url(re.compile("/login"))


def test_a_wrong_token_is_refused_in_words(page: Page) -> None:
    page.goto("/login")
    page.get_by_label("Token").fill("<b>wrong</b>")
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page.get_by_role("status")).to_contain_text("token")


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example.org/",
        "//evil.example.org/",
        "/\\evil.example.org/",
        "/\t/evil.example.org/",
        "\\\\evil.example.org",
        "javascript:alert(1)",
        "/\n//evil.example.org",
        "w/team/runs",
    ],
)
def test_no_link_leads_to_another_site(studio: Studio, page: Page, target: str) -> None:
    """Or else a link to this site could end on one that asks for a token again."""
    for address in (f"/login?next={quote(target, safe='')}", f"/login#next={quote(target, safe='')}"):
        page.goto("about:blank")
        page.context.clear_cookies()
        page.goto(address)
        page.get_by_label("Token").fill(studio.server.token)
        page.get_by_role("button", name="Sign in with the token").click()
        expect(page).to_have_url(re.compile(f"^{re.escape(studio.server.url)}/w/team/runs$"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_no_serious_finding_of_axe(studio: Studio, theme: Literal["light", "dark"]) -> None:
    context = studio.browser.new_context(base_url=studio.server.url, color_scheme=theme)
    page = context.new_page()
    page.goto(create_link(studio).removeprefix(studio.server.url))
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    # In the colours of the studio.
    assert page.evaluate("getComputedStyle(document.querySelector('main')).borderRadius") == "6px"
    studio.check_accessibility(page)
    context.close()


class Notebook:
    """Another web server of this machine, whose page shows a page of the studio in a frame."""

    def __init__(self) -> None:
        self.source = ""
        notebook = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = f"<!doctype html><title>notebook</title>{notebook.source}".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, host: str) -> str:
        return f"http://{host}:{self.server.server_port}/"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    found = Notebook()
    yield found
    found.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[StudioProcess]:
    """A studio of this user."""
    workspace = Workspace.create("mine", show_output=False)
    process = StudioProcess(tmp_path, "--workspace", "mine")
    yield process
    process.end()
    end_workspace(workspace.path)


def test_the_link_of_the_own_studio_signs_in_at_once(studio: Studio, own: StudioProcess) -> None:
    page = studio.browser.new_context().new_page()
    page.goto(own.link)
    expect(page).to_have_url(f"{own.url}/w/mine/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    # The same link again, in the same browser: the session is there.
    page.goto("about:blank")
    page.goto(own.link)
    expect(page.get_by_text("You are signed in as")).to_be_visible()
    page.get_by_role("link", name="Continue").click()
    expect(page).to_have_url(f"{own.url}/w/mine/runs")
    page.context.close()
    page = studio.browser.new_context().new_page()
    page.goto(own.link)
    expect(page.get_by_role("status")).to_contain_text("cannot be used")
    expect(page.get_by_text("trainmaster studio")).to_be_visible()
    page.context.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_notebook_of_this_machine_shows_the_own_studio(
    studio: Studio, own: StudioProcess, notebook: Notebook, host: str
) -> None:
    link = own.link.replace("127.0.0.1", host).replace("/runs", "/runs%3Fembed=1")
    notebook.source = f"<iframe src={json.dumps(link)} width=900 height=600></iframe>"
    page = studio.browser.new_context().new_page()
    page.goto(notebook.url(host))
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Runs")).to_be_visible()
    expect(frame.get_by_role("navigation", name="Pages")).to_have_count(0)
    page.context.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_run_is_shown_below_a_cell(studio: Studio, notebook: Notebook, host: str) -> None:
    """`StudioPage(run)` starts the studio if none runs, and signs its frame in."""
    workspace = Workspace.create("mine", show_output=False)
    run = Experiment(workspace, "shown").start_logging(snapshot_directory=None)
    run.log("loss", 1)
    run.complete()
    process = None
    try:
        notebook.source = StudioPage(run)._repr_html_()
        process = find_owner()
        page = studio.browser.new_context().new_page()
        page.goto(notebook.url(host))
        frame = page.frame_locator("iframe")
        expect(frame.locator("main#content")).to_contain_text(run.id)
        expect(frame.get_by_role("navigation", name="Pages")).to_have_count(0)
        assert page.frames[1].url.endswith(f"{host}:{urlsplit(find_studio()).port}/w/mine/runs/{run.id}?embed=1")
        page.context.close()
        # The second one uses the same studio.
        assert find_studio() in StudioPage(run.experiment)._repr_html_()
        assert find_owner() == process
    finally:
        if process is not None:
            handle = os.pidfd_open(process)
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            wait_gone(handle)
        end_workspace(workspace.path)
    assert find_studio() == ""


def find_owner() -> int:
    """The process of the studio."""
    owner = owner_of(json.loads(find_studio_folder().record.read_text()))
    assert owner is not None
    return owner.pid


def test_other_sites_may_not_show_a_server_in_a_frame(studio: Studio, notebook: Notebook) -> None:
    """Clickjacking: a page of another origin puts a button of ours under the mouse."""
    page = studio.open("runs")
    notebook.source = f"<iframe src='{studio.server.url}/w/team/runs'></iframe>"
    with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
        page.goto(notebook.url("127.0.0.1"))
    assert page.frame_locator("iframe").get_by_role("heading", name="Runs").count() == 0
    policy = studio.server.request("GET", "/w/team/runs", token="").headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy and "localhost" not in policy
    # The end of the test would fail because of the message.
    with pytest.raises(AssertionError, match="frame-ancestors"):
        studio.check_errors()

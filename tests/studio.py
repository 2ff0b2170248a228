"""The studio in a real browser for tests: a server, the distribution's chromium, and a person who has signed in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.cluster.packages import ensure
from tests.node_packages import install
from tests.server_people import add_user, grant
from tests.server_process import ServerProcess

WORKSPACE = "team"
AXE = "4.14.0"
_PATIENCE = 60.0
# A machine that runs other tests at the same time is slow.
expect.set_options(timeout=_PATIENCE * 1000)
_SERIOUS = ("serious", "critical")
_REFUSAL = """(() => {
    const send = window.fetch;
    let isRefused = true;
    const note = ({ target }) => { if (target.textContent === "Try again") isRefused = false; };
    document.addEventListener("click", note, { capture: true });
    window.fetch = (input, ...more) => {
        const { pathname } = new URL(input.url ?? input, location.href);
        if (isRefused && pathname.includes(PART)) return Promise.reject(new TypeError("Failed to fetch"));
        return send(input, ...more);
    };
})()"""


class Studio:
    """A server with one workspace, and one browser."""

    def __init__(self, root: Path, browser: Browser) -> None:
        self.server = ServerProcess(root)
        self.server.create_workspace(WORKSPACE)
        self.browser = browser
        self._tokens = {"administrator": self.server.token}
        self._contexts: list[BrowserContext] = []
        self._errors: list[Any] = []

    @property
    def api(self) -> str:
        """The beginning of the paths of the workspace's routes."""
        return f"/api/v1/workspaces/{WORKSPACE}"

    def token(self, who: str = "administrator") -> str:
        """The token of somebody. A user with a role is named by it: `reader`, `contributor`, `owner`."""
        if who not in self._tokens:
            self._tokens[who] = add_user(self.server, who)
            grant(self.server, WORKSPACE, who, who)
        return self._tokens[who]

    def open(
        self,
        path: str = "",
        who: str = "administrator",
        *,
        theme: Literal["light", "dark"] = "light",
        width: int = 1280,
        height: int = 800,
        has_touch: bool = False,
    ) -> Page:
        """A page of the workspace (`runs?filter=...`) in a browser of its own, in which somebody has signed in.

        An error in the page's scripts fails the test when the page is closed.
        """
        size: Any = {"width": width, "height": height}
        context = self.browser.new_context(
            color_scheme=theme, viewport=size, base_url=self.server.url, has_touch=has_touch
        )
        self._contexts.append(context)
        context.set_default_timeout(_PATIENCE * 1000)
        headers = {"Authorization": f"Bearer {self.token(who)}", "Origin": self.server.url}
        answer = context.request.post("/login/session", headers=headers)
        assert answer.ok, answer.text()
        page = context.new_page()
        page.on("pageerror", lambda error: self._errors.append(error))
        page.on("console", self._note_console)
        page.goto(path if path.startswith("/") else f"/w/{WORKSPACE}/{path}")
        return page

    def _note_console(self, message: Any) -> None:
        # What the Content-Security-Policy refused is said here only.
        if message.type == "error" and "Content Security Policy" in message.text:
            self._errors.append(message.text)

    def check_accessibility(self, page: Page) -> None:
        """No serious finding of axe."""
        check_accessibility(page)

    def check_errors(self) -> None:
        """No script of the pages has failed so far, and the policy has refused nothing."""
        found = [*self._errors]
        self._errors.clear()
        assert not found, found

    def close_refused(self, page: Page) -> None:
        """Close a page on which something was refused, as the test wants it."""
        page.context.close()
        self._errors.clear()

    def close_pages(self) -> None:
        """Close all windows; fails if a script of theirs has failed."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        self.check_errors()


def refuse_until_retried(page: Page, part: str) -> None:
    """On the next pages, requests with `part` in their path fail until somebody clicks on "Try again".

    Without the click nothing makes it good: a change in the feed makes pages ask again by themselves.
    """
    page.add_init_script(_REFUSAL.replace("PART", json.dumps(part)))


def check_accessibility(page: Page) -> None:
    """No serious finding of axe."""
    _, folder = install("axe-core", AXE)
    # Not by a script element, which the Content-Security-Policy refuses.
    page.evaluate((folder / "node_modules/axe-core/axe.min.js").read_text() + "\n;undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
        for each in found["violations"]
        if each["impact"] in _SERIOUS
    ]
    assert not serious, "\n".join(serious)


@contextmanager
def run_studio(root: Path) -> Iterator[Studio]:
    """A studio that leaves nothing behind."""
    with open_browser() as browser:
        studio = Studio(root, browser)
        try:
            yield studio
        finally:
            studio.server.end()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The distribution's chromium, installed if it is missing."""
    problem = ensure(lambda: () if shutil.which("chromium") else ("chromium", "fonts-dejavu-core"))
    assert not problem, problem
    # As root chromium needs this, and in containers it has no namespaces for a sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        try:
            yield browser
        finally:
            browser.close()

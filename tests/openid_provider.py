"""A real OpenID Connect provider for tests: the certified `oidc-provider`, installed with npm, and a browser for it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

from tests.conftest import PATIENCE
from tests.node_packages import install

_VERSION = "9.13.3"
_SCRIPT = Path(__file__).with_suffix(".mjs")


class Provider:
    """A running provider."""

    def __init__(self, process: subprocess.Popen[str], secret: str) -> None:
        assert process.stdout is not None
        self._process = process
        self.secret = secret
        self.issuer = f"http://127.0.0.1:{int(process.stdout.readline())}"

    def register(self, redirect_uri: str, groups: Mapping[str, Sequence[str]]) -> None:
        """Register the client, and say which user is in which groups."""
        self._tell({"redirect_uri": redirect_uri, "client_secret": self.secret, "groups": groups})

    def change_groups(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Say anew which user is in which groups."""
        self._tell({"groups": groups})

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        # The provider prints notices of its own.
        while (line := self._process.stdout.readline()) != "ready\n":
            assert line, "the provider has ended"


@contextmanager
def run_provider() -> Iterator[Provider]:
    """A provider for as long as the context lasts."""
    node, folder = install("oidc-provider", _VERSION)
    script = Path(shutil.copy(_SCRIPT, folder / f"provider-{os.getpid()}.mjs"))
    pipe = subprocess.PIPE
    process = subprocess.Popen([node, str(script)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    try:
        yield Provider(process, "the secret of the client")
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()
        script.unlink()


@dataclass(frozen=True)
class Page:
    """What a browser shows."""

    url: str
    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    text: str


class Browser:
    """Keeps cookies, and follows redirects one by one."""

    def __init__(self) -> None:
        # Cookies of 127.0.0.1 are the same for all ports, as in a browser.
        self.cookies = CookieJar(DefaultCookiePolicy())
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies), _NoRedirects)
        self.visited: list[str] = []

    def open(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        follow: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Show a page; a form is sent by POST."""
        data = urlencode(form).encode() if form is not None else None
        while True:
            self.visited.append(url)
            request = urllib.request.Request(url, data, dict(headers or {}))
            try:
                with self._opener.open(request, timeout=PATIENCE) as answer:
                    page = Page(url, answer.status, _lower(answer.headers), answer.read().decode())
            except urllib.error.HTTPError as error:
                with error:
                    page = Page(url, error.code, _lower(error.headers), error.read().decode())
            if page.status not in (302, 303) or not follow:
                return page
            url, data = urljoin(url, page.headers["location"]), None

    def sign_in_at_provider(self, page: Page, user: str, last: str = "/login/openid/callback") -> Page:
        """Fill in the provider's forms until it sends the browser back; the last page, which is not opened yet."""
        while True:
            action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
            assert action, page
            form = dict(re.findall(r'<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page.text))
            url = urljoin(page.url, html.unescape(action[1]))
            page = self.open(url, {**form, "login": user, "password": "x"}, follow=False)
            while page.status in (302, 303):
                url = urljoin(page.url, page.headers["location"])
                if last in url:
                    return Page(url, 0, {}, "")
                page = self.open(url, follow=False)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None

"""Browsers: sign-in links, sessions and forged requests, on a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.server_people import People, add_people
from tests.server_process import Answer, ServerProcess

from trainmaster.job.errors import UserErrorException
from trainmaster.server.settings import Settings

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


class Tab:
    """A page of the server in a browser: its cookie, and the headers that browsers add."""

    def __init__(self, people: People) -> None:
        self._server = people.server
        self.origin = people.server.url
        self.cookie = ""
        self.csrf_token = ""

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        own = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "X-CSRF-Token": self.csrf_token}
        named = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookie:
            named["Cookie"] = self.cookie
        sent = {name: value for name, value in named.items() if value}
        return self._server.request(method, path, body, token="", headers=sent)

    def keep(self, answer: Answer) -> None:
        """Take the cookie and the token of an answer."""
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.csrf_token = answer.json()["csrf_token"]


def create_link(people: People, user: str = "owner") -> str:
    answer = people.ask("administrator", "POST", f"/api/v1/users/{user}/sign-in-link")
    url: str = answer.json()["url"]
    return url


def code_of(url: str) -> str:
    return urlsplit(url).fragment.removeprefix("code=")


@pytest.fixture
def tab(people: People) -> Tab:
    """A browser in which `owner` has signed in."""
    found = Tab(people)
    found.keep(found.send("POST", "/login/link", {"code": code_of(create_link(people))}))
    return found


def is_change_accepted(tab: Tab, **headers: str) -> bool:
    path = "/api/v1/workspaces/vision/operations/experiments.ensure"
    answer = tab.send("POST", path, {"name": "forged"}, **headers)
    assert answer.status in (200, 403), answer
    return answer.status == 200


def test_a_link_signs_in_once(people: People) -> None:
    command = [TRAINMASTER, "server", "login-link", "--user", "owner", "--root", str(people.server.root), "--json"]
    url = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["url"]
    tab = Tab(people)
    answer = tab.send("POST", "/login/link", {"code": code_of(url)})
    cookie = answer.headers["set-cookie"]
    assert re.search(r"; HttpOnly", cookie) and re.search(r"; SameSite=strict", cookie, re.IGNORECASE)
    tab.keep(answer)
    found = tab.send("GET", "/api/v1/me").json()
    assert (found["user"], found["credential"], found["csrf_token"]) == ("owner", "session", tab.csrf_token)
    again = Tab(people).send("POST", "/login/link", {"code": code_of(url)})
    assert again.status == 401 and "set-cookie" not in again.headers


def test_the_code_is_in_no_address_that_is_sent(people: People, tab: Tab) -> None:
    url = create_link(people)
    assert urlsplit(url).query == "" and urlsplit(url).path == "/login"
    page = tab.send("GET", "/login")
    # The page sends it in a body, and tells nobody where it comes from.
    assert page.status == 200 and page.headers["referrer-policy"] == "no-referrer"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    # Somebody who only fetches the link, as a chat does for a preview, does not use it up.
    assert tab.send("POST", "/login/link", {"code": code_of(url)}).status == 200
    log = people.server.log()
    assert code_of(url) not in log and tab.cookie.partition("=")[2] not in log and tab.csrf_token not in log
    for path in (f"/login?code={code_of(url)}", f"/login/link?code={code_of(url)}"):
        assert tab.send("GET", path).status in (400, 405)


def test_a_token_signs_a_browser_in(people: People) -> None:
    tab = Tab(people)
    tab.keep(tab.send("POST", "/login/session", Authorization=f"Bearer {people.tokens['reader']}"))
    assert tab.send("GET", "/api/v1/me").json()["user"] == "reader"
    narrow = people.ask("owner", "POST", "/api/v1/tokens", {"role": "reader"}).json()["token"]
    # A session has all rights of its user.
    assert Tab(people).send("POST", "/login/session", Authorization=f"Bearer {narrow}").status == 403


def test_signing_out_ends_the_session_on_the_server(people: People, tab: Tab) -> None:
    assert tab.send("GET", "/api/v1/me").status == 200
    answer = tab.send("POST", "/login/sign-out")
    assert answer.status == 200 and 'trainmaster_session=""' in answer.headers["set-cookie"]
    assert tab.send("GET", "/api/v1/me").status == 401


def test_removing_the_user_ends_the_session(people: People) -> None:
    assert people.ask("administrator", "POST", "/api/v1/users", {"name": "brief"}).status == 200
    tab = Tab(people)
    tab.keep(tab.send("POST", "/login/link", {"code": code_of(create_link(people, "brief"))}))
    assert tab.send("GET", "/api/v1/me").status == 200
    people.ask("administrator", "DELETE", "/api/v1/users/brief")
    assert tab.send("GET", "/api/v1/me").status == 401


def test_a_page_of_the_server_may_change_something(tab: Tab) -> None:
    assert is_change_accepted(tab)
    # Older browsers send no Sec-Fetch-Site.
    assert is_change_accepted(tab, Sec_Fetch_Site="")


@pytest.mark.parametrize(
    "headers",
    [
        {"X_CSRF_Token": ""},
        {"X_CSRF_Token": "0" * 64},
        {"Origin": "https://evil.example.org", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://evil.example.org", "Sec_Fetch_Site": ""},
        # Another program on the same machine is the same site, but another origin.
        {"Origin": "http://127.0.0.1:1", "Sec_Fetch_Site": "same-site"},
        {"Origin": "http://127.0.0.1:1", "Sec_Fetch_Site": ""},
        {"Origin": "null", "Sec_Fetch_Site": ""},
        {"Origin": "", "Sec_Fetch_Site": ""},
        {"Origin": "", "Sec_Fetch_Site": "cross-site"},
    ],
)
def test_a_page_of_another_site_may_not(people: People, tab: Tab, headers: dict[str, str]) -> None:
    assert not is_change_accepted(tab, **headers)


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example.org", "Sec_Fetch_Site": "cross-site"}])
def test_another_site_cannot_sign_a_browser_in(people: People, headers: dict[str, str]) -> None:
    """Or else somebody could work in the account of the attacker without noticing."""
    url = create_link(people)
    answer = Tab(people).send("POST", "/login/link", {"code": code_of(url)}, **headers)
    assert answer.status == 403 and "set-cookie" not in answer.headers


def test_a_form_is_not_json(people: People, tab: Tab) -> None:
    """Forms of other sites need no permission to be sent, but can only have these types."""
    path = "/api/v1/workspaces/vision/operations/experiments.ensure"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert tab.send("POST", path, b'{"name": "form"}', Content_Type=kind).status == 415


def test_no_answer_lets_other_sites_read_it(people: People, tab: Tab) -> None:
    evil = {"Origin": "https://evil.example.org"}
    asked = {**evil, "Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization"}
    for path in ("/api/v1/me", "/api/v1/workspaces", "/login", "/health", "/openapi.json"):
        for answer in (tab.send("GET", path, **evil), tab.send("OPTIONS", path, **asked)):
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert tab.send("OPTIONS", "/api/v1/me", **asked).status == 405


@pytest.mark.parametrize("host", ["evil.example.org", "evil.example.org:8765", "127.0.0.1.evil.example.org", ""])
def test_another_name_for_this_machine_is_refused(people: People, tab: Tab, host: str) -> None:
    """DNS rebinding: the page of evil.example.org talks to 127.0.0.1 under its own name, so all seems same-origin."""
    bearer = f"Bearer {people.tokens['administrator']}"
    for method, path in (("GET", "/api/v1/me"), ("GET", "/login"), ("POST", "/login/link"), ("GET", "/api/v1/users")):
        answer = people.server.request(
            method, path, token="", headers={"Host": host, "Origin": f"http://{host}", "Authorization": bearer}
        )
        assert answer.status in (400, 421), (path, answer)
    cookie = people.server.request("GET", "/api/v1/me", token="", headers={"Host": host, "Cookie": tab.cookie})
    assert cookie.status in (400, 421)


def test_with_tls_cookies_are_secure(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", settings={"public_url": "https://train.example.org"})
    try:
        made = server.request("POST", "/api/v1/users/admin/sign-in-link", headers={"Host": "train.example.org"})
        assert made.json()["url"].startswith("https://train.example.org/login#code=")
        own = {"Host": "train.example.org", "Origin": "https://train.example.org"}
        answer = server.request("POST", "/login/link", {"code": code_of(made.json()["url"])}, token="", headers=own)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-trainmaster_session=") and "; Secure" in cookie and "; Path=/" in cookie
    finally:
        server.end()


def test_a_session_ends_by_itself(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", settings={"session_hours": 1e-9})
    try:
        url = server.request("POST", "/api/v1/users/admin/sign-in-link").json()["url"]
        answer = server.request("POST", "/login/link", {"code": code_of(url)}, token="", headers={"Origin": server.url})
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert server.request("GET", "/api/v1/me", token="", headers={"Cookie": cookie}).status == 401
    finally:
        server.end()


def test_only_named_origins_may_show_pages_in_a_frame(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", settings={"frame_ancestors": ["https://hub.example.org"]})
    try:
        for path in ("/login", "/w/team/runs"):
            policy = server.request("GET", path, token="").headers["content-security-policy"]
            assert "frame-ancestors 'self' https://hub.example.org" in policy, path
    finally:
        server.end()


@pytest.mark.parametrize("origin", ["*", "https://a.example; img-src *", "hub.example.org", "https://", "javascript:"])
def test_what_is_not_an_origin_may_not(tmp_path: Path, origin: str) -> None:
    """It becomes part of a header."""
    with pytest.raises(UserErrorException, match="frame_ancestors"):
        Settings(frame_ancestors=(origin,))

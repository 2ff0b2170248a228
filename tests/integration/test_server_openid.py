"""Signing in with OpenID Connect: a real provider, a real server, and a browser between them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from tests.openid_provider import Browser, Page, Provider, run_provider
from tests.server_process import ServerProcess

GROUPS = {"ada-1": ["vision-team", "everyone"], "root-1": ["ml-admins"], "eve-1": []}
SETTINGS = {
    "client_id": "trainmaster",
    "scopes": ["openid", "profile", "groups"],
    "administrators": ["ml-admins"],
    "roles": {"vision-team": {"vision": "contributor"}, "leads": {"vision": "owner"}, "everyone": {"*": "reader"}},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with run_provider() as found:
        yield found


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("server")
    secret = folder / "secret"
    secret.write_text(provider.secret + "\n")
    openid = {**SETTINGS, "issuer": provider.issuer, "client_secret_file": str(secret)}
    process = ServerProcess(folder / "root", settings={"openid": openid})
    try:
        for name in ("vision", "other"):
            process.create_workspace(name)
        provider.register(f"{process.url}/login/openid/callback", GROUPS)
        yield process
    finally:
        process.end()


def go_to_provider(server: ServerProcess, browser: Browser, user: str) -> Page:
    """Up to the moment when the provider sends the browser back."""
    return browser.sign_in_at_provider(browser.open(f"{server.url}/login/openid"), user)


def sign_in(server: ServerProcess, user: str) -> tuple[Browser, Page]:
    browser = Browser()
    return browser, browser.open(go_to_provider(server, browser, user).url)


def me(server: ServerProcess, browser: Browser) -> dict:
    page = browser.open(f"{server.url}/api/v1/me")
    assert page.status == 200, page
    return json.loads(page.text)


def has_session(browser: Browser) -> bool:
    return any(cookie.name == "trainmaster_session" for cookie in browser.cookies)


def test_a_user_signs_in_and_has_the_roles_of_the_groups(server: ServerProcess) -> None:
    browser, page = sign_in(server, "ada-1")
    assert page.status == 200, page
    found = me(server, browser)
    assert (found["user"], found["is_admin"]) == ("ada", False)
    assert found["roles"] == {"vision": "contributor", "*": "reader"}
    assert browser.open(f"{server.url}/api/v1/workspaces/other").status == 200
    assert browser.open(f"{server.url}/api/v1/users").status == 403
    # Code, state and token are nowhere in what the server wrote.
    back = next(url for url in browser.visited if "/callback?" in url)
    secrets = [*parse_qs(urlsplit(back).query)["code"], *(cookie.value or "" for cookie in browser.cookies)]
    assert all(secret and secret not in server.log() for secret in secrets)


def test_roles_follow_the_groups_at_the_next_sign_in(server: ServerProcess, provider: Provider) -> None:
    sign_in(server, "ada-1")
    try:
        provider.change_groups({**GROUPS, "ada-1": ["leads"]})
        browser, _ = sign_in(server, "ada-1")
        assert me(server, browser)["roles"] == {"vision": "owner"}
        provider.change_groups({**GROUPS, "ada-1": []})
        browser, _ = sign_in(server, "ada-1")
        assert me(server, browser)["roles"] == {}
        assert browser.open(f"{server.url}/api/v1/workspaces/vision").status == 403
    finally:
        provider.change_groups(GROUPS)


def test_a_group_makes_administrators(server: ServerProcess) -> None:
    browser, _ = sign_in(server, "root-1")
    assert me(server, browser)["is_admin"]
    assert browser.open(f"{server.url}/api/v1/users").status == 200


def test_another_user_of_the_same_name_is_refused(server: ServerProcess) -> None:
    """Whoever may choose a name at the provider does not become somebody else: neither `ada` nor `admin`."""
    sign_in(server, "ada-1")
    for user in ("ada-2", "admin-1"):
        browser, page = sign_in(server, user)
        assert page.status == 403 and "belongs to another user" in page.text
        assert not has_session(browser)


def test_an_answer_that_was_begun_in_another_browser_is_refused(server: ServerProcess) -> None:
    """Without the check of the state, a link could sign somebody in as the attacker."""
    attacker, victim = Browser(), Browser()
    back = go_to_provider(server, attacker, "eve-1")
    assert victim.open(back.url).status == 403 and not has_session(victim)
    victim.open(f"{server.url}/login/openid", follow=False)
    assert victim.open(back.url).status == 403 and not has_session(victim)


def test_a_code_works_once(server: ServerProcess) -> None:
    browser = Browser()
    back = go_to_provider(server, browser, "eve-1")
    request = next(cookie for cookie in browser.cookies if cookie.name == "trainmaster_openid")
    assert browser.open(back.url).status == 200
    again = Browser()
    again.cookies.set_cookie(request)
    assert again.open(back.url).status == 403 and not has_session(again)


def test_pkce_binds_the_code_to_the_browser(server: ServerProcess) -> None:
    """A code that was stolen on the way is worth nothing with another verifier, even with a right state."""
    thief, victim = Browser(), Browser()
    stolen = parse_qs(urlsplit(go_to_provider(server, victim, "ada-1").url).query)["code"][0]
    own = urlsplit(go_to_provider(server, thief, "eve-1").url)
    state = parse_qs(own.query)["state"][0]
    page = thief.open(f"{server.url}/login/openid/callback?code={stolen}&state={state}")
    assert page.status == 403 and not has_session(thief)


@pytest.mark.parametrize(
    "query",
    ["", "state=x&code=y", "error=access_denied&state=x", "code=y&state=%00", "error=<script>alert(1)</script>"],
)
def test_answers_that_nobody_asked_for(server: ServerProcess, query: str) -> None:
    browser = Browser()
    page = browser.open(f"{server.url}/login/openid/callback?{query}")
    assert page.status == 403 and "<script>" not in page.text and not has_session(browser)


def test_the_browser_is_told_to_tell_nobody(server: ServerProcess) -> None:
    browser = Browser()
    first = browser.open(f"{server.url}/login/openid", follow=False)
    asked = parse_qs(urlsplit(first.headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["nonce"] and asked["state"]
    assert "HttpOnly" in first.headers["set-cookie"] and "samesite=lax" in first.headers["set-cookie"].lower()
    last = browser.open(go_to_provider(server, browser, "eve-1").url)
    assert last.headers["referrer-policy"] == "no-referrer" and last.headers["cache-control"] == "no-store"


def test_a_server_without_a_provider(tmp_path_factory: pytest.TempPathFactory) -> None:
    process = ServerProcess(tmp_path_factory.mktemp("plain") / "root")
    try:
        for path in ("/login/openid", "/login/openid/callback?code=x&state=y"):
            assert process.request("GET", path, token="").status == 404
    finally:
        process.end()


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("/w/vision/runs/a_1?filter=%22x%22", "/w/vision/runs/a_1?filter=%22x%22"),
        ('/w/"><script>alert(1)</script>', "/w/%22%3E%3Cscript%3Ealert(1)%3C/script%3E"),
        ("//evil.example.org/", "/"),
        ("https://evil.example.org/", "/"),
    ],
)
def test_the_page_that_was_wanted_is_shown_afterwards(server: ServerProcess, wanted: str, shown: str) -> None:
    browser = Browser()
    at_provider = browser.open(f"{server.url}/login/openid?next={quote(wanted, safe='')}")
    page = browser.open(browser.sign_in_at_provider(at_provider, "eve-1").url)
    assert page.status == 200 and has_session(browser)
    assert f'content="0;url={html.escape(shown)}"' in page.text and "<script>alert" not in page.text

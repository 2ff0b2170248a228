"""Signing a browser in and out: by a link, by a token, or with the OpenID Connect provider.

The code of a link is behind the `#` of its address: browsers send that part to nobody. A script of the page sends it
in the body of a request, so that no log, history of a proxy or `Referer` header has it.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from dataclasses import dataclass

import orjson
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trainmaster.job.errors import TrainmasterError
from trainmaster.server.api.table import Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.identity.audit import Change
from trainmaster.server.identity.callers import check_own_page
from trainmaster.server.identity.sessions import derive_csrf_token
from trainmaster.server.identity.sign_in import CALLBACK
from trainmaster.server.permissions import Permission

_LOGIN = "/login"


@dataclass(frozen=True)
class SignedInAnswer:
    """Who has signed in."""

    user: str
    csrf_token: str
    """For the header X-CSRF-Token of changes."""


async def show_page(call: Call) -> Response:
    """The page on which a person signs in."""
    return _page(_PAGE.format(openid=_OPENID_LINK if call.parts.sign_in.openid else "", script=_SCRIPT))


async def redeem_link(call: Call, code: str) -> Response:
    """Signs a browser in with the code of a sign-in link, which is used up by this."""
    check_own_page(call.request)
    sessions = call.parts.identity.sessions
    user = await call.parts.identity.run(sessions.redeem_link, code)
    if user is None:
        raise refuse(
            401,
            "the sign-in link cannot be used",
            cause="It was used already, or it is too old.",
            hint="Ask for a new one: trainmaster server login-link.",
        )
    return await _start_session(call, user, "link")


async def exchange_token(call: Call) -> Response:
    """Signs a browser in with the token in the Authorization header."""
    check_own_page(call.request)
    if call.caller.is_restricted or call.caller.session:
        raise refuse(403, "this token cannot sign a browser in", cause="It has fewer rights than its user.")
    return await _start_session(call, call.caller.name, call.caller.credential)


async def sign_out(call: Call) -> Response:
    """Ends the session of this browser."""
    if call.caller.session:
        await call.parts.identity.run(call.parts.identity.sessions.end, call.caller.session)
    response = Response(b"null", media_type="application/json")
    call.parts.sign_in.take_session(response)
    return response


async def begin_openid(call: Call) -> Response:
    """Sends the browser to the provider."""
    openid = call.parts.sign_in.openid
    if openid is None:
        raise refuse(404, "this server has no OpenID Connect provider", hint="Sign in with a link or a token.")
    address, sealed = await call.parts.identity.run(openid.begin, _callback(call))
    response = RedirectResponse(address, 302, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    call.parts.sign_in.give_request(response, sealed)
    return response


async def finish_openid(
    call: Call,
    code: str = "",
    state: str = "",
    iss: str | None = None,
    session_state: str | None = None,
    error: str | None = None,
    error_description: str | None = None,
) -> Response:
    """Signs the browser in that comes back from the provider."""
    openid, identity = call.parts.sign_in.openid, call.parts.identity
    if openid is None:
        raise refuse(404, "this server has no OpenID Connect provider", hint="Sign in with a link or a token.")
    given = {"code": code, "state": state, "iss": iss, "error": error}
    query = {name: value for name, value in given.items() if value is not None}
    cookie = call.request.cookies.get(call.parts.sign_in.request_cookie, "")
    try:
        found = await identity.run(openid.finish, query, cookie, _callback(call))
        user = await identity.run(
            identity.users.sign_in,
            found.name,
            openid.settings.issuer,
            found.subject,
            is_admin=found.is_admin,
            roles=found.roles,
        )
    except TrainmasterError as refused:
        response = _page(_REFUSED.format(*(html.escape(text) for text in (refused.headline, refused.cause))), 403)
        call.parts.sign_in.take_request(response)
        return response
    session = await _record_session(call, user.name, f"openid {found.subject}")
    # A page, not a redirect: a browser that comes from another site does not send a strict cookie along redirects.
    response = _page(_SIGNED_IN)
    call.parts.sign_in.give_session(response, session)
    call.parts.sign_in.take_request(response)
    return response


async def _start_session(call: Call, user: str, credential: str) -> Response:
    session = await _record_session(call, user, credential)
    answer = {"user": user, "csrf_token": derive_csrf_token(session)}
    response = Response(orjson.dumps(answer), headers={"Cache-Control": "no-store"}, media_type="application/json")
    call.parts.sign_in.give_session(response, session)
    return response


async def _record_session(call: Call, user: str, credential: str) -> str:
    """Starts a session. Sign-ins are in the audit log; attempts are not, because anybody can make them."""
    identity, request = call.parts.identity, call.request
    session = await identity.run(identity.sessions.start, user)
    change = Change(
        user,
        credential[:300],
        request.method,
        call.route.path,
        request_id=call.request_id,
        address=request.client.host if request.client else "",
    )
    await identity.run(identity.audit.record, change, 200)
    return session


def _callback(call: Call) -> str:
    return call.parts.sign_in.make_address(call.request.headers["host"]) + CALLBACK


def _page(body: str, status: int = 200) -> HTMLResponse:
    policy = (
        f"default-src 'none'; script-src '{_SCRIPT_HASH}'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(_FRAME.format(body=body), status, headers)


_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Trainmaster</title></head>
<body>{body}</body></html>
"""

_PAGE = """<h1>Trainmaster</h1>
<p id="state" role="status"></p>
<form id="link" hidden><button>Sign in</button></form>
<form id="token"><label>Token <input type="password" autocomplete="off" required></label><button>Sign in</button></form>
{openid}
<script>{script}</script>"""

_OPENID_LINK = '<p><a href="/login/openid">Sign in with your organisation</a></p>'

_SIGNED_IN = '<meta http-equiv="refresh" content="0;url=/"><p>You are signed in. <a href="/">Continue</a></p>'

_REFUSED = '<h1>Trainmaster</h1><p>{0}</p><p>{1}</p><p><a href="/login">Try again</a></p>'

_SCRIPT = """
const state = document.getElementById("state"), link = document.getElementById("link");
const code = new URLSearchParams(location.hash.slice(1)).get("code");
history.replaceState(null, "", "/login");
async function send(path, options) {
  const answer = await fetch(path, {method: "POST", ...options});
  const body = await answer.json();
  if (answer.ok) { location.replace("/"); return; }
  state.textContent = body.error.headline + ". " + body.error.cause;
}
if (code) { link.hidden = false; }
link.addEventListener("submit", (event) => {
  event.preventDefault();
  send("/login/link", {headers: {"Content-Type": "application/json"}, body: JSON.stringify({code})});
});
document.getElementById("token").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = event.target.querySelector("input").value.trim();
  send("/login/session", {headers: {"Authorization": "Bearer " + token}});
});
"""
_SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()


def sign_in_rows() -> Iterator[Route]:
    """The routes of this module. Anonymous attempts change nothing, so they are not in the audit log."""
    public, tag = Permission.PUBLIC, "sign-in"
    page = "text/html"
    yield Route("GET", _LOGIN, show_page, public, "The page for signing in", tag, media_type=page)
    yield Route(
        "POST",
        f"{_LOGIN}/link",
        redeem_link,
        public,
        "Sign in with the code of a link",
        tag,
        is_change=False,
        secret_arguments=True,
        answer=SignedInAnswer,
        statuses=(401, 403),
    )
    yield Route(
        "POST",
        f"{_LOGIN}/session",
        exchange_token,
        Permission.SIGNED_IN,
        "Sign a browser in with a token",
        tag,
        is_change=False,
        answer=SignedInAnswer,
    )
    yield Route(
        "POST", f"{_LOGIN}/sign-out", sign_out, Permission.SIGNED_IN, "Sign a browser out", tag, secret_answer=True
    )
    yield Route(
        "GET",
        f"{_LOGIN}/openid",
        begin_openid,
        public,
        "Sign in with the OpenID Connect provider",
        tag,
        media_type=page,
        statuses=(302, 404),
    )
    yield Route(
        "GET",
        CALLBACK,
        finish_openid,
        public,
        "Where the provider sends the browser back to",
        tag,
        media_type=page,
        statuses=(403, 404),
    )

"""Signing a browser in and out: by a link, by a token, or with the OpenID Connect provider."""

from __future__ import annotations

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
from trainmaster.server.studio.pages import read_pages
from trainmaster.server.studio.sign_in_page import (
    check_next,
    write_policy,
    write_refusal,
    write_sign_in,
    write_signed_in,
)

_LOGIN = "/login"


@dataclass(frozen=True)
class SignedInAnswer:
    """Who has signed in."""

    user: str
    csrf_token: str
    """For the header X-CSRF-Token of changes."""


async def show_page(call: Call, next: str = "/") -> Response:
    """The page on which a person signs in. Afterwards it shows the path `next` of this site."""
    sign_in = call.parts.sign_in
    text = write_sign_in(
        _find_digest(), check_next(next), has_provider=sign_in.openid is not None, is_personal=sign_in.is_personal
    )
    return _page(call, text)


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
            hint="Ask for a new one: trainmaster studio, or trainmaster server login-link.",
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


async def begin_openid(call: Call, next: str = "/") -> Response:
    """Sends the browser to the provider. When it comes back, it is shown the path `next` of this site."""
    openid = call.parts.sign_in.openid
    if openid is None:
        raise refuse(404, "this server has no OpenID Connect provider", hint="Sign in with a link or a token.")
    address, sealed = await call.parts.identity.run(openid.begin, _callback(call), check_next(next))
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
        response = _page(call, write_refusal(_find_digest(), refused.headline, refused.cause), 403)
        call.parts.sign_in.take_request(response)
        return response
    session = await _record_session(call, user.name, f"openid {found.subject}")
    # A page, not a redirect: a browser that comes from another site does not send a strict cookie along redirects.
    response = _page(call, write_signed_in(_find_digest(), check_next(found.next_page)))
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


def _find_digest() -> str:
    """The name of the folder with the style of the studio; empty if it was not built."""
    pages = read_pages()
    return pages.digest if pages else ""


def _page(call: Call, text: str, status: int = 200) -> HTMLResponse:
    headers = {
        "Content-Security-Policy": write_policy(call.parts.settings.frame_ancestors),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, status, headers)


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

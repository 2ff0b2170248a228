"""Browsers signing in: cookies, links and the provider."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from trainmaster.job.errors import UserErrorException
from trainmaster.server.identity.openid import REQUEST_SECONDS, OpenId
from trainmaster.server.identity.service import IdentityService
from trainmaster.server.settings import Settings

_SESSION = "trainmaster_session"
_PERSONAL_SESSION = "trainmaster_studio"
"""Cookies belong to a host, not to a port: a server on the same machine has another name for its own, and so has each
studio."""
_REQUEST = "trainmaster_openid"
CALLBACK = "/login/openid/callback"


@dataclass(frozen=True)
class SignIn:
    """How browsers of this server sign in."""

    has_tls: bool
    public_url: str
    session_seconds: float
    openid: OpenId | None
    is_personal: bool = False
    cookie_suffix: str = ""

    @property
    def session_cookie(self) -> str:
        """The name of the session's cookie. With `__Host-` no other name of the domain can set it."""
        if self.is_personal:
            return f"{_PERSONAL_SESSION}{self.cookie_suffix}"
        return f"__Host-{_SESSION}" if self.has_tls else _SESSION

    @property
    def request_cookie(self) -> str:
        """The name of the cookie between the two requests of a sign-in with the provider."""
        return f"__Host-{_REQUEST}" if self.has_tls else _REQUEST

    def give_session(self, response: Response, session: str) -> None:
        """Sign the browser in. Scripts cannot read the cookie, and other sites cannot have it sent."""
        response.set_cookie(
            self.session_cookie,
            session,
            max_age=int(self.session_seconds),
            path="/",
            secure=self.has_tls,
            httponly=True,
            samesite="strict",
        )

    def take_session(self, response: Response) -> None:
        """Sign the browser out."""
        response.delete_cookie(self.session_cookie, "/", secure=self.has_tls, httponly=True, samesite="strict")

    def give_request(self, response: Response, sealed: str) -> None:
        """Remember a sign-in with the provider. The way back is a navigation from another site, so not `strict`."""
        response.set_cookie(
            self.request_cookie,
            sealed,
            max_age=int(REQUEST_SECONDS),
            path="/",
            secure=self.has_tls,
            httponly=True,
            samesite="lax",
        )

    def take_request(self, response: Response) -> None:
        """Forget a sign-in with the provider."""
        response.delete_cookie(self.request_cookie, "/", secure=self.has_tls, httponly=True, samesite="lax")

    def make_address(self, host: str) -> str:
        """The server's own address, as the browser knows it. The host was checked before."""
        return self.public_url.rstrip("/") or f"{'https' if self.has_tls else 'http'}://{host}"


def make_sign_in(settings: Settings, identity: IdentityService) -> SignIn:
    """How browsers sign in to a server with these settings."""
    openid = None
    if settings.openid is not None:
        check_openid(settings)
        openid = OpenId(settings.openid, _read_secret(settings.openid.client_secret_file), identity.read_cookie_key())
    return SignIn(
        settings.has_tls,
        settings.public_url,
        identity.sessions.seconds,
        openid,
        settings.is_personal,
        settings.cookie_suffix,
    )


def check_openid(settings: Settings) -> None:
    """Refuse settings by which nobody, or the wrong person, could sign in."""
    from trainmaster.server.identity.members import check_role

    assert settings.openid is not None
    try:
        import jwt  # noqa: F401
    except ImportError:
        raise UserErrorException(
            "sign-in with OpenID Connect needs the package PyJWT", hint="Install it: pip install 'trainmaster[server]'"
        ) from None
    for roles in settings.openid.roles.values():
        for role in roles.values():
            check_role(role)


def _read_secret(file: str) -> str:
    if not file:
        return ""
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise UserErrorException(
            "the secret of the OpenID Connect client cannot be read",
            cause=str(error),
            hint="Check openid.client_secret_file in server.json.",
        ) from None

"""Sign-in with an OpenID Connect provider: the code flow with PKCE, state and nonce.

What is needed between the two requests of a browser (state, nonce, verifier) is in a signed cookie of that browser, so
that nobody who is not signed in can make the server keep anything.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from trainmaster.job.errors import AuthenticationException, ServiceException, UserErrorException
from trainmaster.server.identity.web import Fetch, fetch_json

REQUEST_SECONDS = 600.0
"""How long a person may take at the provider."""

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_LEEWAY_SECONDS = 60
_KEYS_SECONDS = 60.0
"""How often the provider's keys are asked for at most, if a token has an unknown one."""


@dataclass(frozen=True)
class OpenIdSettings:
    """`openid` in server.json."""

    issuer: str
    client_id: str
    client_secret_file: str = ""
    """A file that has the secret; empty for a public client, which PKCE alone protects."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    allowed_groups: tuple[str, ...] = ()
    """Only members of these groups may sign in; empty: everybody whom the provider knows."""
    administrators: tuple[str, ...] = ()
    """The groups whose members are administrators of the server."""
    roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Group to workspace to role. The workspace `*` stands for all."""

    def __post_init__(self) -> None:
        _check_address(self.issuer, "openid.issuer")


@dataclass(frozen=True)
class Pending:
    """What the server must know again when the browser comes back from the provider."""

    state: str
    nonce: str
    verifier: str
    expires_at: float
    next_page: str = "/"
    """The path to show afterwards."""


@dataclass(frozen=True)
class Identified:
    """Who the provider says has signed in, and what follows from the groups."""

    subject: str
    name: str
    is_admin: bool
    roles: Mapping[str, str]
    next_page: str = "/"
    """What the browser was about to show before the sign-in."""


class OpenId:
    """The client of one provider. Methods that ask the provider block: call them in a thread."""

    def __init__(self, settings: OpenIdSettings, secret: str, key: bytes, fetch: Fetch = fetch_json) -> None:
        self.settings = settings
        self._secret = secret
        self._key = key
        self._fetch = fetch
        self._metadata: Mapping[str, Any] = {}
        self._keys: Any = None
        self._keys_at = 0.0

    def begin(self, redirect_uri: str, next_page: str = "/") -> tuple[str, str]:
        """The address at the provider to send a browser to, and the value of the cookie to give it."""
        pending = Pending(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(48),
            time.time() + REQUEST_SECONDS,
            next_page,
        )
        parameters = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.settings.scopes),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": challenge(pending.verifier),
            "code_challenge_method": "S256",
        }
        address = self._endpoint("authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}", seal(pending, self._key)

    def finish(self, parameters: Mapping[str, str], cookie: str, redirect_uri: str) -> Identified:
        """Who has signed in, from the query of the browser's second request and its cookie."""
        pending = unseal(cookie, self._key, time.time())
        if pending is None or not hmac.compare_digest(
            parameters.get("state", "").encode("utf-8", "surrogatepass"), pending.state.encode()
        ):
            raise refuse_sign_in("The answer does not belong to a sign-in that was begun in this browser.")
        if "error" in parameters:
            raise refuse_sign_in(f"The provider says: {parameters['error'][:200]}")
        # RFC 9207: an answer of another provider must not be taken for one of this provider.
        if parameters.get("iss", self.settings.issuer) != self.settings.issuer:
            raise refuse_sign_in("The answer comes from another provider.")
        answer = self._redeem(parameters.get("code", ""), pending.verifier, redirect_uri)
        claims = self._check_id_token(str(answer.get("id_token", "")), pending.nonce)
        return replace(decide(self._complete(claims, answer), self.settings), next_page=pending.next_page)

    def _redeem(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self.settings.client_id,
        }
        headers = {}
        if self._secret:
            headers["Authorization"] = _basic(self.settings.client_id, self._secret)
        return self._fetch(self._endpoint("token_endpoint"), form, headers)

    def _check_id_token(self, token: str, nonce: str) -> Mapping[str, Any]:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key=self._find_key(header.get("kid")),
                algorithms=list(_ALGORITHMS),
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise refuse_sign_in(f"The provider's token is not valid: {error}") from None
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode("utf-8", "surrogatepass"), nonce.encode()):
            raise refuse_sign_in("The provider's token belongs to another sign-in.")
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != self.settings.client_id:
            raise refuse_sign_in("The provider's token was issued for another client.")
        return claims

    def _complete(self, claims: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The claims with those that the provider gives only at its userinfo endpoint."""
        wanted = (self.settings.name_claim, self.settings.groups_claim)
        access_token, address = answer.get("access_token"), self._provider().get("userinfo_endpoint")
        if all(name in claims for name in wanted) or not access_token or not address:
            return claims
        further = self._fetch(self._endpoint("userinfo_endpoint"), None, {"Authorization": f"Bearer {access_token}"})
        if further.get("sub") != claims["sub"]:
            raise refuse_sign_in("The provider describes another user than the one who has signed in.")
        return {**further, **claims}

    def _find_key(self, key_id: str | None) -> Any:
        import jwt

        for is_second in (False, True):
            if self._keys is None or (is_second and time.monotonic() - self._keys_at > _KEYS_SECONDS):
                self._keys = jwt.PyJWKSet.from_dict(dict(self._fetch(self._endpoint("jwks_uri"), None, {})))
                self._keys_at = time.monotonic()
            usable = [key for key in self._keys.keys if key.public_key_use in (None, "sig")]
            found = [key for key in usable if key.key_id == key_id] if key_id else usable[:1]
            if found:
                return found[0]
        raise jwt.InvalidKeyError("it is signed with an unknown key")

    def _provider(self) -> Mapping[str, Any]:
        if not self._metadata:
            address = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            found = self._fetch(address, None, {})
            if found.get("issuer") != self.settings.issuer:
                raise ServiceException(
                    "the OpenID Connect provider calls itself by another name",
                    cause=f"It says {str(found.get('issuer'))[:200]!r}, not {self.settings.issuer!r}.",
                    hint="Correct openid.issuer in server.json.",
                )
            self._metadata = found
        return self._metadata

    def _endpoint(self, name: str) -> str:
        return _check_address(str(self._provider().get(name, "")), f"the provider's {name}")


def challenge(verifier: str) -> str:
    """PKCE's challenge of a verifier (S256).

    >>> challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return _encode(hashlib.sha256(verifier.encode()).digest())


def seal(pending: Pending, key: bytes) -> str:
    """The cookie of a sign-in: the facts and their signature."""
    facts = _encode(json.dumps(astuple(pending)).encode())
    return f"{facts}.{_sign(facts, key)}"


def unseal(cookie: str, key: bytes, now: float) -> Pending | None:
    """The facts of a cookie; None for one that is forged, broken or too old."""
    facts, _, signature = cookie.partition(".")
    if not hmac.compare_digest(_sign(facts, key).encode(), signature.encode("utf-8", "surrogatepass")):
        return None
    pending = Pending(*json.loads(_decode(facts)))
    return pending if now < pending.expires_at else None


def decide(claims: Mapping[str, Any], settings: OpenIdSettings) -> Identified:
    """What the server makes of the claims of a user."""
    found = claims.get(settings.groups_claim)
    groups = [str(each) for each in found] if isinstance(found, Sequence) and not isinstance(found, str) else []
    if settings.allowed_groups and not any(group in settings.allowed_groups for group in groups):
        raise refuse_sign_in(
            "You are not in a group that may use this server.",
            "Ask an administrator of the server, or of the provider.",
        )
    name = claims.get(settings.name_claim)
    if not isinstance(name, str) or not name:
        raise refuse_sign_in(
            f"The provider does not say the user's {settings.name_claim}.", "Check openid.name_claim and openid.scopes."
        )
    is_admin = any(group in settings.administrators for group in groups)
    return Identified(str(claims["sub"]), name, is_admin, merge_roles(groups, settings.roles))


def merge_roles(groups: Sequence[str], roles: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The highest role of these groups in every workspace."""
    from trainmaster.server.permissions import Role, highest_role

    found: dict[str, str] = {}
    for group in groups:
        for workspace, role in roles.get(group, {}).items():
            known = [Role(found[workspace])] if workspace in found else []
            found[workspace] = str(highest_role([*known, Role(role)]))
    return found


def refuse_sign_in(cause: str, hint: str = "Sign in again.") -> AuthenticationException:
    """The error for a sign-in that the provider, or the server, does not accept."""
    return AuthenticationException("you could not be signed in", cause=cause, hint=hint)


def _check_address(address: str, what: str) -> str:
    """The address, if nobody on the way can read or change what is sent there."""
    parts = urlsplit(address)
    is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
        raise UserErrorException(f"{what} must begin with https://", cause=f"It is {address[:200]!r}.")
    return address


def _basic(client_id: str, secret: str) -> str:
    from urllib.parse import quote

    # RFC 6749, 2.3.1: both are encoded as in a form first.
    pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _sign(facts: str, key: bytes) -> str:
    return hmac.new(key, b"openid\0" + facts.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

"""The checks of a provider's answer: each forged one would sign somebody in if its check were missing."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from trainmaster.job.errors import AuthenticationException, ServiceException, UserErrorException
from trainmaster.server.identity.openid import OpenId, OpenIdSettings, Pending, merge_roles, seal, unseal

ISSUER = "https://id.example.org"
KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
COOKIE_KEY = b"k" * 32
SETTINGS = OpenIdSettings(ISSUER, "trainmaster", groups_claim="groups", administrators=("admins",))
PENDING = Pending("the state", "the nonce", "the verifier", time.time() + 600)
CALLBACK = "https://train.example.org/login/openid/callback"


def public(key: rsa.RSAPrivateKey, key_id: str = "one") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return {**found, "kid": key_id, "use": "sig"}


class AtProvider:
    """What the provider answers; a test changes it."""

    def __init__(self) -> None:
        now = time.time()
        self.claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": "trainmaster",
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": PENDING.nonce,
            "preferred_username": "ada",
            "groups": ["admins"],
        }
        self.key: Any = KEY
        self.algorithm = "RS256"
        self.key_id = "one"
        self.keys = [public(KEY)]
        self.userinfo: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {"issuer": ISSUER, "userinfo_endpoint": f"{ISSUER}/userinfo"}
        self.asked: list[tuple[str, Mapping[str, str] | None]] = []

    def __call__(self, address: str, form: Mapping[str, str] | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        self.asked.append((address, form))
        if address.endswith("/.well-known/openid-configuration"):
            ends = {name: f"{ISSUER}/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
            return {**ends, **self.metadata}
        if address.endswith("/jwks_uri"):
            return {"keys": self.keys}
        if address.endswith("/userinfo"):
            return self.userinfo
        token = jwt.encode(self.claims, self.key, self.algorithm, {"kid": self.key_id})
        return {"id_token": token, "access_token": "access"}


@pytest.fixture
def provider() -> AtProvider:
    return AtProvider()


def finish(provider: AtProvider, **parameters: str) -> Any:
    client = OpenId(SETTINGS, "", COOKIE_KEY, provider)
    return client.finish({"code": "c", "state": PENDING.state, **parameters}, seal(PENDING, COOKIE_KEY), CALLBACK)


def test_a_right_answer(provider: AtProvider) -> None:
    found = finish(provider)
    assert (found.subject, found.name, found.is_admin) == ("1", "ada", True)
    form = next(form for address, form in provider.asked if address.endswith("token_endpoint"))
    assert form is not None and form["code_verifier"] == PENDING.verifier and form["redirect_uri"] == CALLBACK


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example.org"},
        {"aud": "other client"},
        {"aud": ["trainmaster", "other"], "azp": "other"},
        {"aud": ["trainmaster", "other"]},
        {"exp": time.time() - 3600},
        {"exp": None},
        {"iat": time.time() + 3600},
        {"nonce": "another nonce"},
        {"nonce": None},
        {"sub": None},
    ],
)
def test_wrong_claims_are_refused(provider: AtProvider, claims: Mapping[str, Any]) -> None:
    provider.claims = {name: value for name, value in {**provider.claims, **claims}.items() if value is not None}
    with pytest.raises(AuthenticationException):
        finish(provider)


def test_a_token_signed_by_somebody_else_is_refused(provider: AtProvider) -> None:
    provider.key = OTHER_KEY
    with pytest.raises(AuthenticationException, match="Signature"):
        finish(provider)


def test_a_token_without_signature_is_refused(provider: AtProvider) -> None:
    provider.key, provider.algorithm = None, "none"
    with pytest.raises(AuthenticationException):
        finish(provider)


def test_a_public_key_is_not_taken_for_a_shared_secret(provider: AtProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classic confusion: HS256 with the provider's public key, which everybody knows."""
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    # PyJWT refuses to sign so; an attacker does not use PyJWT.
    monkeypatch.setattr(jwt.algorithms.HMACAlgorithm, "prepare_key", lambda self, key: key)
    provider.key, provider.algorithm = pem, "HS256"
    with pytest.raises(AuthenticationException):
        finish(provider)


def test_a_shared_secret_is_no_key_of_a_provider(provider: AtProvider) -> None:
    """Only algorithms with a public key are allowed: whoever checks such a signature could also make it."""
    provider.key, provider.algorithm = bytes(range(32)), "HS256"
    secret = base64.urlsafe_b64encode(provider.key).decode().rstrip("=")
    provider.keys = [{"kty": "oct", "k": secret, "kid": "one", "use": "sig"}]
    with pytest.raises(AuthenticationException, match="alg"):
        finish(provider)


def test_an_unknown_key_is_looked_up_again_after_a_minute(
    provider: AtProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = OpenId(SETTINGS, "", COOKIE_KEY, provider)
    given = {"code": "c", "state": PENDING.state}
    client.finish(given, seal(PENDING, COOKIE_KEY), CALLBACK)
    provider.key, provider.key_id, provider.keys = OTHER_KEY, "two", [public(OTHER_KEY, "two")]
    with pytest.raises(AuthenticationException, match="unknown key"):
        client.finish(given, seal(PENDING, COOKIE_KEY), CALLBACK)
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert client.finish(given, seal(PENDING, COOKIE_KEY), CALLBACK).name == "ada"


def test_groups_may_come_from_the_userinfo_endpoint(provider: AtProvider) -> None:
    del provider.claims["groups"]
    provider.userinfo = {"sub": "1", "groups": ["admins"]}
    assert finish(provider).is_admin
    provider.userinfo = {"sub": "2", "groups": ["admins"]}
    with pytest.raises(AuthenticationException, match="another user"):
        finish(provider)


def test_only_members_of_some_groups_may_sign_in(provider: AtProvider) -> None:
    """With a provider that everybody can join, everybody would be a user of the server."""
    client = OpenId(replace(SETTINGS, allowed_groups=("staff", "guests")), "", COOKIE_KEY, provider)
    given = {"code": "c", "state": PENDING.state}
    for groups, is_allowed in ((["admins"], False), ([], False), ("staff", False), (["x", "guests"], True)):
        provider.claims["groups"] = groups
        if is_allowed:
            assert client.finish(given, seal(PENDING, COOKIE_KEY), CALLBACK).name == "ada"
        else:
            with pytest.raises(AuthenticationException, match="not in a group"):
                client.finish(given, seal(PENDING, COOKIE_KEY), CALLBACK)


def test_a_text_is_not_a_list_of_groups(provider: AtProvider) -> None:
    provider.claims["groups"] = "admins"
    assert not finish(provider).is_admin


@pytest.mark.parametrize("state", ["", "another state", "\udcff"])
def test_a_wrong_state_is_refused(provider: AtProvider, state: str) -> None:
    with pytest.raises(AuthenticationException, match="begun in this browser"):
        finish(provider, state=state)
    assert provider.asked == []


def test_an_answer_of_another_provider_is_refused(provider: AtProvider) -> None:
    with pytest.raises(AuthenticationException, match="another provider"):
        finish(provider, iss="https://other.example.org")


def test_a_cookie_that_was_changed_is_refused() -> None:
    sealed = seal(PENDING, COOKIE_KEY)
    assert unseal(sealed, COOKIE_KEY, time.time()) == PENDING
    assert unseal(sealed, b"other" * 8, time.time()) is None
    assert unseal(sealed, COOKIE_KEY, PENDING.expires_at) is None
    facts, _, signature = sealed.partition(".")
    for cookie in ("", ".", f"{facts[:-2]}AA.{signature}", f"{facts}.", f"{facts}.\udcff"):
        assert unseal(cookie, COOKIE_KEY, time.time()) is None


def test_an_issuer_with_another_name_is_refused(provider: AtProvider) -> None:
    provider.metadata["issuer"] = "https://other.example.org"
    with pytest.raises(ServiceException, match="another name"):
        finish(provider)


@pytest.mark.parametrize("address", ["http://id.example.org", "file:///etc/passwd", "id.example.org", "https://", ""])
def test_addresses_without_tls_are_refused(provider: AtProvider, address: str) -> None:
    with pytest.raises(UserErrorException, match="https"):
        OpenIdSettings(address, "trainmaster")
    provider.metadata["token_endpoint"] = address
    with pytest.raises(UserErrorException, match="https"):
        finish(provider)


def test_the_highest_role_of_all_groups_counts() -> None:
    roles = {"a": {"vision": "reader", "nlp": "owner"}, "b": {"vision": "owner"}, "c": {"vision": "contributor"}}
    assert merge_roles(["a", "b", "c", "unknown"], roles) == {"vision": "owner", "nlp": "owner"}
    assert merge_roles([], roles) == {}

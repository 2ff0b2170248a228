"""Random texts that prove something: created once, given away, and kept only as SHA-256."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "tm_"
RUN_TOKEN_PREFIX = "tmr_"
_BYTES = 32


def make_token() -> str:
    """A new token of a user: `tm_` and 32 random bytes."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_BYTES)


def make_code() -> str:
    """A new code of a sign-in link, or value of a session's cookie."""
    return secrets.token_urlsafe(_BYTES)


def make_id() -> str:
    """A new public id."""
    return secrets.token_hex(8)


def hash_secret(text: str) -> bytes:
    """What is kept of a secret text.

    A plain digest is enough: nobody can guess 32 random bytes. The look-up by digest tells nothing about a token by
    its duration, because a digest that is nearly right belongs to a token that is entirely different.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

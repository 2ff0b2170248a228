"""Requests of the server to the OpenID Connect provider: the only ones it ever sends, to addresses of server.json."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from trainmaster.job.errors import ServiceException

_SECONDS = 10.0
_LARGEST_ANSWER = 1024 * 1024


class Fetch(Protocol):
    """Gets a JSON object: with a form by POST, without one by GET."""

    def __call__(self, address: str, form: Mapping[str, str] | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """The object in the answer."""


def fetch_json(address: str, form: Mapping[str, str] | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """Get a JSON object. Redirects are not followed, and what is too long is refused."""
    data = urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(address, data, {"Accept": "application/json", **headers})
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            text = answer.read(_LARGEST_ANSWER + 1)
        found = json.loads(text) if len(text) <= _LARGEST_ANSWER else None
    except urllib.error.HTTPError as error:
        raise _fail(address, f"It answered {error.code}: {_read_reason(error)}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _fail(address, str(error)) from None
    if not isinstance(found, dict):
        raise _fail(address, "Its answer is not a JSON object.")
    return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _read_reason(error: urllib.error.HTTPError) -> str:
    try:
        found = json.loads(error.read(10_000))
        return f"{found.get('error', '')} {found.get('error_description', '')}"[:300].strip()
    except (OSError, ValueError, AttributeError):
        return str(error.reason)[:100]


def _fail(address: str, cause: str) -> ServiceException:
    # Without path and query: they may have a secret.
    return ServiceException(
        f"the OpenID Connect provider {urlsplit(address).hostname} cannot be used",
        cause=cause,
        hint="Check `openid` in server.json, and that this machine can reach the provider.",
    )

"""The proxy on the way to a server, from the variables of the environment that other programs use too."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.remote.address import ServerAddress


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy, and the headers that it wants."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)


def find_proxy(address: ServerAddress) -> Proxy | None:
    """The proxy of `https_proxy`, `http_proxy` or `all_proxy`; none for this machine and for hosts in `no_proxy`."""
    if address.is_loopback or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # It takes long to import, and most users have no proxy.
    from urllib.request import getproxies, proxy_bypass

    known = getproxies()
    given = known.get(address.scheme) or known.get("all")
    if not given or proxy_bypass(f"{address.host}:{address.port}"):
        return None
    return parse_proxy(given)


def parse_proxy(given: str) -> Proxy:
    """The proxy that a variable names.

    >>> parse_proxy("proxy.example.org:3128")
    Proxy(host='proxy.example.org', port=3128, headers={})
    """
    parts = urlsplit(given if "://" in given else f"http://{given}")
    if parts.scheme != "http" or not parts.hostname:
        raise UserErrorException(
            f"a proxy of the kind {parts.scheme!r} cannot be used to reach the server",
            hint="Set https_proxy to the address of an HTTP proxy, or add the server to no_proxy.",
        )
    return Proxy(parts.hostname, parts.port or 80, _authorization(parts.username, parts.password))


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if not user:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode()}"}

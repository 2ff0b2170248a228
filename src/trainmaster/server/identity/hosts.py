"""Whether a request was sent to this server by a page or program of its own: Host, Origin and Sec-Fetch-Site.

A page of another site can let its own name point to this machine (DNS rebinding) and then talk to the server as if it
were its own. Its requests still have the other site's name in `Host`, so only known names are answered. An address
of digits cannot be rebound.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

_ALWAYS = frozenset({"localhost"})
_LONGEST = 300
"""Of a name in the domain name system 253, and a port."""


@dataclass(frozen=True)
class AllowedHosts:
    """The names that this server answers to, in lower case."""

    names: frozenset[str]

    def allows(self, host: str) -> bool:
        """Whether a request with this `Host` header is answered."""
        return len(host) <= _LONGEST and _allows(self.names, host)


@lru_cache(maxsize=1024)
def _allows(names: frozenset[str], host: str) -> bool:
    name = split_host(host)
    return name is not None and (name in names or _is_address(name))


def find_allowed_hosts(public_url: str = "", further: Iterable[str] = ()) -> AllowedHosts:
    """localhost, the name of this machine, the name in the public URL, and further names of `server.json`."""
    public = urlsplit(public_url).hostname if public_url else None
    own = socket.gethostname()
    names = {*_ALWAYS, own, socket.getfqdn(own), *further, *([public] if public else [])}
    return AllowedHosts(frozenset(name.lower().rstrip(".") for name in names if name))


def split_host(host: str) -> str | None:
    """The name or address in a `Host` header, without the port; None if it cannot be one."""
    if not host or any(sign in host for sign in "/\\@?#, \t"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return (parts.hostname or "").lower().rstrip(".") or None


def comes_from_own_page(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Whether a browser says that a page of this server has sent the request.

    Without any statement the answer is no: every browser that has cookies of ours sends one of both with a change.
    """
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    if origin is None:
        return fetch_site == "same-origin"
    # The scheme may differ behind a proxy that ends TLS; name and port may not.
    return bool(host) and urlsplit(origin).netloc.lower() == host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

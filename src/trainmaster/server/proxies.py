"""Clients behind a reverse proxy: their addresses, for the logs."""

from __future__ import annotations

import ipaddress
from collections.abc import Container, MutableMapping
from typing import Any

_HEADER = b"x-forwarded-for"


def replace_proxy(scope: MutableMapping[str, Any], proxies: Container[str]) -> None:
    """Put the address that a known proxy names in the place of its own.

    Only the last address of the header comes from the proxy; a client may have sent those before it.

    >>> scope = {"client": ("127.0.0.1", 5), "headers": [(b"x-forwarded-for", b"10.0.0.1, 192.0.2.7")]}
    >>> replace_proxy(scope, ("127.0.0.1",))
    >>> scope["client"]
    ('192.0.2.7', 0)
    """
    client = scope.get("client")
    if not client or client[0] not in proxies:
        return
    named = [value for name, value in scope["headers"] if name == _HEADER]
    address = named[-1].rpartition(b",")[2].strip().decode("latin-1") if named else ""
    if _is_address(address):
        scope["client"] = (address, 0)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

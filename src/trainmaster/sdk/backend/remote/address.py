"""Addresses of servers and of workspaces on them. Pure: nothing here opens a connection."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from trainmaster.job.errors import UserErrorException

SERVER = "TRAINMASTER_SERVER"
TOKEN = "TRAINMASTER_TOKEN"
WORKSPACE = "TRAINMASTER_WORKSPACE"
INSECURE = "TRAINMASTER_INSECURE"

_WORKSPACES = ("/workspaces/", "/w/")
"""What is before the name of a workspace in addresses: of the API, and of pages of the studio."""
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is: scheme, host, port, and the path that a reverse proxy may put before everything."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """Host and port as in an address; the usual port is left out.

        >>> ServerAddress("https", "::1", 8443).authority
        '[::1]:8443'
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, so that nobody on a network can read the token."""
        return is_loopback(self.host)

    @property
    def folder_name(self) -> str:
        """A name for the folders of this server in the user's cache.

        >>> parse_server("https://gpu.example.org:8443/team").folder_name
        'https_gpu.example.org_8443_team'
        """
        parts = (self.scheme, self.host, str(self.port), *self.prefix.split("/"))
        return "_".join(quote(part, safe="").replace("%", "-") for part in parts if part)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


def parse_server(text: str) -> ServerAddress:
    """The server that an address names.

    >>> str(parse_server("HTTPS://GPU.example.org:443/"))
    'https://gpu.example.org'
    >>> parse_server("https://example.org/trainmaster").prefix
    '/trainmaster'
    """
    address, name = split_workspace(text)
    if name:
        raise UserErrorException(f"{text!r} is the address of a workspace, not of a server", hint=f"Use {address}.")
    return address


def split_workspace(text: str) -> tuple[ServerAddress, str]:
    """The server and the name of the workspace in an address; the name is empty if the address names none.

    >>> server, name = split_workspace("https://example.org/workspaces/team")
    >>> str(server), name
    ('https://example.org', 'team')
    >>> split_workspace("https://example.org/w/team/runs")[1]
    'team'
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise _not_an_address(text, str(error)) from None
    if parts.scheme not in _PORTS:
        raise _not_an_address(text, "It has to begin with https://.")
    if not parts.hostname:
        raise _not_an_address(text, "It names no host.")
    if parts.username is not None or parts.query or parts.fragment:
        raise _not_an_address(text, "It may have a host, a port and a path only; a token never belongs in an address.")
    prefix, name = next(
        ((before, after) for before, found, after in map(parts.path.partition, _WORKSPACES) if found), (parts.path, "")
    )
    server = ServerAddress(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], prefix.rstrip("/"))
    return server, unquote(name.strip("/").partition("/")[0])


def is_address(text: str) -> bool:
    """Whether a text is meant as the address of a server, and not as a name or a folder."""
    return text.lower().startswith(("https://", "http://"))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "example.org")]
    [True, True, True, False]
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_encrypted(address: ServerAddress) -> None:
    """Refuses to send a token over a network without TLS, unless `TRAINMASTER_INSECURE=1` allows it."""
    if address.scheme == "https" or address.is_loopback or os.environ.get(INSECURE) == "1":
        return
    raise UserErrorException(
        f"{address} has no TLS",
        cause="Anybody on the network could read your token and your data.",
        hint=f"Use https://. In a network that you trust, {INSECURE}=1 allows http://.",
    )


def _not_an_address(text: str, why: str) -> UserErrorException:
    # The text may contain a password or a token.
    return UserErrorException(
        f"{_without_user(text)!r} cannot be the address of a server",
        cause=why,
        hint="An address looks like https://gpu.example.org:8443.",
    )


def _without_user(text: str) -> str:
    scheme, marker, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    shown = f"{scheme}{marker}{authority.rpartition('@')[2]}{slash}{path}" if marker else text
    return shown.partition("?")[0][:200]

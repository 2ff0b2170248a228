"""Which machines a server may send notifications to.

Users of a server choose addresses that the server's machine then connects to. Without a limit they could reach what
only that machine reaches: its own services, the metadata of a cloud, the network behind it.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class DeliveryError(Exception):
    """A notification could not be delivered. The text is shown to people."""


@dataclass(frozen=True)
class Reach:
    """The addresses that may be connected to."""

    is_limited: bool = False
    """Whether only public addresses are allowed, as on a server. In a workspace of one user all are."""
    networks: tuple[str, ...] = ()
    """Networks that the administrator allows beside them, such as `10.1.0.0/16`."""

    def allows(self, text: str) -> bool:
        """Whether an IP address may be connected to.

        >>> [Reach(True).allows(each) for each in ("93.184.216.34", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1")]
        [True, False, False, False]
        >>> Reach(True, ("10.0.0.0/8",)).allows("10.1.2.3"), Reach().allows("127.0.0.1")
        (True, True)
        """
        if not self.is_limited:
            return True
        address = ipaddress.ip_address(text.partition("%")[0])
        # An address of NAT64 is nothing but the IPv4 address in it.
        own = () if address in _NAT64 else (address,)
        return all(self._allows(each) for each in (*own, *_inside(address)))

    def _allows(self, address: Address) -> bool:
        networks = [ipaddress.ip_network(each, strict=False) for each in self.networks]
        is_public = address.is_global and not address.is_multicast and not address.is_reserved
        return is_public or any(address in network for network in networks if network.version == address.version)


def _inside(address: Address) -> Iterator[Address]:
    """IPv4 addresses that an IPv6 address stands for."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield address.teredo[1]
    if address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def connect(host: str, port: int, reach: Reach, timeout: float) -> socket.socket:
    """A connection to a host. The address that was checked is the one that is connected to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DeliveryError(f"the host {host} cannot be found: {error}") from None
    allowed = [each for each in found if reach.allows(str(each[4][0]))]
    if not allowed:
        raise DeliveryError(
            f"the host {host} is in a private network, which the server's administrator has not allowed "
            '("notification_networks" in server.json)'
        )
    return _connect_first([(str(each[4][0]), int(each[4][1])) for each in allowed], host, timeout)


def _connect_first(places: Sequence[tuple[str, int]], host: str, timeout: float) -> socket.socket:
    problem: OSError | None = None
    for place in places[:4]:
        try:
            return socket.create_connection(place, timeout)
        except OSError as error:
            problem = error
    raise DeliveryError(f"no connection to {host}: {problem}")

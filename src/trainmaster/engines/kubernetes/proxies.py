"""Proxies between this machine and an API server: which one, and the way through it."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

_ANSWER_BYTES = 16 * 1024
_SOCKS_PROBLEMS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
}


def find_proxy(server: str, environ: Mapping[str, str]) -> str:
    """The proxy that the environment names for an address, or nothing.

    >>> find_proxy("https://k8s.example:6443", {"HTTPS_PROXY": "proxy:3128"})
    'http://proxy:3128'
    >>> find_proxy("https://10.1.2.3", {"https_proxy": "http://proxy", "NO_PROXY": "10.0.0.0/8,.example"})
    ''
    """
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    if not proxy or _is_exempt(parts, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_exempt(parts: SplitResult, rules: str) -> bool:
    host = (parts.hostname or "").lower()
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    for rule in (word.strip().lower() for word in rules.split(",")):
        if not rule:
            continue
        if rule == "*" or rule in (host, f"{host}:{parts.port}"):
            return True
        if address:
            if "/" in rule and _is_within(address, rule):
                return True
        elif host.endswith(f".{rule.removeprefix('*').removeprefix('.')}"):
            return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_within(address: ipaddress.IPv4Address | ipaddress.IPv6Address, rule: str) -> bool:
    try:
        return address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False


async def connect_through(
    proxy: SplitResult, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    """Asks the proxy at the other end for a connection to `host`. Raises ConnectionError if it refuses."""
    if proxy.scheme == "socks5":
        await _connect_socks(proxy, reader, writer, host, port)
    else:
        await _connect_http(proxy, reader, writer, host, port)


async def _connect_http(
    proxy: SplitResult, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    words = status.split(" ", 2)
    if len(answer) > _ANSWER_BYTES or len(words) < 2 or not words[1].startswith("2"):
        raise ConnectionError(f"the proxy {proxy.hostname} answered '{status}'")


async def _connect_socks(
    proxy: SplitResult, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    """SOCKS 5 (RFC 1928), with a name and a password if the address has them (RFC 1929)."""
    writer.write(b"\x05\x02\x00\x02" if proxy.username is not None else b"\x05\x01\x00")
    _, method = await reader.readexactly(2)
    if method == 2 and proxy.username is not None:
        name, password = unquote(proxy.username).encode(), unquote(proxy.password or "").encode()
        writer.write(b"\x01" + bytes([len(name)]) + name + bytes([len(password)]) + password)
        if (await reader.readexactly(2))[1] != 0:
            raise ConnectionError(f"the proxy {proxy.hostname} refused the name and password")
    elif method != 0:
        raise ConnectionError(f"the proxy {proxy.hostname} wants another kind of sign-in")
    name = host.encode("idna")
    # The proxy resolves the name.
    writer.write(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    _, problem, _, kind = await reader.readexactly(4)
    if problem:
        words = _SOCKS_PROBLEMS.get(problem, f"problem {problem}")
        raise ConnectionError(f"the proxy {proxy.hostname} cannot connect to {host}: {words}")
    size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
    await reader.readexactly(size + 2)


def keep_alive(writer: asyncio.StreamWriter, idle: int = 15, interval: int = 5, count: int = 4) -> None:
    """Lets the kernel notice, within about half a minute, that the machine at the other end is gone."""
    connection = writer.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, interval)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, count)
    # The same for data that is sent and never acknowledged.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * (idle + interval * count))

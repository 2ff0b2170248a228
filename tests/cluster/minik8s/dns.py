"""The cluster's name server: dns.py STATE NETWORK.

CoreDNS is not in Debian. This answers the same questions for addresses (A), from watches of services and endpoints:
services (their cluster address), headless services (every ready pod), and `<hostname>.<service>` of their pods.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
import sys
import threading
import time
from typing import Any

TABLES: dict[str, dict[tuple[str, str], Any]] = {"services": {}, "endpoints": {}}
NAMES: dict[str, list[str]] = {}
NO_SUCH_NAME = 3


def main(state: str, network: str) -> None:
    context = ssl.create_default_context(cafile=f"{state}/pki/ca.crt")
    context.load_cert_chain(f"{state}/pki/admin.crt", f"{state}/pki/admin.key")
    for kind in TABLES:
        threading.Thread(target=_follow, args=(kind, f"{network}.0.1", context), daemon=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((f"{network}.0.1", 53))
        while True:
            question, asker = server.recvfrom(2048)
            try:
                server.sendto(_answer(question), asker)
            except (OSError, IndexError, ValueError, struct.error) as error:
                print(asker, repr(error), flush=True)


def _follow(kind: str, server: str, context: ssl.SSLContext) -> None:
    """Keep a table up to date: list, then watch, for ever."""
    while True:
        try:
            listed = json.load(_get(server, context, f"/api/v1/{kind}"))
            TABLES[kind] = {_key(each): each for each in listed["items"]}
            _rebuild()
            version = listed["metadata"]["resourceVersion"]
            for line in _get(server, context, f"/api/v1/{kind}?watch=1&timeoutSeconds=50&resourceVersion={version}"):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    break
                if event["type"] == "DELETED":
                    TABLES[kind].pop(_key(event["object"]), None)
                elif event["type"] != "BOOKMARK":
                    TABLES[kind][_key(event["object"])] = event["object"]
                _rebuild()
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            print(kind, repr(error), flush=True)
            time.sleep(0.5)


def _get(server: str, context: ssl.SSLContext, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPSConnection(server, 6443, context=context, timeout=60)
    connection.request("GET", path)
    return connection.getresponse()


def _key(found: dict[str, Any]) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]


def _rebuild() -> None:
    global NAMES
    names: dict[str, list[str]] = {}
    for (namespace, service), found in list(TABLES["services"].items()):
        base = f"{service}.{namespace}.svc.cluster.local".lower()
        address = found["spec"].get("clusterIP")
        if address and address != "None":
            names[base] = [address]
            continue
        names[base] = []
        endpoints = TABLES["endpoints"].get((namespace, service)) or {}
        for subset in endpoints.get("subsets") or []:
            for each in subset.get("addresses") or []:
                names[base].append(each["ip"])
                if each.get("hostname"):
                    names.setdefault(f"{each['hostname']}.{base}".lower(), []).append(each["ip"])
    NAMES = names


def _answer(message: bytes) -> bytes:
    (identity,) = struct.unpack(">H", message[:2])
    place, labels = 12, []
    while length := message[place]:
        labels.append(message[place + 1 : place + 1 + length].decode())
        place += length + 1
    (kind,) = struct.unpack(">H", message[place + 1 : place + 3])
    addresses = NAMES.get(".".join(labels).lower())
    records = [
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 2, 4) + socket.inet_aton(address) for address in addresses or []
    ]
    if kind != 1:
        records = []
    flags = 0x8580 | (0 if addresses is not None else NO_SUCH_NAME)
    head = struct.pack(">6H", identity, flags, 1, len(records), 0, 0)
    return head + message[12 : place + 5] + b"".join(records)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

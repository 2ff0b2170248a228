"""Many clients of a server at once: `python -m benchmarks.server_load PLAN.json` prints what they saw as JSON.

A process of its own, so that the clients do not share an interpreter with what is measured. Each client has one
connection and sends its next request when the answer is there and its pause is over.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Seen:
    """What the clients saw, by the name of the request."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def as_json(self, took: float) -> dict[str, Any]:
        every = [value for values in self.seconds.values() for value in values]
        return {
            "requests": len(every),
            "per_second": len(every) / took,
            "errors": len(self.errors),
            "first_errors": self.errors[:5],
            "all": _describe(every),
            **{name: _describe(values) for name, values in sorted(self.seconds.items())},
        }


def _describe(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {"count": len(seconds)}
    cuts = statistics.quantiles(seconds, n=1000)
    return {
        "count": len(seconds),
        "median_ms": 1e3 * cuts[499],
        "p99_ms": 1e3 * cuts[989],
        "p99.9_ms": 1e3 * cuts[998],
        "longest_ms": 1e3 * max(seconds),
    }


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict[str, Any], headers: dict[str, str]
) -> int:
    """Sends one request and reads the whole answer; returns its status."""
    body = json.dumps(request["body"]).encode() if "body" in request else b""
    lines = [
        f"{request['method']} {request['path']} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(head.split(" ", 2)[1])
    if "transfer-encoding: chunked" in head:
        while size := int((await reader.readline()).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    elif "content-length:" in head:
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
    return status


async def be_client(plan: dict[str, Any], number: int, end: float, seen: Seen) -> None:
    chance = random.Random(number)
    requests, weights = plan["requests"], [each["weight"] for each in plan["requests"]]
    headers = {"host": f"{plan['host']}:{plan['port']}", **plan["headers"]}
    connection = None
    while time.monotonic() < end:
        request = dict(chance.choices(requests, weights)[0])
        if request.pop("unique", False):
            key = f"{number}-{chance.random()}"
            request = json.loads(json.dumps(request).replace("UNIQUE", key.replace(".", "")))
            headers["idempotency-key"] = key
        else:
            headers.pop("idempotency-key", None)
        begun = time.monotonic()
        try:
            connection = connection or await asyncio.open_connection(plan["host"], plan["port"])
            status = await asyncio.wait_for(ask(*connection, request, headers), 60)
            seen.seconds.setdefault(request["name"], []).append(time.monotonic() - begun)
            if status >= 400:
                seen.errors.append(f"{request['name']}: {status}")
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            seen.errors.append(f"{request['name']}: {error!r}")
            connection = None
        if plan["pause"]:
            await asyncio.sleep(plan["pause"] * 2 * chance.random())


async def load(plan: dict[str, Any]) -> dict[str, Any]:
    seen = Seen()
    begun = time.monotonic()
    end = begun + plan["seconds"]
    await asyncio.gather(*(be_client(plan, number, end, seen) for number in range(plan["clients"])))
    return seen.as_json(time.monotonic() - begun)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(load(json.loads(Path(sys.argv[1]).read_text())))))

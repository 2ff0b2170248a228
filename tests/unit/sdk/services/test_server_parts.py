"""The pure parts of the scoring server: pace, keys, counters, settings, answers, raw requests. It stands alone."""

from __future__ import annotations

import ast
import asyncio
import hmac
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from trainmaster.scoring.server import answering, calling, keys, numbers, raw, settings
from trainmaster.scoring.server.answering import Answer, Request
from trainmaster.scoring.server.keys import Keys
from trainmaster.scoring.server.log import Log, Printed, request_id
from trainmaster.scoring.server.pace import Pace
from trainmaster.scoring.supervisor.models import Models
from trainmaster.shared.serialization import to_plain
from trainmaster.shared.service_plan import SERVER, Batching, Limits, Scoring


@pytest.mark.parametrize("path", sorted(SERVER.rglob("*.py")), ids=lambda path: path.name)
def test_the_server_stands_alone_on_an_old_python(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    allowed = {*sys.stdlib_module_names, "uvicorn", "uvloop", "orjson"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert str(node.module).split(".")[0] in allowed


def test_settings_are_what_a_plan_says(tmp_path: Path) -> None:
    scoring = Scoring("a", "code", "score.py", "m", "", ("*",), Batching(8, 2.0), Limits(1, 2.0, 3), 4, "about", "7")
    place = tmp_path / "server.json"
    place.write_text(json.dumps({**to_plain(scoring), "something new": 1}))
    found = settings.read(str(place))
    assert (found.code, found.model_dir, found.keys_file) == (str(tmp_path / "code"), str(tmp_path / "m"), "")
    assert (found.max_batch_size, found.max_latency_ms, found.threads) == (8, 2.0, 4)
    assert (found.body_bytes, found.seconds, found.in_flight) == (1, 2.0, 3)
    place.write_text('{"name": "a"}')
    with pytest.raises(ValueError, match="lacks: code, entry_script"):
        settings.read(str(place))


def test_defaults_are_the_same_on_both_sides(tmp_path: Path) -> None:
    short, long = tmp_path / "short.json", tmp_path / "long.json"
    long.write_text(json.dumps(to_plain(Scoring("a", "/code", "score.py"))))
    short.write_text(json.dumps({"name": "a", "code": "/code", "entry_script": "score.py"}))
    assert settings.read(str(short)) == settings.read(str(long))


def test_pace() -> None:
    pace = Pace()
    modes = []
    for seconds in (*[0.001] * 15, 0.006, *[0.001] * 16):
        pace.note(seconds)
        modes.append(pace.is_direct)
    assert modes == [False] * 31 + [True]
    for seconds in [0.1, 0.1, *[0.001] * 100] * 3:
        pace.note(seconds)
    assert pace.is_direct, "what quick ones made up for is forgotten"
    for seconds in (0.1, 0.1, 0.1):
        assert pace.is_direct
        pace.note(seconds)
    assert not pace.is_direct
    for _ in range(Pace.FIRST * 2 - 1):
        pace.note(0.001)
    assert not pace.is_direct, "each time more quick ones are wanted"
    pace.note(0.001)
    assert pace.is_direct
    pace.note(0.3)
    assert not pace.is_direct, "one that is far too slow suffices"


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (b"Bearer one", True),
        (b"bearer  two ", True),
        (b"Bearer three", False),
        (b"Bearer", False),
        (b"Basic one", False),
        (b"", False),
        (None, False),
        ("Bearer ünö".encode(), False),
    ],
)
def test_keys(tmp_path: Path, header: bytes | None, allowed: bool) -> None:
    place = tmp_path / "keys.json"
    place.write_text('{"primary": "one", "secondary": "two"}')
    assert Keys(str(place)).allow(header) is allowed


@pytest.mark.parametrize("given", [b"one", b"two", b"on", b"x"])
def test_keys_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    """Each key with the whole of what was given, whether or not one was found already, and never with `==`."""
    place = tmp_path / "keys.json"
    place.write_text('{"primary": "one", "secondary": "two"}')
    compared = []

    def noted(key: bytes, other: bytes) -> bool:
        compared.append((key, other))
        return hmac.compare_digest(key, other)

    monkeypatch.setattr(keys, "compare_digest", noted)
    assert Keys(str(place)).allow(b"Bearer " + given) is (given in (b"one", b"two"))
    assert compared == [(b"one", given), (b"two", given)]


@pytest.mark.parametrize("text", ["", "[]", '{"primary": 1}', '{"primary": ""}', "{"])
def test_without_readable_keys_nobody_may_ask(tmp_path: Path, text: str) -> None:
    place = tmp_path / "keys.json"
    place.write_text(text)
    none = Keys(str(place))
    assert not any(none.allow(header) for header in (b"Bearer ", b"Bearer 1", b"Bearer None"))


def test_counters_of_all_replicas_add_up_and_never_fall(tmp_path: Path) -> None:
    place = str(tmp_path / "numbers")
    numbers.make(place)
    first, second = numbers.Numbers(place, 0), numbers.Numbers(place, 1)
    for each in (first, second):
        each.mine[numbers.READY] = 1.0
        each.mine[numbers.CONNECTIONS] = 2.0
        each.count_request(numbers.SCORED, 200, 0.003, 10, 20)
    second.count_request(numbers.OTHERS, 404, 9.0, 0, 5)
    text = first.text()
    assert 'requests_total{path="/score",status="200"} 2' in text
    assert 'requests_total{path="other",status="404"} 1' in text
    assert 'request_seconds_bucket{le="0.0025"} 0' in text
    assert 'request_seconds_bucket{le="0.005"} 2' in text
    assert 'request_seconds_bucket{le="+Inf"} 2' in text
    assert "request_seconds_count 2" in text
    assert "replicas_ready 2" in text
    assert first.fewest_connections() == 2.0
    again = numbers.Numbers(place, 1)
    assert 'requests_total{path="/score",status="200"} 2' in again.text()
    assert "replicas_ready 1" in again.text()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
        (numpy.array([[1.5, math.nan]]), "[[1.5,null]]"),
        ({"x": numpy.float32(0.5), "n": numpy.int64(3)}, '{"x":0.5,"n":3}'),
        ({1: 2**70}, '{"1":1180591620717411303424}'),
        ([math.inf, {1: math.nan}], '[null,{"1":null}]'),
        ("text", '"text"'),
    ],
)
@pytest.mark.parametrize("quick", [True, False])
def test_results_become_json(result: Any, text: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quick:
        monkeypatch.setattr(answering, "orjson", None)
    assert json.loads(answering.to_json(result)) == json.loads(text)


@pytest.mark.parametrize("result", [object(), b"bytes", {"a": {1, 2}}])
def test_what_json_cannot_say_is_an_error(result: Any) -> None:
    with pytest.raises(TypeError, match="which cannot be written as JSON"):
        answering.to_json(result)


def test_batches_go_off_when_full_or_after_their_time() -> None:
    sent: list[list[str]] = []

    async def send(batch: list[Request]) -> list[Answer]:
        sent.append([request.id for request in batch])
        return [Answer(200, request.id.encode()) for request in batch]

    async def ask(seconds: float, count: int) -> list[bytes]:
        batches = calling.Batches(3, seconds, send, asyncio.get_running_loop())
        futures = [batches.add(Request(str(number), "POST", b"", [], b"")) for number in range(count)]
        return [(await future).body for future in futures]

    assert asyncio.run(ask(3600.0, 6)) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert sent == [["0", "1", "2"], ["3", "4", "5"]]
    sent.clear()
    assert asyncio.run(ask(0.001, 2)) == [b"0", b"1"]
    assert sent == [["0", "1"]]


def test_a_request_that_nobody_waits_for_is_not_sent() -> None:
    sent: list[str] = []

    async def send(batch: list[Request]) -> list[Answer]:
        sent.extend(request.id for request in batch)
        return [Answer(200, b"") for _ in batch]

    async def ask() -> None:
        batches = calling.Batches(2, 3600.0, send, asyncio.get_running_loop())
        first = batches.add(Request("1", "POST", b"", [], b""))
        first.cancel()
        await batches.add(Request("2", "POST", b"", [], b""))

    asyncio.run(ask())
    assert sent == ["2"]


def test_raw_requests_have_the_names_of_v1() -> None:
    headers = [("Host", "a:1"), ("content-type", "application/json; charset=utf-8")]
    request = raw.AMLRequest("POST", "/score", "a=1&b=", headers, b'{"x": 1}')
    assert (request.args, request.full_path, request.url) == (
        {"a": "1", "b": ""},
        "/score?a=1&b=",
        "http://a:1/score?a=1&b=",
    )
    assert request.get_json() == request.json == {"x": 1}
    assert request.get_data(as_text=True) == '{"x": 1}'
    assert request.headers["CONTENT-TYPE"].startswith("application/json")
    assert (request.form, request.files) == ({}, {})


def test_forms() -> None:
    plain = raw.AMLRequest("POST", "/", "", [("Content-Type", "application/x-www-form-urlencoded")], b"a=1&b=%20")
    assert plain.form == {"a": "1", "b": " "}
    body = (
        b'--X\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\n'
        b'--X\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n'
        b"Content-Type: image/png\r\n\r\n\x00\xff\r\n\x01\r\n--X--\r\n"
    )
    form = raw.AMLRequest("POST", "/", "", [("Content-Type", "multipart/form-data; boundary=X")], body)
    assert form.form == {"a": "one"}
    assert (form.files["f"].read(), form.files["f"].content_type) == (b"\x00\xff\r\n\x01", "image/png")


@pytest.mark.parametrize(
    ("response", "body", "kind"),
    [
        (raw.AMLResponse(b"\x00", 200), b"\x00", "application/octet-stream"),
        (raw.AMLResponse("ä", 200), "ä".encode(), "text/plain; charset=utf-8"),
        (raw.AMLResponse({"a": 1}, 200, json_str=True), b'{"a": 1}', "application/json"),
        (raw.AMLResponse("<b>", 200, content_type="text/html"), b"<b>", "text/html"),
        (raw.AMLResponse("x", 200, {"content-type": "text/x"}), b"x", "text/x"),
    ],
)
def test_raw_responses(response: raw.AMLResponse, body: bytes, kind: str) -> None:
    assert (response.data, response.headers["Content-Type"]) == (body, kind)


def test_printed_lines_have_the_id_of_their_request(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with place.open("wb") as file:
        log = Log(file.fileno())
        log.write("a request\n")
        printed = Printed(log, sys.stdout)
        token = request_id.set("17")
        print("one\ntwo", file=printed)  # type: ignore[call-overload]
        print("half", end="", file=printed)  # type: ignore[call-overload]
        print(" whole", file=printed)  # type: ignore[call-overload]
        request_id.reset(token)
    lines = place.read_text().splitlines()
    assert lines[0] == "a request"
    assert [line.partition(" ")[2] for line in lines[1:]] == ["17 | one", "17 | two", "17 | half whole"]


def test_models_that_change_are_named(tmp_path: Path) -> None:
    store, root = tmp_path / "store", tmp_path / "azureml-models"
    store.mkdir()
    (root / "m").mkdir(parents=True)
    (root / "m" / "1").symlink_to(store)
    (store / "weights").write_text("1")
    (store / "up").symlink_to(root)
    kept = tmp_path / "kept.json"
    models = Models(str(root), kept)
    assert models.list_changed() == []
    (store / "weights").write_text("22")
    assert [Path(name).name for name in models.list_changed()][:1] == ["weights"]
    # A supervisor that comes later knows what was there before.
    assert Models(str(root), kept).list_changed() == models.list_changed()
    os.unlink(store / "weights")
    assert models.list_changed()

"""The scoring server as its clients see it: the contract with score.py, the paths, the keys, the limits."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conftest import Gate
from tests.service_run import Connection, Service, wait_until

from trainmaster.job.errors import WebserviceException
from trainmaster.scoring import control
from trainmaster.shared.service_plan import Batching, Limits

RICH = """
    import json, os, threading
    import numpy
    from azureml.contrib.services.aml_response import AMLResponse

    calls = {"init": 0}

    def init():
        calls["init"] += 1
        calls["thread"] = threading.get_ident()
        calls["models"] = sorted(os.listdir("azureml-models/m"))

    def run(data):
        asked = json.loads(data)
        print("asked for", asked)
        answers = {
            "array": lambda: numpy.arange(3),
            "number": lambda: {"mean": numpy.float32(0.5), 1: [float("nan")]},
            "text": lambda: json.dumps({"a": 1}),
            "calls": lambda: {**calls, "thread": calls["thread"] == threading.get_ident()},
            "model": lambda: open(os.path.join(os.environ["AZUREML_MODEL_DIR"], "weights")).read(),
            "fail": lambda: 1 / 0,
            "object": lambda: object(),
            "exit": lambda: exit(3),
            "teapot": lambda: AMLResponse("short and stout", 418),
            "query": lambda: asked,
        }
        return answers[asked["what"]]()
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes a service; it is stopped with the test."""
    made: list[Service] = []

    def make(script: str, **settings: Any) -> Service:
        made.append(Service(tmp_path / str(len(made)), script, **settings))
        return made[-1]

    yield make
    for each in made:
        control.kill(each.folder)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("rich")
    models = folder / "azureml-models"
    (models / "m" / "1").mkdir(parents=True)
    (models / "m" / "1" / "weights").write_text("0.25")
    made = Service(
        folder,
        RICH,
        model_dir=str(models / "m" / "1"),
        models_root=str(models),
        cors_origins=("https://a.example",),
        limits=Limits(body_bytes=1000),
    ).start()
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("array", [0, 1, 2]),
        ("number", {"mean": 0.5, "1": [None]}),
        ("text", '{"a": 1}'),
        ("calls", {"init": 1, "thread": True, "models": ["1"]}),
        ("model", "0.25"),
    ],
)
def test_what_run_returns_is_the_answer(rich: Service, what: str, answer: Any) -> None:
    said = rich.ask(body={"what": what})
    assert (said.status, said.headers["content-type"]) == (200, "application/json")
    assert said.json == answer


def test_init_and_run_share_a_thread_in_both_modes(rich: Service) -> None:
    """Quick calls lead to the event loop's being in the script's thread; that is never another one than init's."""
    assert all(rich.ask(body={"what": "calls"}).json["thread"] for _ in range(60))


def test_a_query_is_data_too(rich: Service) -> None:
    assert rich.ask("/score?what=query&b=2").json == {"what": "query", "b": "2"}


def test_a_response_may_have_its_own_status(rich: Service) -> None:
    said = rich.ask(body={"what": "teapot"})
    assert (said.status, said.body) == (418, b"short and stout")


@pytest.mark.parametrize("what", ["fail", "object", "exit", "nothing of the kind"])
def test_an_error_in_run_has_an_id_found_in_the_log_and_says_no_more(rich: Service, what: str) -> None:
    said = rich.ask(body={"what": what})
    assert said.status == 500
    assert said.json["request_id"] == said.headers["x-request-id"]
    assert not any(word in said.body for word in (b"Traceback", b"score.py", b"/", b"Error"))
    wait_until(lambda: f"{said.json['request_id']} | run failed" in rich.log)


def test_prints_and_requests_are_logged_with_the_id(rich: Service) -> None:
    rich.ask(body={"what": "array"}, X_Request_Id="mine-1")
    wait_until(lambda: "mine-1 | asked for {'what': 'array'}" in rich.log)
    wait_until(lambda: "mine-1 POST /score 200" in rich.log)


def test_health(rich: Service) -> None:
    assert [(rich.ask(path).status, rich.ask(path).body) for path in ("/", "/healthz", "/readyz")] == [
        (200, b"Healthy"),
        (200, b"alive"),
        (200, b"ready"),
    ]
    assert rich.ask("/", method="HEAD").body == b""


@pytest.mark.parametrize(
    ("path", "method", "body", "status"),
    [
        ("/nothing", "GET", None, 404),
        ("/score", "DELETE", None, 405),
        ("/score", "OPTIONS", None, 200),
        ("/metrics", "POST", b"", 405),
        ("/score", "POST", b"\xff\xfe", 400),
        ("/score", "POST", b"x" * 1001, 413),
    ],
)
def test_what_cannot_be_answered_is_told_why(rich: Service, path: str, method: str, body: Any, status: int) -> None:
    said = rich.ask(path, body, method)
    assert said.status == status
    if status >= 400:
        assert said.json["message"].endswith(".")


def test_a_body_without_a_length_is_limited_too(rich: Service) -> None:
    with socket.create_connection(("127.0.0.1", rich.port), timeout=120) as line:
        line.sendall(b"POST /score HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        line.sendall((b"1f4\r\n" + b"x" * 500 + b"\r\n") * 3 + b"0\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 413")


def test_who_sends_far_too_much_without_a_length_comes_to_read_why(rich: Service) -> None:
    # More than the buffers between both sides hold: it can only be sent whole if somebody reads it.
    part = b"x" * 1_000_000
    with socket.create_connection(("127.0.0.1", rich.port), timeout=120) as line:
        line.sendall(b"POST /score HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(30):
            line.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        line.sendall(b"0\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 413")


def test_metrics_add_up(rich: Service) -> None:
    def count() -> int:
        lines = rich.ask("/metrics").body.decode().splitlines()
        return int(
            next(line.split()[1] for line in lines if line.startswith("trainmaster_scoring_request_seconds_count"))
        )

    before = count()
    for _ in range(5):
        rich.ask(body={"what": "array"})
    assert count() == before + 5
    text = rich.ask("/metrics").body.decode()
    assert 'trainmaster_scoring_requests_total{path="/score",status="200"}' in text
    assert "trainmaster_scoring_replicas_ready 1" in text


def test_openapi(rich: Service) -> None:
    assert rich.ask("/swagger.json").json["openapi"].startswith("3.")
    old = rich.ask("/swagger.json?version=2").json
    assert (old["swagger"], list(old["definitions"])[:2]) == ("2.0", ["ServiceInput", "ServiceOutput"])


def test_other_origins(rich: Service) -> None:
    said = rich.ask("/score", method="OPTIONS", Origin="https://a.example", Access_Control_Request_Headers="x-a")
    assert said.headers["access-control-allow-origin"] == "https://a.example"
    assert said.headers["access-control-allow-headers"] == "x-a"
    assert "access-control-allow-origin" not in rich.ask("/", Origin="https://b.example").headers


def test_keys(service: Callable[..., Service], tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    control.write_keys(keys, "first", "second")
    made = service("def run(data): return data", keys_file=str(keys)).start()

    def statuses(key: str) -> list[int]:
        return [
            made.ask(path, body, Authorization=key).status
            for path, body in (("/score", "1"), ("/swagger.json", None), ("/metrics", None))
        ]

    assert keys.stat().st_mode & 0o077 == 0
    assert statuses("Bearer first") == statuses("bearer second") == [200, 200, 200]
    assert statuses("") == statuses("Bearer firs") == statuses("first") == statuses("Bearer ") == [401, 401, 401]
    assert [made.ask(path).status for path in ("/", "/healthz", "/readyz")] == [200, 200, 200]
    assert made.ask(body="1").headers["www-authenticate"] == "Bearer"
    control.write_keys(keys, "third", "second")
    assert (statuses("Bearer first"), statuses("Bearer third")) == ([401, 401, 401], [200, 200, 200])
    keys.unlink()
    assert statuses("Bearer third") == [401, 401, 401]


def test_raw_requests(service: Callable[..., Service]) -> None:
    made = service(
        """
        from azureml.contrib.services.aml_request import AMLRequest, rawhttp
        from azureml.contrib.services.aml_response import AMLResponse

        @rawhttp
        def run(request):
            assert isinstance(request, AMLRequest)
            if request.method == "GET":
                return AMLResponse(request.full_path.encode(), 200)
            if request.files:
                return AMLResponse({name: [file.filename, len(file.read())] for name, file in request.files.items()},
                                   200, json_str=True)
            if request.method == "PUT":
                return AMLResponse("bad request", 500)
            answer = AMLResponse(bytes(reversed(request.get_data(False))), 200)
            answer.headers["X-Color"] = request.headers["x-color"]
            return answer
        """
    ).start()
    assert made.ask("/score?a=1").body == b"/score?a=1"
    said = made.ask(body=b"\x00\x01\xff", X_Color="red")
    assert (said.body, said.headers["x-color"], said.headers["content-type"]) == (
        b"\xff\x01\x00",
        "red",
        "application/octet-stream",
    )
    assert made.ask(body=b"x", method="PUT").status == 500
    form = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n\x89PNG\r\n\x00\r\n--b--\r\n'
    assert made.ask(body=form, Content_Type="multipart/form-data; boundary=b").json == {"image": ["a.png", 7]}


def test_inference_schema(service: Callable[..., Service]) -> None:
    made = service(
        """
        import numpy
        from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
        from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
        from inference_schema.schema_decorators import input_schema, output_schema

        @input_schema("data", NumpyParameterType(numpy.array([[1.0, 2.0]])))
        @input_schema("times", StandardPythonParameterType(1))
        @output_schema(NumpyParameterType(numpy.array([1.0])))
        def run(data, times):
            return data.sum(axis=1) * times if times != 13 else object()
        """
    ).start()
    assert made.ask(body={"data": [[1, 2], [3, 4]], "times": 2}).json == [6.0, 14.0]
    for wrong, words in (
        ("no json", "The body is not valid JSON."),
        ([1], "The body must be a JSON object with data, times."),
        ({}, "The request lacks data, times."),
        ({"data": [[1, 2]]}, "The request lacks times."),
        ({"data": [], "times": 1, "c": 1}, "The request may only have data, times."),
        ({"data": "x", "times": 1}, "data: it must be an array, and is a text."),
        ({"data": [[1, 2, 3]], "times": 1}, "data: it must be an array of any x 2, and is one of 1 x 3."),
        ({"data": [[1, 2], [1, "a"]], "times": 1}, "data[1][1]: it must be a number, and is a text."),
        ({"data": [[1, 2]], "times": "1"}, "times: it must be a whole number, and is a text."),
    ):
        said = made.ask(body=wrong)
        assert (said.status, said.json["message"]) == (400, words), wrong
    assert made.ask(body={"data": [[1, 2]], "times": 13}).status == 500, "a wrong result is not the request's fault"
    schemas = made.ask("/swagger.json").json["components"]["schemas"]
    assert schemas["ServiceInput"]["properties"]["data"]["type"] == "array"
    assert schemas["ServiceInput"]["required"] == ["data", "times"]
    assert schemas["ServiceOutput"]["type"] == "array"


def test_an_asynchronous_run_answers_many_at_once(service: Callable[..., Service]) -> None:
    made = service(
        """
        import asyncio

        waiting = []

        async def run(data):
            gate = asyncio.get_running_loop().create_future()
            waiting.append(gate)
            if len(waiting) == 3:
                for each in waiting:
                    each.set_result(None)
            await gate
            return data
        """
    ).start()
    assert sorted(_at_once(made, 3)) == [(200, '"0"'), (200, '"1"'), (200, '"2"')]


def test_without_the_quick_parts(service: Callable[..., Service]) -> None:
    """An environment that has nothing but uvicorn: the standard event loop, h11, json."""
    made = service(
        """
        import sys, threading, time
        for name in ("uvloop", "httptools"):
            sys.modules[name] = None
        sys.modules["scoring_server.answering"].orjson = None

        def init():
            global thread
            thread = threading.get_ident()

        def run(data):
            if data == "slow":
                time.sleep(0.3)
            return {"data": data, "same": threading.get_ident() == thread}
        """
    ).start()
    for data in [*map(str, range(40)), "slow", *map(str, range(40))]:
        assert made.ask(body=data).json == {"data": data, "same": True}
    assert made.ask(body=b"x" * 200_000).json["data"] == "x" * 200_000


def test_batches(service: Callable[..., Service]) -> None:
    made = service(
        """
        def run(bodies):
            if "2" in bodies:
                return "not as many"
            return [[body, len(bodies)] for body in bodies]
        """,
        batching=Batching(2, 60_000.0),
    ).start()
    assert sorted(_at_once(made, 2)) == [(200, '["0",2]'), (200, '["1",2]')]
    assert [status for status, _ in _at_once(made, 4)].count(500) >= 2
    wait_until(lambda: "run received a batch of 2 and must return as many results, not str" in made.log)
    assert "trainmaster_scoring_batched_requests_total 6" in made.ask("/metrics").body.decode()


def test_a_batch_does_not_wait_for_ever(service: Callable[..., Service]) -> None:
    made = service("def run(bodies): return [len(bodies)] * len(bodies)", batching=Batching(100, 1.0)).start()
    assert made.ask(body="1").json == 1


def test_slow_scoring_keeps_nobody_else_waiting(service: Callable[..., Service], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"""
        import time

        def run(data):
            if data == "slow":
                time.sleep(0.3)
            if data == "gate":
                open({str(gate)!r}).read()
            return data
    """
    made = service(script).start()

    def health_while_run_is_at_work() -> None:
        waiting = threading.Thread(target=made.ask, kwargs={"body": "gate"})
        waiting.start()
        wait_until(lambda: _count_in_flight(made) == 1)
        assert made.ask("/").body == b"Healthy"
        with gate.open("w"):
            pass
        waiting.join(120)

    health_while_run_is_at_work()
    # Quick ones lead to the event loop's being in the script's thread; the first slow one must end that.
    for number in range(40):
        assert made.ask(body=str(number)).status == 200
    assert made.ask(body="slow").status == 200
    health_while_run_is_at_work()


def test_health_is_answered_while_a_sudden_slow_call_holds_the_event_loop(
    service: Callable[..., Service], gate: Callable[..., Gate]
) -> None:
    here = gate()
    script = f"""
        def run(data):
            if data == "gate":
                {here.wait}
            return data
    """
    made = service(script).start()
    answers: list[tuple[int, str]] = []

    def ask(body: str) -> threading.Thread:
        def keep() -> None:
            said = made.ask(body=body)
            answers.append((said.status, said.json))

        thread = threading.Thread(target=keep)
        thread.start()
        return thread

    # Enough quick ones for the event loop to share the script's thread; nothing slow has warned it.
    with Connection(made.port) as connection:
        for number in range(100):
            assert connection.ask(body=str(number)).status == 200
    asked = [ask("gate")]
    here.await_arrival(60)
    asked.append(ask("later"))
    for path, word in (("/", b"Healthy"), ("/healthz?a=b", b"alive"), ("/readyz", b"ready")):
        said = made.ask(path, X_Other="x" * 100)
        assert (said.status, said.body) == (200, word) and said.headers["x-request-id"]
    assert answers == [], "the loop was not held up"
    here.open()
    for thread in asked:
        thread.join(120)
    assert sorted(answers) == [(200, "gate"), (200, "later")]
    wait_until(lambda: all(f"GET {path} 200" in made.log for path in ("/", "/healthz", "/readyz")))


def test_time_limit(service: Callable[..., Service], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"""
        def run(data):
            if data == "slow":
                open({str(gate)!r}).read()
            return data
    """
    made = service(script, limits=Limits(seconds=2.0)).start()
    said = made.ask(body="slow")
    assert (said.status, said.json["message"]) == (504, "The scoring script did not answer within 2 seconds.")
    assert made.ask("/").body == b"Healthy"
    with gate.open("w"):
        pass
    wait_until(lambda: made.ask(body="quick").status == 200)
    with socket.create_connection(("127.0.0.1", made.port), timeout=120) as line:
        line.sendall(b"POST /score HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        assert line.recv(1000).startswith(b"HTTP/1.1 408")


def test_too_many_at_once(service: Callable[..., Service], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    made = service(f"def run(data): return open({str(gate)!r}).read()", limits=Limits(in_flight=1)).start()
    first = threading.Thread(target=made.ask, kwargs={"body": "1"})
    first.start()
    wait_until(lambda: _count_in_flight(made) == 1)
    said = made.ask(body="2")
    assert (said.status, said.headers["retry-after"]) == (503, "1")
    with gate.open("w"):
        pass
    first.join(120)


@pytest.mark.parametrize(
    ("script", "headline", "cause"),
    [
        ("import nothing_of_this_name", "score.py cannot be imported: ModuleNotFoundError", "line 1, in <module>"),
        ("def run(data) return", "score.py cannot be imported: SyntaxError", "def run(data) return"),
        ("def init(): open('/absent')\ndef run(data): pass", "init() of score.py failed: FileNotFoundError", "in init"),
        ("def init(): pass", "score.py has no function run", ""),
        ("def run(): pass", "run() of score.py takes no argument", ""),
        ("import os\nprint('so long')\nos._exit(9)", "ended with exit code 9 without an error message", "so long"),
        ("import sys\nsys.exit('enough')", "score.py cannot be imported: SystemExit: enough", "line 2"),
    ],
)
def test_a_broken_script_is_told_in_its_own_words(
    service: Callable[..., Service], script: str, headline: str, cause: str
) -> None:
    made = service(script)
    with pytest.raises(WebserviceException) as told:
        made.start()
    assert headline in told.value.headline
    assert cause in told.value.cause
    assert ("Add the package" in told.value.hint) is ("ModuleNotFoundError" in headline)
    assert "serving/server" not in told.value.cause
    assert control.wait_stopped(made.folder, 120)
    assert (made.state.state, made.state.replicas) == ("failed", ())


@pytest.mark.parametrize(
    ("module", "hint"),
    [("json.absent", "release of 'json' does not have this module"), ("azureml.absent", "")],
)
def test_a_module_that_is_missing_from_its_package(service: Callable[..., Service], module: str, hint: str) -> None:
    made = service(f"import json, azureml\ndef init(): import {module}\ndef run(data): pass")
    with pytest.raises(WebserviceException, match=rf"No module named '{module}'") as told:
        made.start()
    assert hint in told.value.hint and bool(hint) is bool(told.value.hint)
    assert control.wait_stopped(made.folder, 120)


def test_a_missing_server_package_is_named(service: Callable[..., Service]) -> None:
    made = service("import sys\nsys.modules['uvicorn'] = None\ndef run(data): pass")
    with pytest.raises(WebserviceException, match="uvicorn is missing"):
        made.start()


def _at_once(made: Service, count: int) -> list[tuple[int, str]]:
    answers: list[tuple[int, str]] = []

    def ask(number: int) -> None:
        said = made.ask(body=str(number))
        answers.append((said.status, said.body.decode()))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return answers


def _count_in_flight(made: Service) -> int:
    lines = made.ask("/metrics").body.decode().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("trainmaster_scoring_requests_in_flight")))

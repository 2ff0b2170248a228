"""Searches sent to a real MLflow server and to ours, with the same runs: the same runs are found, in the same order."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from tests.conftest import PATIENCE
from tests.mlflow_releases import address_of, start_mlflow_server
from tests.server_process import ServerProcess

pytestmark = pytest.mark.timeout(600)

RUNS = 30
START = 1_700_000_000_000


@dataclass
class Api:
    """MLflow's API of one server, and the ids that it gave out."""

    address: str
    token: str = ""
    experiments: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Which run an id belongs to."""

    def call(self, path: str, body: Any = None, query: Any = None) -> tuple[int, Any]:
        """The status and the JSON of an answer: POST with a body, else GET."""
        parts = urlsplit(self.address)
        address = f"{parts.path}/api/2.0/mlflow/{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
        try:
            text = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", address, text, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def ask(self, path: str, body: Any) -> Any:
        """The answer to a request that must succeed."""
        status, answer = self.call(path, body)
        assert status == 200, (path, body, answer)
        return answer

    def search(self, body: dict[str, Any]) -> Any:
        """What a search finds, told by the number of each run; or its status and the code of the error."""
        asked = {**body, "experiment_ids": [self.experiments[each] for each in body["experiment_ids"]]}
        status, answer = self.call("runs/search", asked)
        if status != 200:
            return status, answer["error_code"]
        return [self.numbers[run["info"]["run_id"]] for run in answer.get("runs", [])], "next_page_token" in answer

    def read_pages(self, body: dict[str, Any], size: int) -> list[int]:
        """The numbers of all runs of a search, read in pages."""
        asked = {**body, "experiment_ids": [self.experiments[each] for each in body["experiment_ids"]]}
        found: list[int] = []
        token = ""
        while True:
            answer = self.ask("runs/search", {**asked, "max_results": size, "page_token": token})
            found += [self.numbers[run["info"]["run_id"]] for run in answer.get("runs", [])]
            token = answer.get("next_page_token", "")
            if not token:
                return found


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    ours = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        ours.create_workspace("team")
        with start_mlflow_server(tmp_path_factory.mktemp("mlflow")) as address:
            both = Api(address), Api(address_of(ours, "team"), ours.token)
            for api in both:
                fill(api)
            yield both
    finally:
        ours.end()


def fill(api: Api) -> None:
    chance = random.Random(11)
    for number in range(2):
        api.experiments.append(api.ask("experiments/create", {"name": f"exp{number}"})["experiment_id"])
    for number in range(RUNS):
        start = START + number * 977
        made = {
            "experiment_id": api.experiments[number % 3 // 2],
            "start_time": start,
            "run_name": chance.choice(["debug one", "Debug_two", "50% [a]*", "ünï", "a\\b"]),
            "user_id": chance.choice(["ann", "Bob"]),
        }
        run_id = api.ask("runs/create", made)["run"]["info"]["run_id"]
        api.numbers[run_id] = number
        log_values(api, run_id, number, chance)
        if number % 4:
            status = chance.choice(["FINISHED", "FAILED", "KILLED"])
            end = start + chance.randrange(5) * 1000
            api.ask("runs/update", {"run_id": run_id, "status": status, "end_time": end})
        if number % 3 == 0:
            dataset = {"name": chance.choice(["mnist", "Cifar"]), "digest": f"d{number % 2}"}
            dataset |= {"source_type": "code", "source": "{}"}
            tags = [{"key": "mlflow.data.context", "value": chance.choice(["train", "eval"])}] if number % 2 else []
            api.ask("runs/log-inputs", {"run_id": run_id, "datasets": [{"dataset": dataset, "tags": tags}]})
        if number % 7 == 3:
            api.ask("runs/delete", {"run_id": run_id})


def log_values(api: Api, run_id: str, number: int, chance: random.Random) -> None:
    metrics = {}
    if number % 3:
        metrics["loss"] = chance.choice([0.5, -1.0, 0.25, float("nan"), float("inf"), float("-inf"), 3.0, 0.5])
    if number % 2:
        metrics["val acc/x"] = float(chance.randrange(4))
    params = {"lr": chance.choice(["0.1", "0.01", "1e-3", "10"])} if number % 4 else {}
    if number % 5:
        params["my key"] = chance.choice(["True", "true", "resnet_50", "RESNET", "x" * 250 + "end"])
        params["long"] = "x" * 250 + chance.choice(["end", "END"])
    tags = {"kind": chance.choice(["base", "Base", "%", "a_b", "y" * 300 + "z"])} if number % 3 != 1 else {}
    points = [{"key": "loss", "value": 99.0, "timestamp": START, "step": 0}] if "loss" in metrics else []
    points += [{"key": key, "value": value, "timestamp": START, "step": 1} for key, value in metrics.items()]
    api.ask(
        "runs/log-batch",
        {
            "run_id": run_id,
            "metrics": [{**point, "value": say_number(point["value"])} for point in points],
            "params": [{"key": key, "value": value} for key, value in params.items()],
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        },
    )


def say_number(value: Any) -> Any:
    """A number as MLflow's clients send it."""
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return names.get(str(value), value)


CLAUSES = [
    "metrics.loss < 0.5",
    "metrics.loss <= 0.5",
    "metrics.loss > 0.25",
    "metric.loss >= -1",
    "metrics.loss = 0.5",
    "metrics.loss != 0.5",
    "metrics.`val acc/x` = 2",
    'metrics."val acc/x" > 1',
    "metrics.none > 0",
    "params.lr = '0.1'",
    "params.lr != '0.1'",
    "param.lr LIKE '0%'",
    "params.lr like '_.1'",
    "params.`my key` = 'true'",
    "params.`my key` != 'True'",
    "params.`my key` ILIKE 'RESNET%'",
    "params.long LIKE '%END'",
    "params.long ILIKE '%end'",
    f"params.long = '{'x' * 250}end'",
    f"params.long != '{'x' * 250}end'",
    "parameters.lr IS NULL",
    "params.lr IS NOT NULL",
    "tags.kind = 'base'",
    "tags.kind != 'base'",
    "tag.kind LIKE 'B%'",
    "tags.kind ILIKE 'b%'",
    "tags.kind LIKE '%z'",
    "tags.kind = '%'",
    "tags.kind LIKE 'a_b'",
    f"tags.kind = '{'y' * 300}z'",
    "tags.kind IS NULL",
    "tags.kind IS NOT NULL",
    "tags.mlflow.runName = 'debug one'",
    "tags.`mlflow.runName` LIKE '%[a]%'",
    "attributes.run_name = 'Debug_two'",
    "run_name LIKE 'Debug%'",
    "run_name ILIKE 'debug%'",
    "run_name != 'debug one'",
    "run_name LIKE '50\\% %'",
    "run_name LIKE 'a\\b'",
    "run_name LIKE '%*'",
    "attribute.`Run name` = 'ünï'",
    "status = 'FINISHED'",
    "attributes.status != 'FINISHED'",
    "run.status LIKE '%E%D'",
    "status ILIKE 'r%'",
    "status = 'finished'",
    "user_id = 'ann'",
    "attr.user_id ILIKE 'B%'",
    f"start_time > {START + 977 * 9}",
    f"attributes.start_time <= {START + 977 * 9}",
    f"start_time = {START + 977 * 4}",
    f"start_time != {START + 977 * 4}",
    f"Created >= {START + 977 * 20}.5",
    f"end_time > {START + 977 * 12}",
    f"end_time != {START}",
    "dataset.name = 'mnist'",
    "datasets.name LIKE 'C%'",
    "dataset.name IN ('mnist', 'x')",
    "dataset.name NOT IN ('mnist')",
    "dataset.digest = 'd0'",
    "dataset.context = 'train'",
    "dataset.context != 'train'",
    "artifact_uri LIKE '%/artifacts'",
    "run_id IN ('a', 'b')",
    "run_id NOT IN ('a')",
    "run_id != 'a'",
]
MISTAKES = [
    "metrics.loss LIKE 'x'",
    "metrics.loss = 'x'",
    "params.lr > '1'",
    "params.lr = 1",
    "tags.kind IN ('a')",
    "status IN ('a')",
    "foo.bar = 'x'",
    "bar = 'x'",
    "metrics.loss > 1 OR metrics.loss < 0",
    "metrics.loss IS NULL",
    "dataset.source = 'x'",
    "start_time LIKE '5'",
    "start_time = 'x'",
    "params.lr = 'x",
    "run_id IN ()",
    "run_id IN (1)",
    "(metrics.loss > 1)",
    "; metrics.loss > 1",
]
ORDERS = [
    *("metrics.loss", "metrics.`val acc/x`", "metrics.none", "params.lr", "params.`my key`", "tags.kind"),
    *("start_time", "end_time", "status", "run_name", "user_id", "attributes.created", "tags.`mlflow.runName`"),
]
WRONG_ORDERS = ["foo.bar", "bar", "metrics.loss up", "", "metrics.loss, start_time", "dataset.name", "lifecycle_stage"]


def make_searches(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Each clause and order on its own, then mixtures."""
    both = {"experiment_ids": [0, 1]}
    for clause in [*CLAUSES, *MISTAKES]:
        yield {**both, "filter": clause}
    for order in ORDERS:
        yield {**both, "order_by": [f"{order} ASC"]}
        yield {**both, "order_by": [f"{order} DESC"]}
    for order in WRONG_ORDERS:
        yield {**both, "order_by": [order]}
    yield {**both, "order_by": ["start_time", "start_time DESC"]}
    for _ in range(120):
        turned = [f"{order} {chance.choice(['', 'ASC', 'DESC', 'desc'])}".strip() for order in ORDERS]
        yield {
            "experiment_ids": chance.choice([[0], [1], [0, 1]]),
            "filter": " and ".join(chance.sample(CLAUSES, chance.choice([0, 1, 1, 2, 2, 3]))),
            "order_by": chance.sample(turned, chance.choice([0, 1, 1, 2, 3])),
            "run_view_type": chance.choice(["ACTIVE_ONLY", "DELETED_ONLY", "ALL"]),
            "max_results": chance.choice([1, 5, 100]),
        }


def test_both_servers_find_the_same_runs(servers: tuple[Api, Api]) -> None:
    theirs, ours = servers
    searches = list(make_searches(random.Random(5)))
    different = [
        (search, expected, found)
        for search in searches
        if (expected := theirs.search(search)) != (found := ours.search(search))
    ]
    assert not different, "\n".join(map(str, [len(different), *different]))


@pytest.mark.parametrize(
    "body",
    [
        {"order_by": ["metrics.loss DESC"]},
        {"order_by": ["params.lr", "metrics.`val acc/x` DESC"], "run_view_type": "ALL"},
        {"order_by": ["end_time", "tags.kind DESC"]},
        {"filter": "params.lr IS NOT NULL"},
    ],
)
def test_pages_together_have_all_runs_in_order(servers: tuple[Api, Api], body: dict[str, Any]) -> None:
    theirs, ours = servers
    body = {**body, "experiment_ids": [0, 1]}
    whole = theirs.read_pages(body, 1000)
    assert len(whole) == len(set(whole)) > 10
    assert ours.read_pages(body, 1000) == whole
    assert ours.read_pages(body, 4) == whole


def test_a_page_token_of_another_search_is_refused(servers: tuple[Api, Api]) -> None:
    _, ours = servers
    body = {"experiment_ids": ours.experiments, "max_results": 2}
    token = ours.ask("runs/search", body)["next_page_token"]
    for wrong in (
        {**body, "filter": "metrics.loss > 0", "page_token": token},
        {**body, "page_token": "bm90IGEgdG9rZW4="},
        {**body, "page_token": "!"},
        {**body, "max_results": 0},
        {**body, "max_results": 50_001},
        {**body, "max_results": "many"},
        {**body, "experiment_ids": ["x"]},
    ):
        status, answer = ours.call("runs/search", wrong)
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), (wrong, answer)


def test_new_runs_do_not_move_the_pages(servers: tuple[Api, Api]) -> None:
    _, ours = servers
    [name] = {"experiment_id": ours.ask("experiments/create", {"name": "paged"})["experiment_id"]}.values()
    for number in range(4):
        ours.ask("runs/create", {"experiment_id": name, "start_time": START + number})
    body = {"experiment_ids": [name], "max_results": 2}
    first = ours.ask("runs/search", body)
    ours.ask("runs/create", {"experiment_id": name, "start_time": START + 100})
    second = ours.ask("runs/search", {**body, "page_token": first["next_page_token"]})
    times = [run["info"]["start_time"] - START for run in [*first["runs"], *second["runs"]]]
    assert times == [3, 2, 1, 0]
    assert "next_page_token" not in second


EXPERIMENT_SEARCHES: list[dict[str, Any]] = [
    {},
    {"max_results": 0},
    {"max_results": 50_001},
    {"view_type": "ALL"},
    {"view_type": "DELETED_ONLY"},
    {"filter": "name = 'Alpha'"},
    {"filter": "name != 'Alpha'"},
    {"filter": "name LIKE 'a%'"},
    {"filter": "attribute.name ILIKE 'a%'"},
    {"filter": "name like 'a%'"},
    {"filter": "name LIKE 'b_ta'"},
    {"filter": "tags.team = 'red'"},
    {"filter": "tags.team != 'red'"},
    {"filter": "tag.`team` ILIKE 'R%' AND name LIKE '%a'"},
    {"filter": "tags.team IS NULL"},
    {"filter": "tags.team IS NOT NULL"},
    {"filter": "creation_time > 5"},
    {"filter": "creation_time < 5"},
    {"filter": "last_update_time >= 5.5"},
    {"filter": "experiment_id = 'x'"},
    {"filter": "experiment_id IN ('0')"},
    {"filter": "experiment_id LIKE '1'"},
    {"filter": "params.x = 'y'"},
    {"filter": "name = 5"},
    {"order_by": ["name"]},
    {"order_by": ["name DESC"]},
    {"order_by": ["experiment_id DESC"]},
    {"order_by": ["creation_time"]},
    {"order_by": ["last_update_time DESC", "name"]},
    {"order_by": ["tags.team"]},
    {"order_by": ["size"]},
    {"order_by": ["name"], "max_results": 2},
    {"page_token": "!"},
]


def test_both_servers_find_the_same_experiments(servers: tuple[Api, Api]) -> None:
    for api in servers:
        for name, team in (("Alpha", "red"), ("alfa", "Red"), ("beta", ""), ("gone", "blue")):
            tags = [{"key": "team", "value": team}] if team else []
            made = api.ask("experiments/create", {"name": name, "tags": tags})["experiment_id"]
        api.ask("experiments/delete", {"experiment_id": made})
    for search in EXPERIMENT_SEARCHES:
        search = {"max_results": 100, **search}
        posted = [find_experiments(api, search, None) for api in servers]
        assert posted[0] == posted[1], search
        got = [find_experiments(api, None, search) for api in servers]
        assert got[0] == got[1], search
    first = find_experiments(servers[1], None, {"max_results": 2})
    token = servers[1].call("experiments/search", None, {"max_results": 2})[1]["next_page_token"]
    second = find_experiments(servers[1], None, {"max_results": 2, "page_token": token})
    assert not set(first[1]) & set(second[1])


def find_experiments(api: Api, body: Any, query: Any) -> Any:
    """The status and the names that a search finds."""
    status, answer = api.call("experiments/search", body, query)
    if status != 200:
        return status, answer["error_code"]
    names = [each["name"] for each in answer.get("experiments", [])]
    return status, [name for name in names if name != "paged"], "next_page_token" in answer

"""MLflow's searches of runs: every filter and order gives what a plain loop over all runs gives."""

from __future__ import annotations

import math
import random

import pytest

from trainmaster.dispatcher.mlflow.filters import RUNS, parse_filter, parse_order
from trainmaster.dispatcher.mlflow.run_messages import STATUS
from trainmaster.dispatcher.store import run_pages
from trainmaster.dispatcher.store.mlflow_search import MlflowSearch
from trainmaster.dispatcher.store.run_inputs import DatasetInput, InputDataset
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import Status

COUNT = 60
LONG = "x" * 300
START = 1_700_000_000


@pytest.fixture
def filled(store):
    """Runs that differ in everything, some without this or that; several began at the same time."""
    # In one transaction, which is faster.
    with store._database.write():
        runs = fill(store)
    return store, runs


def fill(store):
    chance = random.Random(3)
    numbers = [store.mlflow_experiments.create(f"exp{n}", {}, "", 1.0).seq for n in range(3)]
    known = []
    for n in range(COUNT):
        run = {
            "id": f"{chance.getrandbits(128):032x}",
            "experiment": numbers[n % 3],
            "start": START + n // 4,
            "name": chance.choice(["one", "Two", "50% [a]*"]),
            "user": chance.choice(["ann", "bob"]),
            "params": {"lr": chance.choice(["0.1", "0.01", "9", "lr"])} if n % 4 else {},
            "tags": {"kind": chance.choice(["base", "Base", "%"])} if n % 3 else {},
            "metrics": {"loss": chance.choice([0.5, -1.0, 3.0, math.nan])} if n % 5 else {},
            "status": chance.choice([Status.RUNNING, Status.COMPLETED, Status.FAILED]),
            "end": None,
            "deleted": n % 6 == 1,
        }
        # What is indexed of these is the same, and differs from them.
        run["params"]["long"] = run["tags"]["long"] = LONG + chance.choice("ab")
        made = store.mlflow_runs.create(
            run["id"], run["experiment"], name=run["name"], user=run["user"], tags=run["tags"], at=run["start"]
        )
        run["seq"] = made.seq
        head = store.mlflow_runs.find_head(run["id"])
        store.mlflow_runs.log(head, run["params"], {})
        records = [{"k": "metric", "n": name, "v": value, "t": 1.0} for name, value in run["metrics"].items()]
        if records:
            store.journals.ingest(run["id"], "0-1-a.jsonl", 0, 1, records)
        if run["status"] is not Status.RUNNING:
            run["end"] = START * 1000 + 100_000 + chance.randrange(3)
            store.mlflow_runs.change(head, status=run["status"], end_ms=run["end"], name="", at=1.0)
        if run["deleted"]:
            store.mlflow_runs.set_archived(made.seq, 5.0)
        known.append(run)
    return known


@pytest.fixture(params=["as is", "walk", "short walk, then few"])
def way(request, monkeypatch):
    """All ways to find a page."""
    if request.param != "as is":
        monkeypatch.setattr(run_pages.math, "isqrt", lambda number: -1)
    if request.param == "short walk, then few":
        monkeypatch.setattr(run_pages, "_WALKS", (3, 9))


def find(store, text="", orders=(), experiments=(1, 2, 3), view="active", limit=1000, cursor="", key=None):
    search = MlflowSearch(
        tuple(experiments),
        parse_filter(text, RUNS),
        tuple(parse_order(each, RUNS) for each in orders),
        view,
        limit,
        cursor,
        f"{text}|{orders}" if key is None else key,
        STATUS,
    )
    return store.mlflow_search.find(search)


FILTERS = {
    "": lambda run: True,
    "metrics.loss < 1": lambda run: run["metrics"].get("loss", 9) < 1,
    "metrics.loss = 0.5": lambda run: run["metrics"].get("loss") == 0.5,
    "metrics.loss != 0.5": lambda run: run["metrics"].get("loss", 0.5) != 0.5,
    "params.lr = '0.1'": lambda run: run["params"].get("lr") == "0.1",
    f"params.long = '{LONG}a'": lambda run: run["params"]["long"] == LONG + "a",
    f"params.long != '{LONG}a'": lambda run: run["params"]["long"] != LONG + "a",
    "params.lr LIKE '0._'": lambda run: run["params"].get("lr") == "0.1",
    "params.long ILIKE '%XB'": lambda run: run["params"]["long"] == LONG + "b",
    "params.lr IS NULL": lambda run: "lr" not in run["params"],
    "params.lr IS NOT NULL": lambda run: "lr" in run["params"],
    "tags.kind = 'base'": lambda run: run["tags"].get("kind") == "base",
    "tags.kind != 'base'": lambda run: run["tags"].get("kind", "base") != "base",
    f"tags.long = '{LONG}b'": lambda run: run["tags"]["long"] == LONG + "b",
    "tags.long LIKE '%xb'": lambda run: run["tags"]["long"] == LONG + "b",
    "tags.kind ILIKE 'BASE'": lambda run: run["tags"].get("kind", "").lower() == "base",
    "tags.kind IS NULL": lambda run: "kind" not in run["tags"],
    "status = 'FINISHED'": lambda run: run["status"] is Status.COMPLETED,
    "status != 'FINISHED'": lambda run: run["status"] is not Status.COMPLETED,
    "status LIKE '%I%'": lambda run: run["status"] is not Status.CANCELED,
    "run_name LIKE '%[a]*'": lambda run: run["name"] == "50% [a]*",
    "run_name ILIKE 't%'": lambda run: run["name"] == "Two",
    "user_id = 'ann'": lambda run: run["user"] == "ann",
    f"start_time = {START + 5}000": lambda run: run["start"] == START + 5,
    f"start_time > {START + 5}000": lambda run: run["start"] > START + 5,
    f"start_time <= {START + 5}000.5": lambda run: run["start"] <= START + 5,
    f"end_time = {START + 100}001": lambda run: run["end"] == START * 1000 + 100_001,
    f"end_time != {START + 100}001": lambda run: run["end"] not in (None, START * 1000 + 100_001),
}


def sort_key(order):
    """What a run is sorted by in MLflow: values, then NaN, then nothing."""
    name, _, direction = order.partition(" ")
    read = {
        "metrics.loss": lambda run: run["metrics"].get("loss"),
        "params.lr": lambda run: run["params"].get("lr"),
        "tags.kind": lambda run: run["tags"].get("kind"),
        "start_time": lambda run: run["start"],
        "end_time": lambda run: run["end"],
        "status": lambda run: STATUS[run["status"]],
        "run_name": lambda run: run["name"],
        "user_id": lambda run: run["user"],
    }[name]
    return read, direction == "DESC"


def sort_runs(runs, orders):
    found = sorted(runs, key=lambda run: run["id"])
    if not any(order.startswith("start_time") for order in orders):
        found.sort(key=lambda run: run["start"], reverse=True)
    for order in reversed(orders):
        read, descending = sort_key(order)
        has_value = [run for run in found if read(run) is not None and read(run) == read(run)]
        has_value.sort(key=read, reverse=descending)
        nans = [run for run in found if read(run) is not None and read(run) != read(run)]
        found = [*has_value, *nans, *(run for run in found if read(run) is None)]
    return found


ORDERS = [
    [],
    ["metrics.loss"],
    ["metrics.loss DESC"],
    ["params.lr"],
    ["tags.kind DESC"],
    ["start_time"],
    ["end_time DESC"],
    ["status"],
    ["run_name DESC", "metrics.loss"],
    ["metrics.loss", "params.lr DESC"],
    ["params.lr", "metrics.loss DESC", "start_time"],
    ["user_id", "end_time", "tags.kind"],
]


@pytest.mark.usefixtures("way")
def test_filters_and_orders_give_what_a_loop_gives(filled):
    store, runs = filled
    chance = random.Random(1)
    for text, matches in FILTERS.items():
        for orders in chance.sample(ORDERS, 3):
            chosen = chance.choice([(1, 2, 3), (2,), (1, 3, 99)])
            expected = [
                run["seq"]
                for run in sort_runs(runs, orders)
                if run["experiment"] in chosen and not run["deleted"] and matches(run)
            ]
            assert find(store, text, orders, chosen) == (expected, ""), (text, orders, chosen)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("orders", ORDERS, ids=str)
def test_pages_follow_each_other(filled, orders):
    store, runs = filled
    expected = [run["seq"] for run in sort_runs(runs, orders) if not run["deleted"]]
    found, cursor = find(store, "", orders, limit=7)
    while cursor:
        page, cursor = find(store, "", orders, limit=7, cursor=cursor)
        found += page
    assert found == expected


def test_views_have_deleted_runs_or_all(filled):
    store, runs = filled
    for view, chosen in (("deleted", [run for run in runs if run["deleted"]]), ("all", runs)):
        for orders in ([], ["metrics.loss"]):
            assert find(store, "", orders, view=view)[0] == [run["seq"] for run in sort_runs(chosen, orders)]


def test_several_conditions_all_hold(filled):
    store, runs = filled
    names = [text for text in FILTERS if text]
    chance = random.Random(2)
    for _ in range(40):
        chosen = chance.sample(names, 3)
        expected = [
            run["seq"]
            for run in sort_runs(runs, [])
            if not run["deleted"] and all(FILTERS[text](run) for text in chosen)
        ]
        assert find(store, " AND ".join(chosen))[0] == expected, chosen


def test_a_run_is_found_by_its_id_and_its_address(filled):
    store, runs = filled
    run = runs[0]
    for text in (
        f"run_id = '{run['id']}'",
        f"run_id IN ('{run['id']}', 'other')",
        f"artifact_uri = 'mlflow-artifacts:/{run['experiment']}/{run['id']}/artifacts'",
    ):
        assert find(store, text)[0] == [run["seq"]]
    assert len(find(store, f"run_id NOT IN ('{run['id']}')", view="all")[0]) == COUNT - 1


def test_runs_are_found_by_their_datasets(filled):
    store, runs = filled
    found = store.run_inputs.find_run(runs[0]["id"])
    both = [InputDataset("mnist", digest, "code", "{}") for digest in ("d1", "d2")]
    store.run_inputs.add(found, [DatasetInput(each, {"mlflow.data.context": "train"}) for each in both], [])
    for text in (
        "dataset.name = 'mnist'",
        "datasets.name LIKE 'm%'",
        "dataset.digest IN ('d1', 'd2')",
        "dataset.context = 'train' AND dataset.name != 'x'",
    ):
        assert find(store, text)[0] == [runs[0]["seq"]], text
    assert find(store, "dataset.context = 'eval'")[0] == []
    assert find(store, "dataset.name NOT IN ('mnist')")[0] == []


def test_a_cursor_of_another_search_is_refused(filled):
    store, _ = filled
    _, cursor = find(store, "", ["metrics.loss"], limit=5)
    for orders, key in ((["metrics.loss"], "other"), (["params.lr"], "|['metrics.loss']")):
        with pytest.raises(UserErrorException, match="cursor"):
            find(store, "", orders, limit=5, cursor=cursor, key=key)

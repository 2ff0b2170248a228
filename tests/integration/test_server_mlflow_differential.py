"""The same calls to a real MLflow server and to ours: statuses, codes of errors and contents are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.mlflow_pair import Servers, compare, start_both
from tests.mlflow_twin import Pair, Twin

pytestmark = pytest.mark.timeout(600)

LONG = "x" * 300
VERY_LONG = "x" * 9000

RUN_FILTERS = (
    "",
    "metrics.loss < 2",
    "metrics.loss >= 1 and params.lr = '1'",
    "metric.loss != 0",
    "params.lr != '1'",
    "param.lr LIKE '%1%'",
    "params.lr ILIKE '1'",
    "parameters.lr IN ('1', '2')",
    "tags.kind = 'odd'",
    "tag.kind != 'odd'",
    "tags.`kind` = 'even'",
    'tags."kind" = "even"',
    "attributes.status = 'FINISHED'",
    "status = 'RUNNING'",
    "attr.run_name LIKE 'run %'",
    "attributes.start_time > 1",
    "start_time <= 2",
    "end_time = 100",
    "run_name ILIKE 'RUN 3'",
    "nonsense",
    "metrics.loss = 'a'",
    "params.lr = 1",
    "params.lr > '1'",
    "tags.kind = 5",
    "metrics.loss < 2 or params.lr = '1'",
    "attributes.nonsense = 'a'",
    "nonsense.a = 'a'",
    "metrics.loss LIKE 'a'",
    "attributes.status IN ('FINISHED')",
    "attributes.run_id IN ('a')",
    "dataset.name = 'a'",
    "datasets.digest LIKE '%a%'",
)

RUN_ORDERS = (
    ["metrics.loss"],
    ["metrics.loss DESC"],
    ["params.lr ASC", "metrics.loss DESC"],
    ["tags.kind", "start_time DESC"],
    ["attributes.start_time ASC"],
    ["run_name DESC"],
    ["metrics.none ASC"],
    ["nonsense"],
    ["metrics.loss SIDEWAYS"],
    [""],
)

EXPERIMENT_QUESTIONS = (
    {"filter": "name = 'search'"},
    {"filter": "name LIKE 'se%'"},
    {"filter": "name ILIKE 'SE%'"},
    {"filter": "nonsense = 'a'"},
    {"filter": "tags.a = '1'"},
    {"filter": "name = 'search' and tags.a = '1'"},
    {"filter": "name LIKE 's%'", "order_by": ["name DESC"]},
    {"filter": "name LIKE 's%'", "view_type": "ALL"},
    {"max_results": 0},
    {"max_results": 50001},
    {"max_results": 1, "filter": "name = 'search'"},
    {"order_by": ["nonsense"]},
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with start_both(tmp_path_factory.mktemp("twins")) as made:
        yield made


@pytest.fixture
def twin(servers: Servers) -> Iterator[Twin]:
    with compare(servers) as made:
        yield made


def test_experiments(twin: Twin) -> None:
    twin.get("experiments/get", experiment_id="0")
    made = twin.post("experiments/create", name="plain", tags=[{"key": "a", "value": "1"}])
    one = made["experiment_id"]
    twin.get("experiments/get", experiment_id=one)
    twin.get("experiments/get-by-name", experiment_name="plain")
    for wrong in ("", None, 5, LONG * 2, []):
        twin.post("experiments/create", name=wrong)
    twin.post("experiments/create", name="plain")
    twin.post("experiments/create")
    twin.post("experiments/create", name="located", artifact_location="s3://bucket/there")
    twin.get("experiments/get-by-name", experiment_name="located")
    for unknown in ("99999", "abc", "", "-1"):
        twin.get("experiments/get", experiment_id=unknown)
    twin.get("experiments/get")
    twin.get("experiments/get-by-name", experiment_name="no such")
    twin.get("experiments/get-by-name")
    twin.post("experiments/set-experiment-tag", experiment_id=one, key="b", value="2")
    twin.post("experiments/set-experiment-tag", experiment_id=one, key="b", value="3")
    twin.post("experiments/set-experiment-tag", experiment_id=one, key=LONG, value="2")
    twin.post("experiments/set-experiment-tag", experiment_id=one, key="b", value=VERY_LONG)
    twin.post("experiments/set-experiment-tag", experiment_id=one, key="no/../way", value="2")
    twin.post("experiments/set-experiment-tag", experiment_id="99999", key="b", value="2")
    twin.post("experiments/set-experiment-tag", experiment_id=one, value="2")
    twin.post("experiments/delete-experiment-tag", experiment_id=one, key="a")
    twin.post("experiments/delete-experiment-tag", experiment_id=one, key="a")
    twin.get("experiments/get", experiment_id=one)
    twin.post("experiments/update", experiment_id=one, new_name="renamed")
    twin.get("experiments/get", experiment_id=one)
    twin.post("experiments/update", experiment_id=one, new_name="located")
    twin.post("experiments/update", experiment_id=one)
    twin.post("experiments/update", experiment_id="99999", new_name="x")
    twin.post("experiments/delete", experiment_id=one)
    twin.get("experiments/get", experiment_id=one)
    twin.get("experiments/get-by-name", experiment_name="renamed")
    twin.post("experiments/delete", experiment_id=one)
    twin.post("experiments/create", name="renamed")
    twin.post("experiments/update", experiment_id=one, new_name="again")
    twin.post("runs/create", experiment_id=one)
    twin.post("experiments/set-experiment-tag", experiment_id=one, key="b", value="2")
    twin.post("experiments/restore", experiment_id=one)
    twin.post("experiments/restore", experiment_id=one)
    twin.get("experiments/get", experiment_id=one)
    twin.post("experiments/delete", experiment_id="99999")
    twin.post("experiments/restore", experiment_id="99999")


def test_runs(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="runs")["experiment_id"]
    made = twin.post(
        "runs/create",
        experiment_id=experiment,
        user_id="ann",
        run_name="first",
        start_time=1234,
        tags=[{"key": "a", "value": "1"}, {"key": "mlflow.user", "value": "ann"}],
    )
    run = made["run"]["info"]["run_id"]
    twin.get("runs/get", run_id=run)
    twin.get("runs/get", run_uuid=run)
    twin.get("runs/get", run_id="0" * 32)
    twin.get("runs/get", run_id="../../etc")
    twin.get("runs/get")
    twin.post("runs/create", experiment_id="99999")
    twin.post("runs/create", experiment_id=experiment, start_time="123", run_name="text", user_id="ann")
    twin.post("runs/create", experiment_id=experiment, start_time="abc")
    twin.post(
        "runs/create",
        experiment_id=experiment,
        tags=[{"key": "mlflow.runName", "value": "by tag"}],
        start_time=1,
        user_id="ann",
    )
    twin.post(
        "runs/create",
        experiment_id=experiment,
        run_name="one",
        user_id="ann",
        tags=[{"key": "mlflow.runName", "value": "other"}],
        start_time=1,
    )
    for key, value in (("b", "2"), ("b", "3"), ("", "x"), (LONG, "x"), ("c", VERY_LONG), ("a/../../b", "1"), ("c", 5)):
        twin.post("runs/set-tag", run_id=run, key=key, value=value)
        twin.post("runs/log-parameter", run_id=run, key=key, value=value)
    twin.post("runs/set-tag", run_id=run, key="mlflow.runName", value="second")
    twin.post("runs/set-tag", run_id="0" * 32, key="a", value="b")
    twin.post("runs/set-tag", run_id=run, value="b")
    twin.post("runs/log-parameter", run_id=run, key="lr", value="0.1")
    twin.post("runs/log-parameter", run_id=run, key="lr", value="0.1")
    twin.post("runs/log-parameter", run_id=run, key="lr", value="0.2")
    twin.post("runs/log-parameter", run_id=run, key="empty", value="")
    twin.post("runs/log-parameter", run_id="0" * 32, key="a", value="b")
    twin.post("runs/delete-tag", run_id=run, key="b")
    twin.post("runs/delete-tag", run_id=run, key="b")
    twin.get("runs/get", run_id=run)
    twin.post("runs/update", run_id=run, run_name="third")
    twin.post("runs/update", run_id=run, status="FINISHED", end_time=5678)
    twin.get("runs/get", run_id=run)
    twin.post("runs/update", run_id=run, status="RUNNING")
    twin.post("runs/update", run_id=run, status="NONSENSE")
    twin.post("runs/update", run_id="0" * 32, status="FINISHED", end_time=1)
    for status in ("SCHEDULED", "KILLED", "FAILED"):
        twin.post("runs/update", run_id=run, status=status, end_time=6000)
    twin.post("runs/delete", run_id=run)
    twin.get("runs/get", run_id=run)
    twin.post("runs/set-tag", run_id=run, key="b", value="2")
    twin.post("runs/log-metric", run_id=run, key="m", value=1, timestamp=1)
    twin.post("runs/log-parameter", run_id=run, key="new", value="2")
    twin.post("runs/update", run_id=run, status="RUNNING")
    twin.post("runs/delete", run_id=run)
    twin.post("runs/restore", run_id=run)
    twin.post("runs/restore", run_id=run)
    twin.post("runs/delete", run_id="0" * 32)
    twin.post("runs/restore", run_id="0" * 32)


def test_metrics(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="metrics")["experiment_id"]
    run = twin.post("runs/create", experiment_id=experiment, start_time=1, run_name="one", user_id="ann")["run"][
        "info"
    ]["run_id"]
    points = [(0.5, 10, 0), (0.25, 20, 1), (0.25, 20, 1), (0.75, 5, 7), (0.1, 30, 3), ("NaN", 40, 4), (1e300, 50, 5)]
    for value, timestamp, step in points:
        twin.post("runs/log-metric", run_id=run, key="loss", value=value, timestamp=timestamp, step=step)
        twin.get("runs/get", run_id=run)
    for value in ("Infinity", "-Infinity", "NaN", 0, -0.0, 3, "0.5", "abc", None):
        twin.post("runs/log-metric", run_id=run, key=f"of {value}", value=value, timestamp=7, step=1)
    twin.get("runs/get", run_id=run)
    twin.get("metrics/get-history", run_id=run, metric_key="loss")
    twin.get("metrics/get-history", run_id=run, metric_key="no such")
    twin.get("metrics/get-history", run_id=run)
    twin.get("metrics/get-history", metric_key="loss")
    twin.get("metrics/get-history", run_id="0" * 32, metric_key="loss")
    first = twin.get("metrics/get-history", run_id=run, metric_key="loss", max_results=2)
    twin.get("metrics/get-history", run_id=run, metric_key="loss", max_results=2, page_token=first["next_page_token"])
    for key, timestamp, step in (
        ("", 1, 1),
        (LONG, 1, 1),
        ("a/../b", 1, 1),
        ("m", "abc", 1),
        ("m", 1, "abc"),
        ("m", -5, -7),
        ("m", None, 1),
        ("m", 1, None),
    ):
        twin.post("runs/log-metric", run_id=run, key=key, value=1, timestamp=timestamp, step=step)
    batch = {
        "metrics": [{"key": "a", "value": number, "timestamp": number, "step": number} for number in range(5)],
        "params": [{"key": "p", "value": "1"}],
        "tags": [{"key": "t", "value": "1"}],
    }
    twin.post("runs/log-batch", run_id=run, **batch)
    twin.post("runs/log-batch", run_id=run, **batch)
    twin.get("runs/get", run_id=run)
    for wrong in (
        {"metrics": [{"key": "a", "value": 1}]},
        {"metrics": [{"value": 1, "timestamp": 1, "step": 1}]},
        {"metrics": "abc"},
        {"params": [{"key": "p", "value": "2"}]},
        {"params": [{"key": "q", "value": "1"}, {"key": "q", "value": "2"}]},
        {"params": [{"value": "2"}]},
        {"params": [{"key": LONG, "value": "2"}]},
        {"params": [{"key": "r", "value": VERY_LONG}]},
        {"tags": [{"key": LONG, "value": "2"}]},
        {"tags": [{"value": "2"}]},
        {"metrics": [{"key": "a", "value": 1, "timestamp": 1, "step": 1}] * 1001},
        {"params": [{"key": f"k{number}", "value": "1"} for number in range(101)]},
        {"tags": [{"key": f"k{number}", "value": "1"} for number in range(101)]},
    ):
        twin.post("runs/log-batch", run_id=run, **wrong)
    twin.get("runs/get", run_id=run)
    twin.post("runs/log-batch", run_id="0" * 32, **batch)
    twin.post("runs/log-batch", **batch)


def test_search(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="search")["experiment_id"]
    for number in range(8):
        _create_run_to_find(twin, experiment, number)
    for text in RUN_FILTERS:
        twin.post("runs/search", experiment_ids=[experiment], filter=text)
    for order in RUN_ORDERS:
        twin.post("runs/search", experiment_ids=[experiment], order_by=order)
    for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL", "NONSENSE"):
        twin.post("runs/search", experiment_ids=[experiment], run_view_type=view)
    for most in (0, 1, 50000, 50001, -1, "3", "abc"):
        twin.post("runs/search", experiment_ids=[experiment], max_results=most, order_by=["run_name"])
    page = twin.post("runs/search", experiment_ids=[experiment], max_results=3, order_by=["run_name"])
    token = page["next_page_token"]
    twin.post("runs/search", experiment_ids=[experiment], max_results=3, order_by=["run_name"], page_token=token)
    twin.post("runs/search", experiment_ids=[experiment], page_token="nonsense")
    for ids in ([], ["99999"], ["abc"], ["12abc"], [""], ["0", "x"]):
        twin.post("runs/search", experiment_ids=ids)
    twin.post("runs/search")
    for question in EXPERIMENT_QUESTIONS:
        twin.post("experiments/search", **question)


def _create_run_to_find(twin: Twin, experiment: Pair, number: int) -> None:
    run = twin.post("runs/create", experiment_id=experiment, start_time=number, run_name=f"run {number}", user_id="ann")
    run_id = run["run"]["info"]["run_id"]
    metrics = [{"key": "loss", "value": number % 3, "timestamp": 1, "step": 1}] if number != 5 else []
    params = [{"key": "lr", "value": str(number % 4)}] if number != 2 else []
    tags = [{"key": "kind", "value": "odd" if number % 2 else "even"}]
    twin.post("runs/log-batch", run_id=run_id, metrics=metrics, params=params, tags=tags)
    if number == 6:
        twin.post("runs/update", run_id=run_id, status="FINISHED", end_time=100)
    if number == 7:
        twin.post("runs/delete", run_id=run_id)


def test_custom_views(twin: Twin) -> None:
    views = [{"key": f"mlflow.customView.view.{number}", "value": "{}"} for number in range(51)]
    twin.post("experiments/create", name="too many views", tags=views)
    one = twin.post("experiments/create", name="views", tags=views[:49])["experiment_id"]
    for number in (49, 50, 3):
        twin.post("experiments/set-experiment-tag", experiment_id=one, **views[number])
    twin.post("experiments/delete-experiment-tag", experiment_id=one, key=views[0]["key"])
    twin.post("experiments/set-experiment-tag", experiment_id=one, **views[50])


def test_values_of_other_types(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="types")["experiment_id"]
    run = twin.post("runs/create", experiment_id=experiment, start_time=1, run_name="one", user_id="ann")["run"]["info"]
    for wrong in ({"order_by": "start_time"}, {"experiment_ids": "0"}, {"filter": 5}):
        twin.post("runs/search", **{"experiment_ids": [experiment], **wrong})
    for status in (3, 99, 1):
        twin.post("runs/update", run_id=run["run_id"], status=status, end_time=7)
    pages = "/ajax-api/2.0/mlflow"
    twin.send("GET", f"{pages}/metrics/get-history-bulk", {"run_id": run["run_id"], "metric_key": "a"})
    twin.send("GET", f"{pages}/metrics/get-history-bulk-interval", {"run_ids": run["run_id"], "metric_key": "a"})
    twin.post("runs/create", start_time=1, user_id="ann")
    twin.post("runs/create", experiment_id=experiment, user_id="ann", run_name="without a start")
    twin.post("runs/log-parameter", run_id=run["run_id"], key="a", value={"b": [1, 2], "a": 1})
    for path in ("/get-artifact", "//get-artifact", "//model-versions/get-artifact"):
        twin.send("GET", path, {"run_id": run["run_id"], "name": "m", "version": 1, "path": "../up"})


def test_graph_queries(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="graph", tags=[{"key": "a", "value": "1"}])["experiment_id"]
    made = twin.post("runs/create", experiment_id=experiment, start_time=5, run_name="one", user_id="ann")
    run = made["run"]["info"]["run_id"]
    for value in (1.5, "NaN"):
        twin.post("runs/log-metric", run_id=run, key=f"of {value}", value=value, timestamp=1, step=2)
    twin.post("runs/log-batch", run_id=run, params=[{"key": "p", "value": "1"}])
    dataset = {"name": "d", "digest": "1", "source_type": "s", "source": "x"}
    twin.post("runs/log-inputs", run_id=run, datasets=[{"dataset": dataset}])

    def ask(text: str, **variables: object) -> None:
        twin.send("POST", "/graphql", {"query": text, "variables": variables})

    ask('{ test(inputString: "it") { output } }')
    get_run = "query q($it: MlflowGetRunInput) { mlflowGetRun(input: $it) {"
    ask(
        f"{get_run} run {{ info {{ runId status startTime endTime runName artifactUri lifecycleStage }} }} }} }}",
        it={"runId": run},
    )
    parts = "data { metrics { key value step } params { key value } } "
    parts += "inputs { datasetInputs { dataset { name } tags { key } } }"
    ask(
        f"{get_run} run {{ ...F experiment {{ name tags {{ key value }} }} modelVersions {{ name }} }} }} }} "
        f"fragment F on MlflowRunExtension {{ {parts} outputs {{ modelOutputs {{ modelId }} }} __typename }}",
        it={"runUuid": run},
    )
    search = "mutation m($it: MlflowSearchRunsInput) { found: mlflowSearchRuns(input: $it) {"
    search += " runs { info { runId } } nextPageToken } }"
    ask(search, it={"experimentIds": [experiment], "maxResults": 5, "orderBy": ["start_time ASC"]})
    ask(
        "query q($it: MlflowGetMetricHistoryBulkIntervalInput) { mlflowGetMetricHistoryBulkInterval(input: $it) {"
        " metrics { key value timestamp step runId } } }",
        it={"runIds": [run], "metricKey": "of 1.5"},
    )
    ask(
        "mutation m($it: MlflowSearchDatasetsInput) { mlflowSearchDatasets(input: $it) {"
        " datasetSummaries { experimentId name digest context } } }",
        it={"experimentIds": [experiment]},
    )
    ask(
        "query q($it: MlflowListArtifactsInput) { mlflowListArtifacts(input: $it) {"
        " rootUri files { path isDir fileSize } } }",
        it={"runId": run},
    )
    ask("{ mlflowSearchModelVersions(input: {filter: \"name = 'none'\"}) { modelVersions { name } } }")
    for wrong in (
        "{ nope }",
        "{ test }",
        '{ test(inputString: "a") { nope } }',
        f"{get_run} run }} }}",
        "mutation { test { output } }",
    ):
        ask(wrong)
    ask(f"{get_run} run {{ info {{ runId }} }} }} }}", it={"runId": "0" * 32})
    ask(
        '{ mlflowGetExperiment(input: {experimentId: "1"}) { experiment {'
        + " name {" * 12
        + " name "
        + "}" * 12
        + " } } }"
    )


PROMPT = {
    "prompt_template": "Say {{word}}",
    "prompt_parameters": [{"key": "word", "value": "hello"}],
    "model_route": "chat",
    "model_input": "Say hello",
    "mlflow_version": "1.0.0",
    "model_parameters": [{"key": "temperature", "value": 0.1}],
    "model_output": "hello",
    "model_output_parameters": [{"key": "latency", "value": "100"}],
    "user_id": "ann",
    "start_time": 456,
    "run_name": "lab",
}


def test_runs_of_the_page_for_prompts(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="prompts")["experiment_id"]
    path, whole = "/ajax-api/2.0/mlflow/runs/create-promptlab-run", {"experiment_id": experiment, **PROMPT}
    for count in range(6):
        twin.send("POST", path, dict(list(whole.items())[:count]))
    twin.send("POST", path, {**whole, "experiment_id": "99999"})
    twin.send("POST", path, {**whole, "prompt_parameters": []})
    noted = len(twin.differences)
    run = twin.send("POST", path, whole)["run"]
    # They differ in the tag with the time and the id of the model.
    del twin.differences[noted:]
    for side in (run.ours, run.theirs):
        tags = {tag["key"]: tag["value"] for tag in side["data"]["tags"]}
        (model,) = json.loads(tags.pop("mlflow.log-model.history"))
        assert (model["run_id"], model["artifact_path"], model["flavors"]) == (side["info"]["run_id"], "model", {})
        assert sorted(tags) == ["mlflow.loggedArtifacts", "mlflow.runName", "mlflow.runSourceType"]
        assert side["info"]["status"] == "FINISHED" and side["info"]["start_time"] == 456
        assert {param["key"] for param in side["data"]["params"]} == {"temperature", "model_route", "prompt_template"}
    twin.send("GET", "/get-artifact", {"run_id": run["info"]["run_id"], "path": "eval_results_table.json"})


def test_locations_of_artifacts(twin: Twin) -> None:
    for number, location in enumerate(("mlflow-artifacts:/one", "mlflow-artifacts:///two", "s3://b/x?a=b", "/srv/x")):
        made = twin.post("experiments/create", name=f"located {number}", artifact_location=location)["experiment_id"]
        twin.get("experiments/get", experiment_id=made)
        run = twin.post("runs/create", experiment_id=made, start_time=1, user_id="ann", run_name="one")["run"]["info"]
        if "mlflow" in location:
            files = Pair(*(_find_path(each["artifact_uri"]) for each in (run.ours, run.theirs)))
            twin.send("PUT", files, b"hello")
            twin.send("GET", files, {})
            twin.get("artifacts/list", run_id=run["run_id"])
    unknown = f"/api/2.0/mlflow-artifacts/artifacts/1/{'0' * 32}/artifacts/a.txt"
    twin.send("GET", unknown, {})
    twin.send("PUT", unknown, b"hello")
    twin.send("GET", unknown, {})
    twin.send("DELETE", unknown, {})
    twin.send("GET", "/api/2.0/mlflow-artifacts/artifacts", {"path": f"1/{'0' * 32}/artifacts"})


def _find_path(uri: str) -> str:
    return f"/api/2.0/mlflow-artifacts/artifacts/{uri.partition(':/')[2].lstrip('/')}/a.txt"

"""Calls of MLflow's own tests of registered and logged models, to a real MLflow server and to ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.mlflow_pair import API, Servers, ask_differently, compare, create_run, join, post_all, send_all, start_both
from tests.mlflow_twin import Pair, Twin

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with start_both(tmp_path_factory.mktemp("twins")) as made:
        yield made


@pytest.fixture
def twin(servers: Servers) -> Iterator[Twin]:
    with compare(servers) as made:
        yield made


# Registered models

NEW_NAMES = (
    {"name": None},
    {"name": 5},
    {"name": "a/b"},
    {"name": "a:b"},
    {"name": "n", "tags": "5"},
    {"name": "n", "description": 5},
    {"name": "n", "tags": [{"key": "k" * 251, "value": "x"}]},
    {"name": "n", "tags": [{"key": "../k", "value": "v"}]},
    {"name": ".."},
)
RENAMES = ({"new_name": "m"}, {"new_name": ""}, {}, {"new_name": 5}, {"new_name": "a/b"}, {"new_name": "other"})
ALIASES = (
    *(
        {"alias": alias, "version": "1"}
        for alias in ("champ", "v1", "latest", "Latest", "V2", "5", "", "a b", "x" * 256)
    ),
    {"alias": "champ", "version": "2"},
    {"alias": "z", "version": "99"},
    {"alias": "z", "version": "x"},
    {"version": "1"},
    {"alias": "z"},
    {"alias": 5, "version": "1"},
    {"alias": "number", "version": 1},
)
VERSIONS = ({"version": 1}, {"version": "x"}, {}, {"version": "-1"}, {"version": "1.0"}, {"version": " 1"})
STAGES = (
    {"version": "1", "stage": "production"},
    {"version": "2", "stage": "Production", "archive_existing_versions": True},
    {"version": "2", "stage": "None", "archive_existing_versions": True},
    {"version": "2", "stage": "Production", "archive_existing_versions": "true"},
    {"version": "2", "stage": 5},
    {"version": "3", "stage": "x"},
)
VERSION_FILTERS = (
    "name = 'm' and version_number = 2",
    "name='m' AND version_number >= '1'",
    "name = 'm' and tags.t = '1'",
    "tags.t != '1'",
    "run_id IN ('a', 5)",
    "run_id IN ()",
    "source_path LIKE 'runs:/%'",
    "name != 'x'",
    "nope = 'a'",
    "name = 'a' or name = 'b'",
    "stage = 'x'",
    "metrics.x = 1",
    "name = 'x' AND",
    "name = x",
)


def test_registered_models(twin: Twin) -> None:
    post_all(twin, "registered-models/create", NEW_NAMES)
    for name in ("m", "other"):
        twin.post("registered-models/create", name=name, description="d", tags=[{"key": "a", "value": "1"}])
    # A name may be changed to itself.
    post_all(twin, "registered-models/rename", RENAMES, name="m")
    run = create_run(twin, twin.post("experiments/create", name="registry")["experiment_id"])["run_id"]
    for number in range(3):
        tags = [{"key": "t", "value": str(number)}]
        twin.post("model-versions/create", name="m", source=join(run, "runs:/{0}/m"), run_id=run, tags=tags)
    for call in ALIASES:
        twin.post("registered-models/alias", name="m", **call)
        twin.get("registered-models/alias", name="m", **{key: call[key] for key in call if key != "version"})
    for call in VERSIONS:
        twin.get("model-versions/get", name="m", **call)
        twin.get("model-versions/get-download-uri", name="m", **call)
        twin.post("model-versions/set-tag", name="m", key="a", value="b", **call)
        twin.send("DELETE", f"{API}/model-versions/delete-tag", {"name": "m", "key": "a", **call})
        twin.send("PATCH", f"{API}/model-versions/update", {"name": "m", "description": "x", **call})
    post_all(twin, "model-versions/transition-stage", STAGES, name="m")
    for stages in (["none", "STAGING"], [], "Production", ["x"], ["Archived", "Archived"]):
        twin.post("registered-models/get-latest-versions", name="m", stages=stages)
    for text in VERSION_FILTERS:
        twin.get("model-versions/search", filter=text, order_by=["name", "version_number"])
        twin.get("registered-models/search", filter=text)
    for order in (["version_number DESC"], ["timestamp"], ["name asc", "name desc"], ["name SIDE"], ["status"], [""]):
        twin.get("model-versions/search", filter="name='m'", order_by=order)
        twin.get("registered-models/search", filter="name='m'", order_by=order)
    send_all(twin, "DELETE", "registered-models/alias", ({"alias": "nope"}, {"alias": "champ"}, {}), name="m")
    twin.get("registered-models/get", name="m")


REFUSED_SOURCES = (
    "file://123.456.789.123/path/to/source",
    "file://host/etc",
    "/etc/passwd",
    "path/to/source",
    "mlflow-artifacts:/models",
    "runs:/",
    "runs:",
    "runs:/a/../b",
    "models:/",
    "models:",
    "models:/a/b/c",
)


def test_sources_of_versions(twin: Twin) -> None:
    twin.post("registered-models/create", name="sources")
    experiment = twin.post("experiments/create", name="sources")["experiment_id"]
    run, other = (create_run(twin, experiment) for _ in range(2))
    post_all(twin, "model-versions/create", ({"source": each} for each in REFUSED_SOURCES), name="sources")
    for rest in ("", "/", "/model", "/a b", "/model/..", "///", "/a///b//", "/..../", "/./a"):
        source = join(run["artifact_uri"], "{0}" + rest)
        twin.post("model-versions/create", name="sources", source=source, run_id=run["run_id"])
        twin.post("model-versions/create", name="sources", source=source, run_id=other["run_id"])
        twin.post("model-versions/create", name="sources", source=source)


@pytest.mark.parametrize("named", [{"run_id": "run_id_1"}, {}])
def test_sources_in_another_run(twin: Twin, named: dict[str, str]) -> None:
    """Releases before 3.16 accept them, and so do their tests. Newer ones refuse them."""
    name = f"source in another run {len(named)}"
    twin.post("registered-models/create", name=name)
    call = {"name": name, "source": "runs:/run_id/model", "tags": [{"key": "a", "value": "1"}], **named}
    made = ask_differently(twin, "POST", f"{API}/model-versions/create", call)
    assert made.theirs["error_code"] == "INVALID_PARAMETER_VALUE"
    version = made.ours["model_version"]
    assert (version["version"], version["source"]) == ("1", "runs:/run_id/model")
    assert version.get("run_id", "") == named.get("run_id", "")
    asked = {"name": name, "version": "1"}
    found = ask_differently(twin, "GET", f"{API}/model-versions/get-download-uri", asked).ours
    assert found == {"artifact_uri": "runs:/run_id/model"}


# Logged models

NEW_MODELS = (
    {"experiment_id": ""},
    {"experiment_id": "99999"},
    {"experiment_id": 5},
    *({"name": name} for name in (5, "a/b", "a:b", "x.y", "x%y", 'x"y', "x'y")),
    {"params": "5"},
    {"tags": "5"},
    {"source_run_id": 5},
    {"model_type": 5},
    {"params": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]},
)
STATES = ("LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED", "LOGGED_MODEL_PENDING", "NOPE", 2, "READY", None)
MODEL_TAGS = (
    [{"key": "a", "value": "2"}, {"key": "b", "value": ""}],
    [],
    "5",
    [{"value": "x"}],
    [{"key": "/a", "value": "1"}],
    [{"key": "a", "value": "x" * 9000}],
)
MODEL_FILTERS = (
    "name = 'm0'",
    "name ILIKE 'M%'",
    "attributes.name != 'm0'",
    "model_type = 't1'",
    "params.p != '1'",
    "metrics.acc >= 1 AND name != 'm2'",
    "creation_time > 0",
    "name NOT IN ('m0')",
    "params.p IN ('1','2')",
    "metrics.acc IN (1)",
    "metrics.acc LIKE 'x'",
    "name > 'a'",
    "name = 5",
    "name = 'a' OR name='b'",
    "tag.t = 'x'",
    "attribute.name='m0'",
    "dataset.name = 'd0'",
)
MODEL_ORDERS = (
    [{"field_name": "name", "ascending": False}],
    [{"field_name": "metrics.acc"}],
    [{"field_name": "metrics.loss", "dataset_name": "d0"}],
    [{"field_name": "metrics.loss", "dataset_name": "d1", "dataset_digest": "dg", "ascending": True}],
    [{"field_name": "model_type", "ascending": True}, {"field_name": "name", "ascending": False}],
    # The class of this error is one of its own.
    [{"field_name": "nope"}],
    [{}],
    [{"field_name": "params.p"}],
    "x",
)


def test_logged_models(twin: Twin) -> None:
    experiment = twin.post("experiments/create", name="logged")["experiment_id"]
    post_all(twin, "logged-models", NEW_MODELS, experiment_id=experiment, name="m")
    experiment = twin.post("experiments/create", name="models to find")["experiment_id"]
    run = create_run(twin, experiment)["run_id"]
    models = [_create_model(twin, experiment, run, number) for number in range(3)]
    first = join(models[0], f"{API}/logged-models/{{0}}")
    for status in STATES:
        twin.send("PATCH", first, {"model_id": models[0], "status": status})
    for tags in MODEL_TAGS:
        twin.send("PATCH", join(first, "{0}/tags"), {"tags": tags})
    for key in ("a", "a", "nope"):
        twin.send("DELETE", join(first, f"{{0}}/tags/{key}"), {})
    for value in ("1", "1", "2"):
        given = {"model_id": models[0], "params": [{"key": "q", "value": value}]}
        twin.send("POST", join(first, "{0}/params"), given)
    for outputs in ([{"model_id": models[0], "step": 1}], [], "5"):
        twin.post("runs/outputs", run_id=run, models=outputs)
    twin.post("runs/log-inputs", run_id=run, models=[{"model_id": models[1]}])
    twin.get("runs/get", run_id=run)
    twin.send("GET", first, {})
    post_all(twin, "logged-models/search", ({"filter": each} for each in MODEL_FILTERS), experiment_ids=[experiment])
    post_all(twin, "logged-models/search", ({"order_by": each} for each in MODEL_ORDERS), experiment_ids=[experiment])
    twin.post("registered-models/create", name="of a logged model")
    source = join(models[1], "models:/{0}")
    for named in ({"model_id": models[1]}, {"model_id": models[1], "run_id": run}, {"model_id": models[2]}, {}):
        twin.post("model-versions/create", name="of a logged model", source=source, **named)
    twin.get("model-versions/get", name="of a logged model", version="1")
    twin.get("model-versions/search", filter="name = 'of a logged model'", order_by=["version_number"])
    twin.send("GET", join(models[1], f"{API}/logged-models/{{0}}"), {})
    twin.send("DELETE", first, {})
    twin.send("GET", first, {})
    twin.post("logged-models/search", experiment_ids=[experiment])


def _create_model(twin: Twin, experiment: Pair, run: Pair, number: int) -> Pair:
    made = twin.post(
        "logged-models",
        experiment_id=experiment,
        name=f"m{number}",
        model_type=f"t{number % 2}",
        source_run_id=run,
        params=[{"key": "p", "value": str(number)}],
        tags=[{"key": "t", "value": "x"}],
    )
    model = made["model"]["info"]["model_id"]
    of_data = {"dataset_name": f"d{number % 2}", "dataset_digest": "dg"}
    metrics = [
        {"key": "acc", "value": number, "timestamp": 5, "step": number, "model_id": model},
        {"key": "loss", "value": 9 - number, "timestamp": 6, "step": 1, "model_id": model, **of_data},
    ]
    twin.post("runs/log-batch", run_id=run, metrics=metrics)
    return model

"""The studio's pages of models and services, in a browser, with a real scoring service."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.conftest import until
from tests.studio import Studio, run_studio
from tests.studio_team import ATTACK, ask, use_workspace

from trainmaster import AciWebservice, Environment, Experiment, InferenceConfig, LocalWebservice, Model, Workspace

SCORE = """
import json
import numpy
from azureml.core.model import Model
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema

def init():
    global weight
    with open(Model.get_model_path("churn")) as file:
        weight = json.load(file)["weight"]

@input_schema("features", NumpyParameterType(numpy.array([[0.4, 12.0, 3.0]])))
@input_schema("threshold", StandardPythonParameterType(0.5))
@input_schema("customer", StandardPythonParameterType({"plan": "monthly", "active": True}))
def run(features, threshold, customer):
    print("scoring", len(features), customer["plan"])
    scores = (features.sum(axis=1) * weight).round(3)
    return {"scores": scores.tolist(), "churns": (scores > threshold).tolist(), "plan": customer["plan"]}
"""
PLAIN = "def init():\n    pass\n\ndef run(data):\n    return {'given': data}\n"
PARITY = {"max_absolute": 1.2e-7, "max_relative": 3e-7, "tolerance": 1e-5, "batches": [4, 1]}
FACTS = {
    "opset": 17,
    "framework": "ScikitLearn",
    "framework_version": "1.5",
    "exporter": "skl2onnx 1.17",
    "converted_from": "churn:1",
    "inputs": [{"name": ATTACK, "type": "float32", "shape": ["batch", 3]}],
    "outputs": [{"name": "probabilities", "type": "float32", "shape": ["batch", 2]}],
    "parity": PARITY,
}


def prepare(studio: Studio, folder: Path) -> None:
    """Register models of a run, and deploy one twice: with a key and a description of its input, and without both."""
    code = folder / "scoring"
    code.mkdir()
    (code / "score.py").write_text(SCORE)
    (code / "plain.py").write_text(PLAIN)
    (folder / "model.json").write_text(json.dumps({"weight": 0.05}))
    (folder / "model.onnx").write_text("no graph")
    environment = Environment("own")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = sys.executable
    with use_workspace(studio, "contributor", folder / "cache") as workspace:
        _register(workspace, folder)
        model = Model(workspace, "churn", version=2)
        described = InferenceConfig("score.py", source_directory=str(code), environment=environment)
        secured = AciWebservice.deploy_configuration(auth_enabled=True, description=ATTACK, tags={"stage": ATTACK})
        plain = InferenceConfig("plain.py", source_directory=str(code), environment=environment)
        services = [
            Model.deploy(workspace, "churn-scoring", [model], described, secured),
            Model.deploy(workspace, "plain-scoring", [model], plain, LocalWebservice.deploy_configuration()),
        ]
        for service in services:
            service.wait_for_deployment()


def _register(workspace: Workspace, folder: Path) -> None:
    run = Experiment(workspace, "churn-training").start_logging()
    run.display_name = f"gradient boosting {ATTACK}"
    run.upload_file("outputs/model.json", str(folder / "model.json"))
    run.complete()
    run.register_model(
        "churn", "outputs/model.json", tags={"stage": "trial", "note": ATTACK}, model_framework="ScikitLearn"
    )
    run.register_model("churn", "outputs/model.json", tags={"stage": "live"}, model_framework="ScikitLearn")
    onnx = Model.register(workspace, str(folder / "model.onnx"), "churn-onnx", description=ATTACK)
    onnx.add_facts(FACTS)


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("models")
    with run_studio(folder / "root") as studio:
        prepare(studio, folder)
        yield studio


def test_models_are_listed_and_searched(studio: Studio) -> None:
    page = studio.open("models", "reader")
    rows = page.get_by_role("group", name="Registered models").get_by_role("row")
    expect(rows).to_have_count(3)
    page.get_by_role("searchbox", name="Search models").fill("stage=live")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("search=stage"))
    page.get_by_role("link", name="churn", exact=True).click()
    expect(page.get_by_role("heading", name="churn", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Version")).to_have_value("2")


def test_a_model_shows_where_it_comes_from_and_what_uses_it(studio: Studio) -> None:
    page = studio.open("models/churn/1", "reader")
    origin = page.get_by_role("region", name="Where it comes from")
    expect(origin.get_by_role("link", name=f"gradient boosting {ATTACK}")).to_be_visible()
    expect(origin).to_contain_text("no service")
    # Whoever has registered it on the server, whatever the account of the own machine is called.
    expect(page.get_by_role("region", name="About")).to_contain_text("by contributor")
    expect(page.get_by_role("region", name="Tags")).to_contain_text(ATTACK)
    # A reader neither changes nor deletes.
    expect(page.get_by_role("button", name="Add to tags")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete this version")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download model.json").click()
    assert download.value.suggested_filename == "model.json"
    assert json.loads(Path(download.value.path()).read_text()) == {"weight": 0.05}
    page.get_by_role("combobox", name="Version").select_option("2")
    expect(origin.get_by_role("link", name="churn-scoring")).to_be_visible()
    expect(page.get_by_label("Anywhere", exact=True)).to_contain_text('Model(workspace, "churn", version=2)')


def test_the_conversion_to_onnx_is_shown(studio: Studio) -> None:
    page = studio.open("models/churn-onnx", "reader")
    part = page.get_by_role("region", name="ONNX")
    expect(part).to_contain_text("Largest difference 1.2e-7 (3e-7 of the largest value), tolerance 1e-5")
    expect(part).to_contain_text("Compared with the original model on batches of 4, 1")
    expect(part.get_by_role("row", name="Input")).to_contain_text(f"{ATTACK}float32batch × 3")
    part.get_by_role("link", name="churn:1").click()
    expect(page.get_by_role("combobox", name="Version")).to_have_value("1")


def test_tags_are_edited_in_place(studio: Studio) -> None:
    page = studio.open("models/churn/1", "contributor")
    tags = page.get_by_role("region", name="Tags")
    tags.get_by_role("button", name="Add to tags").click()
    tags.get_by_label("Name").fill("owner")
    tags.get_by_label("Value").fill("ann & <b>bob</b>")
    tags.get_by_role("button", name="Add", exact=True).click()
    expect(tags).to_contain_text("ann & <b>bob</b>")
    tags.get_by_role("button", name="Remove stage").click()
    expect(tags).not_to_contain_text("trial")
    kept = ask(studio, "GET", "/models/churn/versions/1")["tags"]
    assert kept == {"note": ATTACK, "owner": "ann & <b>bob</b>"}


def test_an_owner_deletes_a_version_but_none_that_is_deployed(studio: Studio) -> None:
    page = studio.open("models/churn/2", "owner")
    page.get_by_role("button", name="Delete this version").click()
    page.get_by_role("button", name="Delete the version").click()
    expect(page.get_by_text("model churn:2 cannot be deleted or renamed: it is deployed")).to_be_visible()
    page.goto("/w/team/models/churn-onnx")
    page.get_by_role("button", name="Delete this version").click()
    page.get_by_role("button", name="Delete the version").click()
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="churn-onnx")).to_have_count(0)


def _open_try(studio: Studio, who: str, name: str = "churn-scoring") -> Page:
    page = studio.open("services", who)
    page.get_by_role("link", name=name).click()
    page.get_by_role("link", name="Try it").click()
    return page


def test_a_service_is_tried_with_fields_made_of_its_description(studio: Studio) -> None:
    page = _open_try(studio, "contributor")
    # The sample of the scoring script is filled in.
    expect(page.get_by_label("features, row 1, 1")).to_have_value("12")
    answer = page.get_by_role("region", name="Answer")
    page.get_by_role("button", name="Send").click()
    expect(answer).to_contain_text("200 OK")
    expect(page.get_by_label("Body of the answer")).to_contain_text('"scores": [ 0.77 ]', use_inner_text=True)
    page.get_by_role("button", name="Add a row").click()
    page.get_by_label("features, row 2, 0").fill("-")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_label("features, row 2, 0").fill("-15")
    page.get_by_label("customer › plan").fill(ATTACK)
    page.get_by_label("customer › active").select_option("no")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("Body of the answer")).to_contain_text(ATTACK)
    expect(page.get_by_label("Body of the answer")).to_contain_text("false")


def test_raw_json_is_an_alternative_and_errors_are_shown(studio: Studio) -> None:
    page = _open_try(studio, "contributor")
    page.get_by_role("button", name="Edit as JSON").click()
    raw = page.get_by_role("textbox", name="Request as JSON")
    raw.fill("{")
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    raw.fill('{"features": [[1, 2, 3, 4]], "threshold": 1, "customer": {"plan": "x", "active": true}}')
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("400 The request is wrong")
    raw.fill('{"features": [[1, 2, 3]], "threshold": 1, "customer": {"plan": "yearly", "active": true}}')
    page.get_by_role("button", name="Edit in fields").click()
    expect(page.get_by_label("customer › plan")).to_have_value("yearly")


def test_a_service_without_a_description_takes_json(studio: Studio) -> None:
    page = _open_try(studio, "reader", "plain-scoring")
    page.get_by_role("textbox", name="Request as JSON").fill('{"a": 1}')
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("200 OK")
    # This service needs no key, and a reader has none.
    page.get_by_role("link", name="Code", exact=True).click()
    expect(page.get_by_text("The service needs no key")).to_be_visible()


def test_a_reader_needs_the_key_of_a_service(studio: Studio) -> None:
    page = _open_try(studio, "reader")
    page.get_by_label("Key of the service").fill("wrong")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("401 The key is missing or wrong")
    page.get_by_label("Key of the service").fill(ask(studio, "GET", "/services/churn-scoring/keys")["primary"])
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("200 OK")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("link", name="Code", exact=True).click()
    expect(page.get_by_label("Python, from anywhere", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Show the keys")).to_have_count(0)


def test_traffic_and_logs_are_live(studio: Studio) -> None:
    page = studio.open("services/churn-scoring", "contributor")
    traffic = page.get_by_role("region", name="Traffic")
    expect(traffic).to_contain_text("1 of 1")
    logs = studio.open("services/churn-scoring/logs", "reader")
    expect(logs.get_by_label("Log of the service")).to_contain_text("churn-scoring")
    before = ask(studio, "GET", "/services/churn-scoring/traffic")["requests"]
    with_key = {"Authorization": f"Bearer {ask(studio, 'GET', '/services/churn-scoring/keys')['primary']}"}
    port = ask(studio, "GET", "/services/churn-scoring")["port"]
    body = {"features": [[1, 2, 3]], "threshold": 1, "customer": {"plan": f"plan-{before} {ATTACK}", "active": True}}
    for _ in range(5):
        answer = page.request.post(f"http://127.0.0.1:{port}/score", data=body, headers=with_key)
        assert answer.ok, answer.text()
    until(lambda: ask(studio, "GET", "/services/churn-scoring/traffic")["requests"] == before + 5)
    expect(traffic).to_contain_text(f"{before + 5} in all")
    expect(traffic).to_contain_text(re.compile(r"Median latency[\d.]+ m?s"))
    expect(logs.get_by_label("Log of the service")).to_contain_text(f"scoring 1 plan-{before} {ATTACK}")
    # The page that shows the counters does not fill the log.
    expect(logs.get_by_label("Log of the service")).not_to_contain_text("/metrics")


def test_keys_are_shown_on_request_and_replaced(studio: Studio) -> None:
    page = studio.open("services/churn-scoring/use", "contributor")
    old = ask(studio, "GET", "/services/churn-scoring/keys")
    page.get_by_role("button", name="Show the keys").click()
    expect(page.get_by_text(old["secondary"])).to_be_visible()
    page.get_by_role("button", name="Replace the secondary key").click()
    page.get_by_role("button", name="Replace the key").click()
    expect(page.get_by_text(old["secondary"])).to_have_count(0)
    new = ask(studio, "GET", "/services/churn-scoring/keys")
    assert new["primary"] == old["primary"] and len(new["secondary"]) >= 32
    expect(page.get_by_text(new["secondary"])).to_be_visible()
    expect(page.get_by_label("curl, on the machine of the server", exact=True)).to_contain_text(
        "Authorization: Bearer $KEY"
    )


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_serious_finding_of_axe(studio: Studio, theme: str, width: int) -> None:
    page = studio.open("models", theme="dark" if theme == "dark" else "light", width=width)
    for path, seen in (
        ("models", "Newest version"),
        ("models/churn", "How to load it"),
        ("services", "Key needed"),
        ("services/churn-scoring", "Median latency"),
        ("services/churn-scoring/try", "threshold"),
        ("services/churn-scoring/logs", "Follow"),
        ("services/churn-scoring/use", "Call it"),
    ):
        page.goto(f"/w/team/{path}")
        expect(page.get_by_text(seen).first).to_be_visible()
        studio.check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_service_is_deleted_after_a_question_and_empty_pages_say_what_to_do(studio: Studio) -> None:
    page = studio.open("services/plain-scoring", "contributor")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the service").click()
    expect(page.get_by_role("heading", name="Services", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="plain-scoring")).to_have_count(0)
    if studio.server.request("GET", "/api/v1/workspaces/empty").status != 200:
        studio.server.create_workspace("empty")
    page = studio.open("/w/empty/services")
    expect(page.get_by_text("Model.deploy(")).to_be_visible()
    page.get_by_role("link", name="Models").click()
    expect(page.get_by_text("run.register_model(")).to_be_visible()

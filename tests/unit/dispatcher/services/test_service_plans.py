"""From the record of a service to the plan of its supervisor."""

from __future__ import annotations

from pathlib import Path

from trainmaster.dispatcher.services.making import plan_of, variables
from trainmaster.environments.prefix import Prefix
from trainmaster.shared.folders import ServiceFolder
from trainmaster.shared.service_spec import ServiceCode, ServiceRecord, ServiceSpec

IDENTITY = {"name": "ws", "subscription_id": "s", "resource_group": "g"}
FOUND = Prefix("/e/bin/python", {"PATH": "/e/bin:/bin", "VIRTUAL_ENV": "/e"}, "/e")


def spec(**settings: object) -> ServiceSpec:
    return ServiceSpec(ServiceCode("abc", "in/score.py"), **settings)  # type: ignore[arg-type]


def test_every_setting_reaches_the_plan() -> None:
    wanted = spec(
        models=("m:3",),
        replicas=4,
        auth_enabled=True,
        timeout_ms=1500,
        max_body_mb=0.5,
        cors_origins=("*",),
        max_batch_size=8,
        max_batch_wait_ms=2.0,
    )
    record = ServiceRecord("mine", "AKS", wanted, "t", port=4711, host="0.0.0.0", description="about")
    plan = plan_of(record, wanted, 5, ServiceFolder(Path("/w/services/mine")), FOUND, "/kit", IDENTITY)
    assert (plan.folder, plan.generation, plan.host, plan.port) == ("/w/services/mine", 5, "0.0.0.0", 4711)
    assert (plan.replicas, plan.python) == (4, "/e/bin/python")
    assert plan.models_root == "/w/services/mine/5/azureml-models"
    scoring = plan.scoring
    assert (scoring.code, scoring.entry_script) == ("/w/services/mine/5/code", "in/score.py")
    assert scoring.model_dir == "/w/services/mine/5/azureml-models/m/3"
    assert scoring.keys_file == "/w/services/mine/keys.json" and scoring.cors_origins == ("*",)
    assert (scoring.batching.max_batch_size, scoring.batching.max_latency_ms) == (8, 2.0)
    assert (scoring.limits.seconds, scoring.limits.body_bytes) == (1.5, 512 * 1024)
    assert (scoring.description, scoring.version) == ("about", "5")


def test_the_script_works_in_the_parent_of_its_source_folder() -> None:
    wanted = ServiceSpec(ServiceCode("s", "x/score.py", source_directory="/home/me/src"))
    record = ServiceRecord("mine", "Local", wanted, "t")
    scoring = plan_of(record, wanted, 1, ServiceFolder(Path("/w/services/mine")), FOUND, "/kit", IDENTITY).scoring
    assert (scoring.working_folder, scoring.code) == ("/w/services/mine/1/code", "/w/services/mine/1/code/src")


def test_without_keys_there_is_no_file_of_keys() -> None:
    record = ServiceRecord("mine", "Local", spec(), "t")
    plan = plan_of(record, spec(), 1, ServiceFolder(Path("/w/services/mine")), FOUND, "/kit", IDENTITY)
    assert plan.scoring.keys_file == "" and plan.port == 0
    assert plan.scoring.model_dir == "/w/services/mine/1/azureml-models"


def test_what_a_script_sees() -> None:
    asked = {"PATH": "/mine", "COLOUR": "red", "PYTHONPATH": "/more"}
    seen = variables(spec(environment_variables=asked, inherited_variables={"HOME": "/h"}), FOUND, "/kit", IDENTITY)
    assert seen["PATH"] == "/e/bin:/bin" and seen["VIRTUAL_ENV"] == "/e" and seen["HOME"] == "/h"
    assert seen["COLOUR"] == "red" and seen["PYTHONPATH"] == "/kit:/more"
    assert seen["TRAINMASTER_WORKSPACE"] == "ws" == seen["AZUREML_ARM_WORKSPACE_NAME"]
    assert "TRAINMASTER_RUN_ID" not in seen

"""v1's settings of services, and what is refused."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trainmaster import AciWebservice, AksWebservice, ContainerImage, Environment, InferenceConfig, LocalWebservice
from trainmaster.dispatcher.services import making
from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.backend.local import scoring
from trainmaster.sdk.services import deploying, environment
from trainmaster.sdk.services.deploying import model_name_of
from trainmaster.sdk.services.environment import with_server
from trainmaster.sdk.v1 import deployment_files
from trainmaster.shared import service_spec as spec
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec
from trainmaster.shared.service_spec import check_service_name

GOOD = "def init():\n    pass\n\ndef run(data):\n    return data\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "score.py").write_text(GOOD)
    return tmp_path


@pytest.mark.parametrize("name", ["abc", "a" * 32, "my-service-1"])
def test_names(name: str) -> None:
    check_service_name(name)


@pytest.mark.parametrize("name", ["ab", "a" * 33, "-ab", "ab-", "9abc", "aBc", "a_c", "a c", "", None, 7, "abc\n"])
def test_names_that_cannot_be(name: Any) -> None:
    with pytest.raises(WebserviceException, match="cannot be the name of a service"):
        check_service_name(name)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"cpu_cores": 0}, "cpu_cores must be a number above 0"),
        ({"memory_gb": -1}, "memory_gb must be a number above 0"),
        ({"memory_gb": "1"}, "memory_gb must be a number above 0"),
        ({"tags": "a"}, "tags must be a dict"),
        ({"primary_key": "short"}, "primary_key cannot be used as a key"),
        ({"primary_key": "a long\nkey with lines"}, "primary_key cannot be used as a key"),
        ({"auth_enabled": False, "primary_key": "12345678"}, "keys have no effect"),
        ({"ssl_enabled": True}, "ssl_enabled=True needs ssl_cert_pem_file, ssl_key_pem_file, ssl_cname"),
        ({"port": 0}, "port must be a whole number from 1 to 65535"),
        ({"port": True}, "port must be a whole number"),
        ({"replicas": 0}, "replicas must be a whole number"),
        ({"cors_origins": "*"}, "cors_origins must be a list"),
        ({"max_batch_wait_ms": -1}, "max_batch_wait_ms must not be negative"),
        ({"scoring_timeout_ms": 0}, "scoring_timeout_ms must be a whole number"),
        ({"max_body_mb": float("nan")}, "max_body_mb must be a number above 0"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(WebserviceException, match=what):
        AciWebservice.deploy_configuration(**settings)


def test_tls_says_what_to_do(here: Path) -> None:
    (here / "pem").write_text("x")
    with pytest.raises(WebserviceException, match="HTTP only"):
        AciWebservice.deploy_configuration(
            ssl_enabled=True, ssl_cert_pem_file="pem", ssl_key_pem_file="pem", ssl_cname="a.example"
        )
    with pytest.raises(WebserviceException, match="'no-file' does not exist"):
        AciWebservice.deploy_configuration(
            ssl_enabled=True, ssl_cert_pem_file="no-file", ssl_key_pem_file="pem", ssl_cname="a.example"
        )


def test_keys_are_on_where_v1_had_them_on() -> None:
    assert not AciWebservice.deploy_configuration().wants_keys
    assert AciWebservice.deploy_configuration(auth_enabled=True).wants_keys
    assert AciWebservice.deploy_configuration(primary_key="12345678").wants_keys
    assert AksWebservice.deploy_configuration().wants_keys
    assert not AksWebservice.deploy_configuration(auth_enabled=False).wants_keys
    assert not LocalWebservice.deploy_configuration().wants_keys


def test_keys_are_in_no_record() -> None:
    config = AksWebservice.deploy_configuration(primary_key="very-secret-1", secondary_key="very-secret-2", cpu_cores=1)
    assert "very-secret" not in json.dumps(config.settings())
    assert config.settings()["cpu_cores"] == 1


def test_replicas_of_a_cluster() -> None:
    assert AksWebservice.deploy_configuration(num_replicas=3).for_spec()["replicas"] == 3
    scaled = AksWebservice.deploy_configuration(autoscale_min_replicas=2, autoscale_max_replicas=5)
    with pytest.warns(UserWarning, match="does not follow the load"):
        deploying.check_configuration(scaled, None)
    assert scaled.for_spec()["replicas"] == 2
    for settings, what in (
        ({"num_replicas": 2, "autoscale_enabled": True}, "cannot be given together"),
        ({"autoscale_enabled": False, "autoscale_min_replicas": 1}, "have no effect"),
        ({"autoscale_min_replicas": 3, "autoscale_max_replicas": 2}, "is more than"),
        ({"token_auth_enabled": True}, "no tokens"),
        ({"token_auth_enabled": True, "auth_enabled": True}, "cannot both be set"),
        ({"gpu_cores": 0}, "gpu_cores"),
    ):
        with pytest.raises(WebserviceException, match=what):
            AksWebservice.deploy_configuration(**settings)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"entry_script": "none.py"}, "'none.py' does not exist"),
        ({"entry_script": ""}, "must be the path of the scoring script"),
        ({"entry_script": None}, "must be the path of the scoring script"),
        ({"entry_script": "score.txt"}, "is not a Python script"),
        ({"entry_script": "wrong.py"}, r"wrong.py is not valid Python in line 1\n(.*\n)+ +def init\(:\n"),
        ({"entry_script": "score.py", "runtime": "R"}, "runtime must be one of python, spark-py"),
        ({"entry_script": "score.py", "runtime": "spark-py"}, "does not support Spark"),
        ({"entry_script": "score.py", "conda_file": "none.yml"}, "conda_file 'none.yml' does not exist"),
        ({"entry_script": "score.py", "cuda_version": "11"}, "cuda_version must be one of"),
        ({"entry_script": "score.py", "source_directory": "none"}, "source_directory 'none' is not a folder"),
        ({"entry_script": "../score.py", "source_directory": "inner"}, "is not inside source_directory"),
        ({"entry_script": "score.py", "environment": "mine"}, "environment must be an Environment"),
        ({"entry_script": "score.py", "environment": Environment("e"), "runtime": "python"}, "runtime cannot be given"),
        (
            {"entry_script": "score.py", "extra_docker_file_steps": "none"},
            "extra_docker_file_steps 'none' does not exist",
        ),
    ],
)
def test_scripts_and_packages_that_cannot_be(here: Path, settings: dict[str, Any], what: str) -> None:
    (here / "wrong.py").write_text("def init(:\n")
    (here / "score.txt").write_text(GOOD)
    (here / "inner").mkdir()
    with pytest.raises(WebserviceException, match=what):
        InferenceConfig(**settings)


def test_an_image_that_is_not_used_is_said(here: Path) -> None:
    with pytest.warns(UserWarning, match="base_image 'python:3.12' is not used"):
        InferenceConfig("score.py", runtime="python", base_image="python:3.12")
    in_image = Environment.from_docker_image("mine", "python:3.12")
    with pytest.raises(WebserviceException, match="'mine' is an image"):
        InferenceConfig("score.py", environment=in_image).service_environment()


def test_image_configurations_that_cannot_be(here: Path) -> None:
    with pytest.raises(WebserviceException, match="runtime is missing"):
        ContainerImage.image_configuration("score.py", None)
    with pytest.raises(WebserviceException, match="dependencies must be a list"):
        ContainerImage.image_configuration("score.py", "python", dependencies="beside.py")
    with pytest.raises(WebserviceException, match=r"'beside\.py' does not exist"):
        ContainerImage.image_configuration("score.py", "python", dependencies=["beside.py"])


def test_the_environment_of_a_service() -> None:
    own = EnvironmentSpec(user_managed=True, interpreter="/usr/bin/python3")
    assert with_server(own) == own
    assert with_server(EnvironmentSpec(pip_packages=("Uvicorn==0.30.1", "numpy"))).pip_packages[:2] == (
        "Uvicorn==0.30.1",
        "numpy",
    )
    with pytest.warns(UserWarning, match=r"requests Python 3\.6, and services need 3\.7 or newer"):
        found = with_server(EnvironmentSpec(python_version="3.6"))
    assert (found.python_version, found.newer_python) == ("3.7", True)
    assert with_server(EnvironmentSpec(python_version="3.8")).newer_python is False
    with pytest.raises(WebserviceException, match=r"Python 3\.7 or newer"):
        with_server(EnvironmentSpec(python_version="2.7"))
    with pytest.raises(WebserviceException, match="cannot run in the image"):
        with_server(EnvironmentSpec(container=ContainerSpec("python:3.12")))


@pytest.mark.parametrize(
    ("packages", "made_with", "python"),
    [
        (("numpy",), "", ""),
        (("requests==2.0", "Scikit_Learn"), "3.8", "3.8"),
        (("numpy",), "3.6", "3.7"),
        (("requests",), "3.11", "3.7"),
        (("numpy", "scikit-learn=0.20.3"), "3.11", "3.7"),
    ],
)
def test_the_python_that_a_model_comes_from(packages: tuple[str, ...], made_with: str, python: str) -> None:
    """An older release of a package cannot read what a newer one wrote; a release that is named decides by itself."""
    spec = EnvironmentSpec(python_version="3.6", conda_packages=packages)
    with pytest.warns(UserWarning, match=r"requests Python 3\.6, and services need 3\.7 or newer"):
        found = with_server(spec, EnvironmentSpec(python_version=made_with))
    assert (found.python_version, found.newer_python, found.conda_packages) == (python, python == "3.7", packages)


def test_the_releases_that_a_model_comes_from() -> None:
    made_in = EnvironmentSpec(python_version="3.7", pip_packages=("scikit-learn==0.20.3", "numpy<1.20", "pandas"))
    asked = EnvironmentSpec(conda_packages=("scikit-learn",), pip_packages=("numpy", "pandas-schema>1", "requests"))
    found = with_server(asked, made_in)
    assert (found.python_version, found.conda_packages) == ("3.7", ())
    assert found.pip_packages[:4] == ("numpy<1.20", "pandas-schema>1", "requests", "scikit-learn==0.20.3")
    from_conda = replace(made_in, pip_packages=(), conda_packages=("scikit-learn=0.20.3", "numpy<1.20", "scipy"))
    assert with_server(EnvironmentSpec(conda_packages=("scikit-learn",)), from_conda).conda_packages == (
        "scikit-learn=0.20.3",
        "numpy<1.20",
    )
    # What the service names itself counts.
    named = EnvironmentSpec(python_version="3.8", conda_packages=("scikit-learn",))
    assert with_server(named, made_in).conda_packages == ("scikit-learn",)
    assert with_server(EnvironmentSpec(pip_packages=("numpy==1.19",)), made_in).python_version == ""
    notebook = EnvironmentSpec(pip_packages=("numpy",))
    assert with_server(notebook, EnvironmentSpec()) == with_server(notebook)


@pytest.mark.parametrize(
    ("path", "name"), [("a/model.pkl", "model.pkl"), ("a b.onnx", "a-b.onnx"), ("größe", "gr-e"), ("...x", "x")]
)
def test_names_of_files_that_are_deployed_directly(path: str, name: str) -> None:
    assert model_name_of(Path(path)) == name


def test_v1_files(here: Path) -> None:
    inference = {
        "entryScript": "score.py",
        "runtime": "python",
        "condaFile": "env.yml",
        "sourceDirectory": None,
        "enableGpu": False,
        "baseImage": None,
    }
    (here / "env.yml").write_text("dependencies:\n- pip:\n  - numpy\n")
    (here / "ic.json").write_text(json.dumps(inference))
    config = deployment_files.read_inference_config("ic.json")
    environment = config.service_environment()
    assert environment is not None and environment.to_spec().pip_packages == ("numpy",)
    whole = {"entryScript": "score.py", "environment": {"name": "e", "python": {"condaDependencies": _packages()}}}
    (here / "ic.json").write_text(json.dumps(whole))
    assert deployment_files.read_inference_config("ic.json").environment.to_spec().pip_packages == ("scipy",)
    (here / "dc.json").write_text(
        json.dumps(
            {
                "computeType": "AKS",
                "autoScaler": {"autoscaleEnabled": False},
                "numReplicas": 2,
                "containerResourceRequirements": {"cpu": 0.5, "memoryInGB": 1.0},
                "authEnabled": True,
                "scoringTimeoutMs": 1000,
                "livenessProbeRequirements": {"periodSeconds": 10},
            }
        )
    )
    deployment = deployment_files.read_deployment_config("dc.json")
    assert (deployment.compute_type, deployment.replicas, deployment.scoring_timeout_ms) == ("AKS", 2, 1000)
    (here / "dc.json").write_text('{"computeType": "local", "port": 32267}')
    assert deployment_files.read_deployment_config("dc.json").port == 32267


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"computeType": "moon"}', "must be local, aci or aks"),
        ('{"computeType": "local", "cpu": 1}', "unknown keys: cpu"),
        ('{"computeType": "aci", "containerResourceRequirements": 3}', "must be an object"),
    ],
)
def test_files_that_cannot_be(here: Path, text: str, what: str) -> None:
    (here / "dc.json").write_text(text)
    with pytest.raises(WebserviceException, match=what):
        deployment_files.read_deployment_config("dc.json")
    with pytest.raises(WebserviceException, match="cannot be read"):
        deployment_files.read_deployment_config("none.json")


def _packages() -> dict[str, Any]:
    return {"dependencies": [{"pip": ["scipy"]}]}


@pytest.mark.parametrize("module", [deploying, scoring, environment, making, spec])
def test_examples_in_docstrings(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed

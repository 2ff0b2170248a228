"""Models with a real dispatcher: registering, finding, labels, jobs, the command line, crowds and races."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.backends import folder_of, opening_code
from tests.conftest import until
from tests.integration.test_runtime_pythons import pythons

from trainmaster import Dataset, Environment, Experiment, InferenceConfig, LocalWebservice, Model
from trainmaster.cli.entry import run as run_command
from trainmaster.environments.kit import ensure_kit
from trainmaster.job.errors import (
    ModelNotFoundException,
    ModelPathNotFoundException,
    UserErrorException,
    WebserviceException,
)
from trainmaster.job.script.resource_configuration import ResourceConfiguration
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.serialization import to_plain
from trainmaster.snapshots.model_contents import Contents

BACKENDS = ("local", "server")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_text("weights")
    return path


def blobs(workspace):
    return {path.name for path in (folder_of(workspace) / "models" / ".blobs").glob("??/*")}


def test_a_model_from_its_registration_to_its_end(workspace, file, tmp_path):
    model = Model.register(
        workspace,
        str(file),
        "mnist",
        tags={"stage": "trial", "n": 1},
        properties={"accuracy": 0.9},
        description="small",
        model_framework=Model.Framework.SCIKITLEARN,
        model_framework_version="1.5",
        resource_configuration=ResourceConfiguration(cpu=1, memory_in_gb=0.5),
    )
    assert (model.name, model.version, model.id, model.url) == ("mnist", 1, "mnist:1", "aml://asset/mnist:1")
    assert (model.tags, model.properties) == ({"stage": "trial", "n": "1"}, {"accuracy": "0.9"})
    assert (model.model_framework, model.model_framework_version) == ("ScikitLearn", "1.5")
    assert model.resource_configuration.memory_in_gb == 0.5
    assert model.run is model.run_id is model.experiment_name is None and model.created_time.tzinfo is not None
    # The same again: a version more, nothing stored twice.
    before = blobs(workspace)
    assert Model.register(workspace, file, "mnist").version == 2
    assert blobs(workspace) == before
    assert Model(workspace, "mnist").version == 2 and Model(workspace, "mnist", version="1").tags == model.tags
    assert Model(workspace, id="mnist:1").description == "small"
    assert Model(workspace, "mnist", tags=[["stage", "trial"]]).version == 1
    assert {name: each.version for name, each in workspace.models.items()} == {"mnist": 2}
    assert Model.deserialize(workspace, json.loads(json.dumps(model.serialize()))).id == model.id
    # Labels
    model.update_tags_properties(add_tags={"a": "b"}, remove_tags=["n"], add_properties={"more": 1})
    model.add_facts({"onnx_parity": {"largest_difference": 1e-7}, "inputs": [{"shape": [None, 3]}]})
    with pytest.raises(UserErrorException, match=r"is '0\.9' already"):
        model.add_properties({"accuracy": "1.0"})
    model.update(tags={"only": "this"}, description="other")
    again = Model(workspace, id="mnist:1")
    assert (again.tags, again.description) == ({"only": "this"}, "other") == (model.tags, model.description)
    assert again.properties == {"accuracy": "0.9", "more": "1"}
    assert again.facts == {"onnx_parity": {"largest_difference": 1e-7}, "inputs": [{"shape": [None, 3]}]}
    # Files
    assert Path(model.path).read_text() == "weights" and os.listdir(model.materialise()) == ["model.pkl"]
    assert Model.get_model_path("mnist", _workspace=workspace) == Model(workspace, "mnist").path
    assert model.download(tmp_path / "here") == str(tmp_path / "here" / "model.pkl")
    with pytest.raises(WebserviceException, match="already exists"):
        model.download(tmp_path / "here")
    assert Path(model.download(tmp_path / "here", exist_ok=True)).read_text() == "weights"
    assert list(model.get_sas_urls()) == ["model.pkl"]
    # The end
    model.delete()
    model.delete()
    Model(workspace, "mnist", version=2).verify()
    Model(workspace, "mnist").delete()
    assert blobs(workspace) == set() and Model.list(workspace) == []
    assert Model.register(workspace, file, "mnist").version == 3


def test_bad_input_is_one_clear_error_and_registers_nothing(shared, file, tmp_path):
    before = len(Model.list(shared))
    with pytest.raises(WebserviceException, match="cannot be the name of a model"):
        Model.register(shared, file, "no/name")
    with pytest.raises(ModelPathNotFoundException, match=r"contains: (?:home, )?model\.pkl"):
        Model.register(shared, tmp_path / "nothing", "bad")
    with pytest.raises(WebserviceException, match="needs model_framework"):
        Model.register(shared, file, "bad", model_framework_version="1")
    with pytest.raises(UserErrorException, match="tags must be a dict"):
        Model.register(shared, file, "bad", tags=["a"])
    with pytest.raises(UserErrorException, match="not a reference to a dataset"):
        Model.register(shared, file, "bad", datasets=[("training", "set")])
    with pytest.raises(ModelNotFoundException, match="ModelNotFound: there is no model 'bad'"):
        Model(shared, "bad")
    with pytest.raises(WebserviceException, match="neither was given"):
        Model(shared)
    assert len(Model.list(shared)) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../../x"},
        {"name": 7},
        {"manifest": "../../../etc/passwd"},
        {"key": ""},
        {"key": "k" * 65},
        {"unknown": 1},
        {"tags": {"a": 1}},
        {"framework": "f" * 256},
        {"run_id": "nothing"},
    ],
)
def test_garbage_on_the_socket_registers_nothing(shared, wrong):
    model = {"name": "m", "key": "garbage", "manifest": "0" * 64, "entry": "m"}
    with pytest.raises(Exception) as raised:
        shared.connection.call("models.register", model={**model, **wrong})
    assert "the dispatcher failed" not in str(raised.value)
    assert Model.list(shared, name="m") == []


def test_contents_that_are_not_there_make_no_model(shared):
    model = {"name": "m", "key": "missing", "manifest": "0" * 64, "entry": "m"}
    assert shared.connection.call("models.register", model=model) is None
    assert Model.list(shared, name="m") == []


def test_a_registration_that_is_asked_for_twice_is_one(shared, file):
    model = Model.register(shared, file, "twice")
    plain = to_plain(model._record)
    assert shared.connection.call("models.register", model=plain)["version"] == 1
    assert len(Model.list(shared, name="twice")) == 1


def test_contents_that_go_away_meanwhile_are_kept_again(workspace, file, monkeypatch):
    other = Model.register(workspace, file, "other")
    keep = Contents.keep

    def keep_and_lose(self, *args):
        kept = keep(self, *args)
        monkeypatch.setattr(Contents, "keep", keep)
        # They are known already, and go with the only model that has them.
        other.delete()
        return kept

    monkeypatch.setattr(Contents, "keep", keep_and_lose)
    Model.register(workspace, file, "mine").verify()


def test_filters(workspace, file):
    dataset = Dataset.File.from_files(str(file))
    first = Model.register(workspace, file, "net", tags={"stage": "old"}, datasets=[("training", dataset)])
    Model.register(workspace, file, "net", tags={"stage": "new"}, model_framework="onnx")
    Model.register(workspace, file, "other", properties={"p": "1"})

    def ids(**wanted):
        return [model.id for model in Model.list(workspace, **wanted)]

    assert ids() == ["other:1", "net:2", "net:1"]
    assert ids(latest=True) == ["other:1", "net:2"]
    assert ids(name="net") == ids(tags=["stage"]) == ["net:2", "net:1"]
    assert ids(tags=[["stage", "old"]]) == ids(dataset_id=dataset.id) == ["net:1"]
    assert ids(model_framework="Onnx") == ["net:2"] and ids(properties={"p": "1"}) == ["other:1"]
    assert ids(run_id="nothing") == ids(name="!") == []
    # A dataset without a name is there again.
    (found,) = first.datasets["training"]
    assert found.id == dataset.id and found.to_path() == ["/model.pkl"]
    first.add_dataset_references([("test", dataset), ("training", dataset)])
    assert {purpose: len(each) for purpose, each in Model(workspace, id="net:1").datasets.items()} == {
        "training": 1,
        "test": 1,
    }
    first.update(sample_input_dataset=dataset, resource_configuration=ResourceConfiguration(gpu=1))
    assert first.sample_input_dataset.id == dataset.id and first.sample_output_dataset is None
    assert first.resource_configuration.gpu == 1


JOB = """
import os
from azureml.core import Run
from azureml.core.model import Model, InferenceConfig
from azureml.core.resource_configuration import ResourceConfiguration
from azureml.exceptions import ModelNotFoundException, ModelPathNotFoundException
from azureml.exceptions import UserErrorException, WebserviceException

run = Run.get_context()
workspace = run.experiment.workspace
os.makedirs("outputs/net/deep", exist_ok=True)
for name in ("outputs/net/a", "outputs/net/deep/b", "outputs/model.pkl"):
    with open(name, "w") as file:
        file.write(name)
model = run.register_model("net", "outputs/net", tags={"k": 1}, properties={"p": "q"}, description="text",
                           model_framework="PyTorch", model_framework_version="1.0",
                           resource_configuration=ResourceConfiguration(cpu=1))
assert (model.id, model.tags, model.run_id) == ("net:1", {"k": "1"}, run.id), model
assert sorted(os.listdir(model.path)) == ["a", "deep"]
assert run.register_model("net", "./outputs/net/").version == 2
run.upload_file("kept/up.bin", "outputs/model.pkl")
assert run.register_model(model_name="up", model_path="kept/up.bin").id == "up:1"
path = Model.get_model_path("net", version=1)
with open(os.path.join(path, "deep", "b")) as file:
    assert file.read() == "outputs/net/deep/b"
local = Model.register(workspace, "outputs", "local", child_paths=["model.pkl"])
assert os.listdir(local.path) == ["model.pkl"] and local.run_id is None
assert [each.id for each in Model.list(workspace, name="net")] == ["net:2", "net:1"]
model = Model(workspace, "net", version=1)
model.add_tags({"seen": "yes"}); model.remove_tags("k"); model.add_facts({"f": [1]}); model.update(description="new")
model = Model(workspace, id="net:1", tags=["seen"])
assert (model.tags, model.facts, model.description) == ({"seen": "yes"}, {"f": [1]}, "new")
assert sorted(os.listdir(model.download("copy"))) == ["a", "deep"] and not hasattr(model, "nothing")
with open("copy/net/a", "w") as file:
    file.write("a copy may be changed")
assert model.entry == "net" and model.created_time <= model.modified_time and model.created_by
assert model.resource_configuration.cpu == 1 and model.lineage["registered_in"] == run.id
assert repr(model).startswith("Model(workspace=Workspace(name="), model
child = run.child_run("kid")
child.upload_file("f.txt", "outputs/model.pkl")
assert child.register_model("child", "f.txt").run_id == child.id
Model(workspace, "local").delete()
for use, kind, words in (
    (lambda: run.register_model("bad", "outputs/nothing"), ModelPathNotFoundException, "outputs/net/deep/b"),
    (lambda: run.register_model("b a d", "outputs/net"), Exception, "cannot be the name"),
    (lambda: Model(workspace, "local"), ModelNotFoundException, "Known: "),
    (lambda: Model.get_model_path("local"), ModelNotFoundException, "there is no model 'local'"),
    (lambda: Model.register(workspace, "nowhere", "bad"), ModelPathNotFoundException, "nowhere"),
    (lambda: model.add_properties({"p": "r"}), UserErrorException, "is 'q' already"),
    (lambda: model.download("copy"), WebserviceException, "copy/net already exists"),
    (lambda: model.download("outputs/model.pkl"), WebserviceException, "cannot be copied to outputs/model.pkl"),
    (lambda: model.add_dataset_references([("training", "d1")]), UserErrorException, "is not a reference to a dataset"),
):
    try:
        use()
    except kind as error:
        assert words in str(error), error
    else:
        raise SystemExit(words)
print("ALL OF IT")
"""


@pytest.mark.local_only("it uses the kit in the workspace's folder")
def test_in_a_job_on_the_oldest_python(workspace, tmp_path, notebook_folder):
    """The kit alone, with the variables that a job has."""
    run = Experiment(workspace, "jobs").start_logging()
    code = tmp_path / "code"
    (code / "outputs").mkdir(parents=True)
    folder = WorkspaceFolder(workspace.path)
    (folder.run(run.id).files / "outputs").symlink_to(code / "outputs")
    # Files of a run lie in its folder, or in its working folder: here the one is the other.
    folder.run(run.id).code.symlink_to(code)
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ensure_kit(workspace.path)),
        "TRAINMASTER_RUN_ID": run.id,
        "TRAINMASTER_RUN_FOLDER": str(folder.run(run.id).path),
        "TRAINMASTER_SOCKET": str(folder.socket),
    }
    (code / "job.py").write_text(JOB)
    command = [pythons()[0], "-S", "-W", "error", "job.py"]
    done = subprocess.run(command, cwd=code, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "ALL OF IT" in done.stdout, done.stdout + done.stderr
    Model(workspace, "net", version=1).verify()
    run.complete()


WITH_THE_FULL_PACKAGE = """
from azureml.core import Workspace
model = Model(workspace, "net")
assert model.created_time.year > 2000 and model.lineage["registered_in"] == run.id, model.lineage
assert Model.package is not None and not hasattr(model, "nothing") and not hasattr(Model, "nothing")
other = Workspace(path={path!r})
assert Model.register(other, "outputs/model.pkl", "elsewhere").workspace is other
assert [each.id for each in Model.list(other)] == [Model(other, "elsewhere").id] == ["elsewhere:1"]
assert Model.get_model_path("elsewhere", _workspace=other).startswith({path!r})
assert Model.list(workspace, "elsewhere") == []
"""


@pytest.fixture
def other(workspace):
    """Another workspace than that of the job."""
    return workspace.path


@pytest.mark.local_only("its job opens a second workspace by its folder")
def test_a_run_and_its_models(shared, launch, other):
    """In the job, afterwards, and what the model then knows."""
    run = launch(JOB + WITH_THE_FULL_PACKAGE.format(path=str(other)))
    run.wait_for_completion()
    model = Model(shared, "net", version=1)
    assert model.run.id == run.id == model.run_id and model.experiment_name == "spine"
    assert model.lineage["snapshot_id"] == run.get_snapshot_id() and model.lineage["environment"]
    assert model.lineage["registered_in"] == run.id == Model(shared, "child").lineage["registered_in"]
    assert Model(shared, "child").lineage["snapshot_id"] == run.get_snapshot_id()
    assert sorted(each.name for each in Model.list(shared, run_id=run.id)) == ["net", "net", "up"]
    after = run.register_model("after", "outputs/net", tags={"a": "b"})
    assert after.tags == {"a": "b"} and after.run_id == run.id and "registered_in" not in after.lineage
    assert after.manifest() == model.manifest()
    assert run.register_model(model_name="kept/up.bin".replace("/", "."), model_path="kept").version == 1
    with pytest.raises(ModelPathNotFoundException, match=r"outputs/net/deep/b"):
        run.register_model("nothing")


def test_the_data_of_a_run_are_in_the_lineage(shared, launch, file):
    store = shared.get_default_datastore()
    store.upload_files([str(file)], target_path="sets", show_progress=False)
    dataset = Dataset.File.from_files((store, "sets")).register(shared, "numbers")
    run = launch(
        "import os; open('outputs/m', 'w').close()",
        inputs=[dataset.as_named_input("numbers"), store.path("sets").as_mount()],
    )
    run.wait_for_completion()
    lineage = run.register_model("m", "outputs/m").lineage
    assert lineage["datasets"] == [{"input": "numbers", "id": dataset.id, "name": "numbers", "version": 1}]
    assert lineage["data"] == [f"{store.name}/sets"]


SCORE = """
from azureml.core.model import Model

def init():
    global weights
    with open(Model.get_model_path("served")) as file:
        weights = file.read()

def run(data):
    return weights
"""


@pytest.fixture
def served(workspace, file, tmp_path):
    """How to serve a model, and the model."""
    (tmp_path / "score.py").write_text(SCORE)
    environment = Environment("own")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = sys.executable
    config = InferenceConfig("score.py", source_directory=str(tmp_path), environment=environment)
    return config, Model.register(workspace, file, "served")


@pytest.mark.local_only("it damages files of the workspace's folder")
def test_a_model_that_is_served(workspace, served):
    """It cannot be deleted, a change of its files is noticed, and a damaged one is not deployed."""
    config, model = served
    service = Model.deploy(workspace, "serving", [model], config, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run("{}") == "weights"
    with pytest.raises(WebserviceException, match="it is deployed"):
        model.delete()
    Path(model.path).chmod(0o644)
    Path(model.path).write_text("changed")
    until(lambda: "has changed on disk" in service.get_logs())
    assert service.run("{}") == "weights"
    other = Model.deploy(workspace, "another", [model], config, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="served:1 is damaged"):
        other.wait_for_deployment()
    for each in (other, service):
        each.delete()
    model.delete()
    assert blobs(workspace) == set()


def test_a_profile_measures_and_leaves_no_service(workspace, served, tmp_path):
    config, model = served
    (tmp_path / "requests.csv").write_text("sample_request\n1\n2\n")
    requests = Dataset.Tabular.from_delimited_files(str(tmp_path / "requests.csv"))
    profile = Model.profile(workspace, "small", [model], config, requests, cpu=1.0, memory_in_gb=0.5)
    profile.wait_for_completion(show_output=True)
    details = profile.get_details()
    assert (details["name"], details["totalQueries"], details["successRate"]) == ("small", 100, 1.0)
    assert 0 < details["latencyPercentile50InMs"] <= details["latencyPercentile999InMs"]
    assert details["maxUtilizedMemoryInGB"] > 0.005 and details["recommendedCpu"] >= 0.1
    assert details["recommendedMemoryInGB"] >= details["maxUtilizedMemoryInGB"]
    assert workspace.webservices == {}
    with pytest.raises(UserErrorException, match="must be a TabularDataset"):
        Model.profile(workspace, "small", [model], config, "requests.csv")


REGISTER = """
import sys
from trainmaster import Model, Workspace
print(Model.register(OPENED, sys.argv[1], "crowd").version)
"""


def test_a_crowd_that_registers_one_name(workspace, file):
    command = [sys.executable, "-c", REGISTER.replace("OPENED", opening_code(workspace)), str(file)]
    crowd = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    versions = sorted(int(each.communicate(timeout=120)[0]) for each in crowd)
    assert versions == [1, 2, 3, 4]
    assert len(blobs(workspace)) == 1


@pytest.mark.local_only("on a server it is ten thousand requests each way, a minute of CI")
def test_ten_thousand_files(workspace, tmp_path):
    folder = tmp_path / "many"
    for part in range(100):
        (folder / str(part)).mkdir(parents=True)
        for number in range(100):
            (folder / str(part) / f"{number}.bin").write_text(f"{part} {number}")
    model = Model.register(workspace, folder, "many")
    assert model._record.file_count == 10_000 and len(blobs(workspace)) == 10_000
    model.verify()
    assert Path(model.path, "99", "99.bin").read_text() == "99 99"
    model.delete()
    assert blobs(workspace) == set() and not (folder_of(workspace) / "models" / "many").exists()


@pytest.mark.local_only("it damages files of the workspace's folder")
def test_the_command_line(shared, file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def models(*argv, code=0):
        done = run_command(["models", *argv, "--workspace", shared.backend.location])
        said = capsys.readouterr()
        assert done == code, said.out + said.err
        return json.loads(said.out) if "--json" in argv else said.out + said.err

    made = models("register", "cli", "model.pkl", "--tag", "stage=trial", "--framework", "onnx", "--json")
    assert made["id"] == "cli:1" and made["tags"] == {"stage": "trial"} and made["framework"] == "Onnx"
    assert "cli:2 has 1 file, 7 B." in models("register", "cli", "model.pkl")
    assert [each["id"] for each in models("list", "cli", "--json")] == ["cli:2", "cli:1"]
    assert [each["id"] for each in models("list", "--tag", "stage=trial", "--json")] == ["cli:1"]
    assert "cli" in models("list") and "model.pkl" in models("show", "cli")
    assert models("show", "cli:1", "--json")["files"][0]["size"] == 7
    assert "cli:1: a=b" in models("tag", "cli:1", "a=b", "--remove", "stage")
    assert models("download", "cli", "--output", "out").strip() == "out/model.pkl"
    assert "already exists" in models("download", "cli", "--output", "out", code=2)
    models("download", "cli", "--output", "out", "--overwrite")
    assert models("verify", "cli", "--json") == [{"id": "cli:2", "whole": True, "damages": []}]
    Path(Model(shared, "cli").path).chmod(0o644)
    Path(Model(shared, "cli").path).write_text("changed")
    assert "cli:2 is damaged" in models("verify", code=1)
    # The same contents from their source put it right.
    Model.register(shared, file, "cli")
    assert models("verify", "cli:3", "--json")[0]["whole"]
    assert "models are deleted one version at a time" in models("delete", "cli", code=2)
    assert models("delete", "cli:2", "--json") == {"deleted": "cli:2"}
    assert "there is no version 2" in models("show", "cli:2", code=4)
    assert "there is no model 'nothing'" in models("show", "nothing", code=4)

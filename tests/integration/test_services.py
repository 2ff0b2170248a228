"""Services from deploy to delete, on real supervisors and replicas."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.backends import folder_of
from tests.chaos.wheels import make_wheel
from tests.conftest import dispatcher_handle, open_workspace, stop_dispatcher, until, wait_gone
from tests.service_bench import ASKED, SCORE, Bench, ask, kill, kill_dispatcher, onnx_times, own_python, supervisor_of

from trainmaster import (
    AciWebservice,
    AksWebservice,
    ContainerImage,
    Environment,
    Estimator,
    Experiment,
    Image,
    InferenceConfig,
    LocalWebservice,
    Model,
    Webservice,
    Workspace,
)
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import ModelNotFoundException, WebserviceException, WorkspaceException
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.v1.azure_targets import AksCompute, HDInsightCompute
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("services")
    (place / "project").mkdir()
    with open_workspace("services", place, backend) as ws:
        yield Bench(ws, place / "project")


@pytest.fixture
def alone(workspace: Workspace, tmp_path: Path) -> Bench:
    """A workspace of its own, for tests that kill."""
    (tmp_path / "project").mkdir()
    return Bench(workspace, tmp_path / "project")


def test_the_whole_way(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    service = bench.deploy("whole-way", wait=False)
    assert isinstance(service, LocalWebservice)
    service.wait_for_deployment(show_output=True)
    shown = capsys.readouterr().out
    assert "starting 1 replica" in shown and 'operation "Succeeded"' in shown
    assert service.state == "running" and service.error is None
    assert service.scoring_uri in (f"http://localhost:{service.port}/score", f"http://127.0.0.1:{service.port}/score")
    assert service.run(ASKED)["result"] == [2, 4] == service.run(ASKED.encode())["result"]
    assert ask(service)[1]["result"] == [2, 4]
    until(lambda: "loaded 2 from" in service.get_logs(), what="what its init printed")
    assert "whole-way" in bench.workspace.webservices and "whole-way" in bench.workspace.webservices()
    again = Webservice(bench.workspace, "whole-way")
    assert type(again) is LocalWebservice and again.run(ASKED)["result"] == [2, 4]
    assert again.serialize()["modelIds"] == [service.models[0].id]
    with pytest.raises(WebserviceException, match="cannot be deleted or renamed: it is deployed"):
        service.models[0].delete()
    model = service.models[0]
    folder = folder_of_service(service)
    service.delete()
    assert service.state == "deleted" and not folder.exists()
    assert "whole-way" not in bench.workspace.webservices
    with pytest.raises(WebserviceException, match="is deleted"):
        service.run(ASKED)
    with pytest.raises(WebserviceException, match="WebserviceNotFound"):
        Webservice(bench.workspace, "whole-way")
    model.delete()


def test_an_update_drops_no_request_and_keeps_the_address(bench: Bench) -> None:
    service = bench.deploy("updated", factor=1, deployment_config=LocalWebservice.deploy_configuration(replicas=2))
    port, stop = service.port, threading.Event()
    seen: list[set[int]] = [set(), set(), set()]
    wrong: list[Any] = []

    def hammer(number: int) -> None:
        while not stop.is_set():
            try:
                status, answer = ask(service)
                factor = answer["result"][0] if status == 200 else -1
            except (OSError, http.client.HTTPException) as error:
                status, factor, answer = 0, -1, repr(error)
            if factor not in (1, 2, 3):
                wrong.append((status, answer))
            seen[number].add(factor)

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: all(1 in each for each in seen), what="answers of model 1")
        for factor in (2, 3):
            service.update(models=[bench.model(factor)], wait=True)
            until(lambda factor=factor: all(factor in each for each in seen), what=f"answers of model {factor}")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == [] and seen == [{1, 2, 3}] * 3
    assert service.port == port and service.run(ASKED)["result"] == [3, 6]
    # Of what was served before only the last is kept.
    until(lambda: generations(service) == ["2", "3"], what="the removal of what nobody serves")
    service.delete()


def test_a_broken_script_says_so_with_its_own_traceback_and_serves_nothing(bench: Bench) -> None:
    bench.script("broken.py", "def init():\n    raise LookupError('no such weights')\n\ndef run(data):\n    pass\n")
    service = bench.deploy("broken", config=bench.config("broken.py"), wait=False)
    with pytest.raises(WebserviceException, match="no such weights") as raised:
        service.wait_for_deployment()
    assert "broken.py" in raised.value.message and "LookupError" in raised.value.message
    assert service.state == "failed" and "LookupError" in service.get_logs()
    with pytest.raises(WebserviceException, match="cannot answer"):
        service.run(ASKED)
    with pytest.raises(WebserviceException, match="there is a service 'broken' already"):
        bench.deploy("broken")
    mended = bench.deploy("broken", overwrite=True)
    assert mended.run(ASKED)["result"] == [2, 4]
    mended.delete()


def test_reload_takes_the_script_anew_and_a_failed_one_leaves_what_serves(bench: Bench) -> None:
    bench.script("changing.py", SCORE)
    service = bench.deploy("reloaded", config=bench.config("changing.py"))
    port = service.port
    bench.script("changing.py", SCORE.replace("factor * each", "factor * each + 100"))
    # As in v1's notebooks: without waiting, what comes next is answered by the new script.
    service.reload()
    assert service.run(ASKED)["result"] == [102, 104] and service.port == port
    bench.script("changing.py", SCORE + "\nimport no_such_module\n")
    with pytest.raises(WebserviceException, match="no_such_module") as raised:
        service.reload(wait=True)
    assert "continues to serve" in raised.value.message
    assert service.state == "failed" and service.run(ASKED)["result"] == [102, 104]
    bench.script("changing.py", "def run(data: return 1")
    with pytest.raises(WebserviceException, match="not valid Python in line 1"):
        service.reload()
    # The next update builds upon what serves, not upon what failed.
    service.update(models=[bench.model(5)], wait=True)
    assert service.state == "running" and service.run(ASKED)["result"] == [105, 110]
    service.delete()


def test_keys(bench: Bench) -> None:
    service = bench.deploy("with-keys", deployment_config=AksWebservice.deploy_configuration(num_replicas=1))
    assert type(service) is AksWebservice and service.auth_enabled and service.state == "Healthy"
    primary, secondary = service.get_keys()
    assert service.run(ASKED)["result"] == [2, 4]
    assert ask(service)[0] == 401
    assert ask(service, Authorization="Bearer wrong-key-of-no-one")[0] == 401
    for key in (primary, secondary):
        assert ask(service, Authorization=f"Bearer {key}")[0] == 200
    service.regen_key("Primary")
    service.regen_key("Secondary", set_key="a-key-of-my-own")
    assert service.get_keys()[1] == "a-key-of-my-own" and service.get_keys()[0] != primary
    until(lambda: ask(service, Authorization=f"Bearer {primary}")[0] == 401, what="the old key to be refused")
    assert ask(service, Authorization=f"Bearer {secondary}")[0] == 401
    assert ask(service, Authorization="Bearer a-key-of-my-own")[0] == 200 and service.run(ASKED)
    # Turned off and on again, without another address.
    port = service._record.port
    service.update(auth_enabled=False)
    service.wait_for_deployment()
    assert ask(service)[0] == 200 and not service.auth_enabled
    assert service._record.port == port
    with pytest.raises(NotImplementedError, match="get_keys"):
        service.get_token()
    service.delete()


def test_labels_change_nothing_that_runs(bench: Bench) -> None:
    config = AciWebservice.deploy_configuration(
        cpu_cores=1, memory_gb=1, tags={"area": "x"}, properties={"p": 1}, description="about", location="nowhere"
    )
    service = bench.deploy("labelled", deployment_config=config)
    assert (service.compute_type, service.tags, service.properties) == ("ACI", {"area": "x"}, {"p": "1"})
    process = service.run(ASKED)["process"]
    service.add_tags({"more": "1"})
    service.remove_tags(["area"])
    service.update(description="other", properties={"q": "2"})
    assert service.tags == {"more": "1"} and service.properties == {"p": "1", "q": "2"}
    assert service.description == "other" and service.run(ASKED)["process"] == process
    # What means nothing here is noted, and nothing is begun for it.
    service.update(enable_app_insights=True)
    assert (
        service.serialize()["settings"]["enable_app_insights"] is True
        and service.serialize()["settings"]["cpu_cores"] == 1
    )
    assert service.run(ASKED)["process"] == process
    with pytest.raises(WebserviceException, match="property 'p'"):
        service.add_properties({"p": "other"})
    with pytest.raises(WebserviceException, match="nothing to change"):
        service.update()
    found = Webservice.list(bench.workspace, compute_type="ACI", tags=[["more", "1"]], model_name="factor")
    assert [each.name for each in found] == ["labelled"]
    assert Webservice.list(bench.workspace, compute_type="AKS", tags=["more"]) == []
    service.delete()


def test_a_port_that_is_taken_is_said(bench: Bench) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = LocalWebservice.deploy_configuration(port=port)
        with pytest.raises(WebserviceException, match=f"cannot use the address 127.0.0.1:{port}"):
            bench.deploy("taken-port", deployment_config=config)
    assert "taken-port" not in bench.workspace.webservices


def test_pages_of_others_may_ask_where_that_is_allowed(bench: Bench) -> None:
    config = LocalWebservice.deploy_configuration(cors_origins=["https://example.org"])
    service = bench.deploy("for-pages", deployment_config=config)
    allowed = {}
    for origin in ("https://example.org", "https://other.example"):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        connection.request("POST", "/score", body=ASKED, headers={"Origin": origin})
        allowed[origin] = connection.getresponse().headers.get("Access-Control-Allow-Origin")
        connection.close()
    assert allowed == {"https://example.org": "https://example.org", "https://other.example": None}
    with pytest.raises(WorkspaceException, match="has 1 services, such as for-pages"):
        bench.workspace.delete()
    service.delete()


def test_the_script_works_in_the_parent_of_its_source_folder(bench: Bench) -> None:
    source = bench.place / "src"
    (source / "x").mkdir(parents=True)
    (source / "data.json").write_text("[5]")
    (source / "beside.py").write_text("ADDED = 1\n")
    (source / "x" / "nearer.py").write_text("MORE = 2\n")
    bench.script(
        "src/x/score.py",
        "import json, os\nimport beside, nearer, src.beside\nfrom azureml.core.model import Model\n\ndef init():\n"
        "    global numbers\n    numbers = json.load(open('./src/data.json'))\n\ndef run(data):\n"
        "    inside = os.listdir(os.environ['AZUREML_MODEL_DIR'])\n"
        "    return [numbers, beside.ADDED + nearer.MORE, os.path.exists(Model.get_model_path('factor')), inside]\n",
    )
    config = InferenceConfig(source_directory=str(source), entry_script="x/score.py", environment=own_python())
    service = bench.deploy("parent", config=config)
    assert service.run("") == [[5], 3, True, ["factor.json"]]
    (source / "data.json").write_text("[6]")
    service.reload()
    service.wait_for_deployment()
    assert service.run("")[0] == [6]
    service.delete()


def test_several_models_in_the_environment_of_the_run_that_made_one(bench: Bench) -> None:
    bench.script("train.py", "open('outputs/weights.txt', 'w').write('7')\n")
    estimator = Estimator(str(bench.place), entry_script="train.py", compute_target="local", user_managed=True)
    run = Experiment(bench.workspace, "training").submit(estimator)
    run.wait_for_completion()
    trained = run.register_model("weights", "outputs/weights.txt")
    bench.script(
        "several.py",
        "import os, sys\nfrom azureml.core.model import Model\n\ndef init():\n    pass\n\ndef run(data):\n"
        "    root = os.environ['AZUREML_MODEL_DIR']\n"
        "    return [sorted(os.listdir(root)), open(Model.get_model_path('weights')).read(), sys.executable]\n",
    )
    config = InferenceConfig("several.py", source_directory=str(bench.place))
    service = Model.deploy(
        bench.workspace, "several", [bench.model(1), trained], config, LocalWebservice.deploy_configuration()
    )
    service.wait_for_deployment()
    assert service.run("") == [["factor", "weights"], "7", sys.executable]
    service.delete()


@pytest.mark.local_only("a folder of this machine as a source of packages means nothing to a server")
def test_a_checked_in_environment_of_python_3_6(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """v1's default: the service gets the nearest newer Python that has the packages, and says so."""
    python = next(version for version in all_pythons() if version not in ("3.6", "3.7"))
    make_wheel(tmp_path, "agedpackage", tag=f"cp{python.replace('.', '')}-none-any")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{os.environ.get('PIP_FIND_LINKS', '')} {tmp_path}".strip())
    conda_file = bench.script("myenv.yml", "dependencies:\n- python=3.6.2\n- pip:\n  - agedpackage\n")
    bench.script(
        "which.py",
        "import sys, agedpackage\n\ndef init():\n    pass\n\ndef run(data):\n    return list(sys.version_info[:2])\n",
    )
    environment = Environment.from_conda_specification("myenv", conda_file)
    with pytest.warns(UserWarning, match=r"requests Python 3\.6, and services need 3\.7 or newer"):
        service = bench.deploy("aged", config=bench.config("which.py", environment=environment))
    assert service.run("") == [int(part) for part in python.split(".")]
    (warning,) = service.warnings
    assert warning.startswith(f"Python {python} is used: ")
    service.delete()


def test_an_update_builds_upon_the_one_that_is_still_on_its_way(bench: Bench) -> None:
    service = bench.deploy("in-a-row", factor=1)
    service.update(models=[bench.model(5)])
    bench.script("plus.py", SCORE.replace("factor * each", "factor * each + 100"))
    service.update(inference_config=bench.config("plus.py"), wait=True)
    assert service.run(ASKED)["result"] == [105, 110]
    service.delete()


def test_the_image_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.place)
    bench.script("beside.py", "EXTRA = 1000\n")
    bench.script(
        "image_score.py", "from beside import EXTRA\n" + SCORE.replace("factor * each", "factor * each + EXTRA")
    )
    config = ContainerImage.image_configuration("image_score.py", "python", dependencies=["beside.py"], tags={"a": "b"})
    image = ContainerImage.create(bench.workspace, "my-image", [bench.model(2)], config)
    image.wait_for_creation(show_output=True)
    assert image.creation_state == "Succeeded" and image.id == "my-image:1"
    assert Path(image.image_location).is_dir() and image.image_build_log_uri.startswith("file:///")
    assert bench.workspace.images["my-image"].id == image.id
    assert [each.id for each in Image.list(bench.workspace, model_name="factor", tags=["a"])] == ["my-image:1"]
    service = Webservice.deploy_from_image(
        bench.workspace, "of-image", image, AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1)
    )
    service.wait_for_deployment()
    assert service.run(ASKED)["result"] == [1002, 1004] and service.image_id == image.id
    with pytest.raises(WebserviceException, match="service 'of-image' uses it"):
        image.delete()
    service.delete()
    image.delete()
    assert not Path(image.image_location).exists()
    with pytest.raises(WebserviceException, match="ImageNotFound"):
        Image(bench.workspace, "my-image")


def test_an_image_that_cannot_be_made_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.place)
    bench.script("score.py", SCORE)
    # Where its folder should be there is a file.
    in_the_way = WorkspaceFolder(folder_of(bench.workspace)).image("blocked", 1).parent
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("")
    config = ContainerImage.image_configuration("score.py", "python")
    image = ContainerImage.create(bench.workspace, "blocked", [bench.model(2)], config)
    with pytest.raises(WebserviceException, match=r"image blocked:1 failed.*blocked"):
        image.wait_for_creation()
    assert image.creation_state == "Failed"
    image.delete()
    in_the_way.unlink()


def test_another_model_of_a_service_without_code(bench: Bench) -> None:
    """Each gets the ready-made script for what it is, whatever its file is called and whatever goes in."""

    def registered(name: str, factor: float, size: int) -> Model:
        (bench.place / name).write_bytes(onnx_times(factor, size))
        return Model.register(bench.workspace, str(bench.place / name), "scaled", model_framework=Model.Framework.ONNX)

    service = Model.deploy(bench.workspace, "no-code", [registered("first.onnx", 2.0, 2)])
    service.wait_for_deployment()
    assert service.run('{"data": [[1, 2]]}') == {"y": [[2.0, 4.0]]}
    asked = {"dims": [1, 2], "dataType": 1, "rawData": "AACAPwAAAEA="}
    found = service.run(json.dumps({"inputs": {"x": asked}, "outputFilter": ["y"]}))["outputs"]["y"]
    assert found == {"dims": ["1", "2"], "dataType": 1, "rawData": "AAAAQAAAgEA=", "dataLocation": "DEFAULT"}
    address = service.scoring_uri
    service.update(models=[registered("second.onnx", 3.0, 3)])
    service.wait_for_deployment()
    assert service.run('{"data": [[1, 2, 3]]}') == {"y": [[3.0, 6.0, 9.0]]} and service.scoring_uri == address
    service.delete()


def test_the_oldest_spellings(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.place)
    bench.script("score.py", SCORE)
    (bench.place / "factor").write_text('{"factor": 6}')
    config = ContainerImage.image_configuration("score.py", "python")
    service = Webservice.deploy(bench.workspace, "of-files", ["factor"], config, AciWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run(ASKED)["result"] == [6, 12] and service.models[0].name == "factor"
    image = bench.workspace.images["of-files"]
    assert (image.id, [model.name for model in image.models]) == ("of-files:1", ["factor"])
    assert [each.name for each in Webservice.list(bench.workspace, image_name="of-files")] == ["of-files"]
    with pytest.raises(WebserviceException, match="service 'of-files' already exists"):
        Webservice.check_for_existing_webservice(bench.workspace, "of-files")
    local = Webservice.deploy_local_from_model(bench.workspace, "tried", service.models, config, wait=True)
    assert local.state == "running" and local.run(ASKED)["result"] == [6, 12]
    elsewhere = local.deploy_to_cloud("tried-further", AksWebservice.deploy_configuration(num_replicas=1))
    elsewhere.wait_for_deployment()
    assert type(elsewhere) is AksWebservice and elsewhere.run(ASKED)["result"] == [6, 12]
    for each in (service, local, elsewhere):
        each.delete()


def test_it_serves_without_a_dispatcher_and_comes_back_when_all_is_killed(alone: Bench) -> None:
    service = alone.deploy("survivor", deployment_config=LocalWebservice.deploy_configuration(replicas=2))
    port = service.port
    folder = WorkspaceFolder(folder_of(alone.workspace))
    kill_dispatcher(folder)
    assert ask(service)[1]["result"] == [2, 4]
    # The supervisor dies with nobody there; whoever comes next brings the service back where it was.
    kill(supervisor_of(alone.workspace, "survivor"))
    again = LocalWebservice(alone.workspace, "survivor")
    answers(again)
    assert again.port == port
    # With a dispatcher there nobody has to ask.
    before = supervisor_of(alone.workspace, "survivor")
    kill(before)
    until(lambda: supervisor_of(alone.workspace, "survivor") != before, what="another supervisor")
    answers(again)
    # Stopped in an orderly way it also goes on, and the next dispatcher finds it alive.
    stop_dispatcher(folder)
    pid = supervisor_of(alone.workspace, "survivor")
    assert ask(service)[0] == 200
    assert Webservice(alone.workspace, "survivor").state == "running"
    assert supervisor_of(alone.workspace, "survivor") == pid


@pytest.mark.local_only("a server sets how long its dispatchers wait")
def test_a_dispatcher_with_services_stays(alone: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_dispatcher(WorkspaceFolder(folder_of(alone.workspace)))
    monkeypatch.setenv("TRAINMASTER_IDLE_SECONDS", "0.2")
    service = alone.deploy("keeper")
    handle = dispatcher_handle(WorkspaceFolder(folder_of(alone.workspace)))
    assert handle is not None
    import select

    assert not select.select([handle], [], [], 2.0)[0], "it left its service alone"
    service.delete()
    wait_gone(handle)


def test_files_that_somebody_damaged_keep_nobody_from_deleting(bench: Bench) -> None:
    service = bench.deploy("damaged")
    folder = folder_of_service(service)
    (folder / "state.json").write_text("{")
    (folder / "keys.json").write_text("[]")
    assert Webservice(bench.workspace, "damaged").run(ASKED)["result"] == [2, 4]
    service.delete()
    assert not folder.exists()


def test_what_cannot_be(bench: Bench, tmp_path: Path) -> None:
    workspace = bench.workspace
    for name in ("ab", "Upper", "1first", "end-", "x" * 33, "under_score"):
        with pytest.raises(WebserviceException, match="cannot be the name of a service"):
            bench.deploy(name)
    gone = bench.model(1)
    gone.delete()
    with pytest.raises(ModelNotFoundException, match="ModelNotFound"):
        Model.deploy(workspace, "no-model", [gone], bench.config(), LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="models must be a list"):
        Model.deploy(workspace, "no-list", bench.model(1), bench.config())
    with pytest.raises(WebserviceException, match="deployment_config must be"):
        Model.deploy(workspace, "no-config", [bench.model(1)], bench.config(), {"cpu": 1})
    with pytest.raises(WebserviceException, match=r"cannot listen on no-such-host\.invalid"):
        bench.deploy("no-host", deployment_config=LocalWebservice.deploy_configuration(host="no-such-host.invalid"))
    with pytest.raises(WebserviceException, match="inference_config must be"):
        Model.deploy(workspace, "no-script", [bench.model(1)], "score.py")
    assert workspace.webservices == {}


def test_a_target_elsewhere_is_refused_and_one_that_stands_for_services_is_here(bench: Bench) -> None:
    workspace, models = bench.workspace, [bench.model(2)]
    configuration = HDInsightCompute.attach_configuration("me", address="far.invalid", password="p")
    far = ComputeTarget.attach(workspace, "far", configuration)
    for target, told in ((far, r"'far' \(HDInsight\) cannot run services"), ("aks", "must be a compute target")):
        with pytest.raises(WebserviceException, match=told):
            Model.deploy(workspace, "elsewhere", models, bench.config(), deployment_target=target)
    assert workspace.webservices == {}
    aks = ComputeTarget.create(workspace, "aks", AksCompute.provisioning_configuration(agent_count=3))
    service = Model.deploy(workspace, "of-aks", models, bench.config(), deployment_target=aks)
    service.wait_for_deployment()
    assert type(service) is AksWebservice and service.run(ASKED)["result"] == [2, 4]
    service.delete()


def test_without_a_name_that_is_known_local_services_can_be_asked_for(bench: Bench) -> None:
    service = LocalWebservice(bench.workspace, "not-there", must_exist=False)
    assert service.state == "unknown" and "not-there" in repr(service)
    with pytest.raises(WebserviceException, match="is unknown"):
        service.run(ASKED)


def folder_of_service(service: Webservice) -> Path:
    return WorkspaceFolder(folder_of(service.workspace)).service(service.name).path


def generations(service: Webservice) -> list[str]:
    return sorted(each.name for each in folder_of_service(service).iterdir() if each.name.isdigit())


def answers(service: Webservice) -> None:
    def asked() -> bool:
        try:
            return ask(service)[0] == 200
        except OSError:
            return False

    until(asked, what="an answer")


def test_waiting_goes_on_while_what_was_killed_comes_back(alone: Bench) -> None:
    """Its deployment has not failed: waiting for it is over when it answers again."""
    held = alone.place / "held"
    hold = f"def init():\n    while os.path.exists({str(held)!r}):\n        time.sleep(0.01)\n"
    alone.script("held.py", SCORE.replace("import json, os", "import json, os, time").replace("def init():\n", hold))
    service = alone.deploy("back", config=alone.config("held.py"))
    held.touch()
    kill(service.run(ASKED)["process"])

    def is_down() -> bool:
        service.update_deployment_state()
        return bool(service.state == "failed")

    until(is_down, what="the end of the replica")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.wait_for_deployment)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        held.unlink()
        waiting.result()
    assert service.run(ASKED)["result"] == [2, 4]

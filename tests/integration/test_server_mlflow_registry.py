"""MLflow's model registry: the same requests to a real server and to ours, and real clients with real models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.mlflow_releases import NEWEST, RELEASES, address_of, run_client, start_mlflow_server
from tests.mlflow_twin import Line, Twin
from tests.server_process import ServerProcess

from trainmaster import Model, Workspace
from trainmaster.job.errors import ModelPathNotFoundException

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


@pytest.fixture
def workspace(server: ServerProcess) -> Workspace:
    return Workspace(path=server.root / "workspaces" / "team")


TRAIN = """
import cloudpickle, mlflow, numpy, pandas, sklearn
from sklearn.linear_model import LinearRegression

name = "line of " + mlflow.__version__
x = numpy.array([[0.0], [1.0], [2.0]])
kinds = {"mlflow-skinny": mlflow, "scikit-learn": sklearn, "pandas": pandas, "cloudpickle": cloudpickle}
given = {"name": "model"} if mlflow.__version__.startswith("3") else {"artifact_path": "model"}
with mlflow.start_run() as run:
    mlflow.sklearn.log_model(
        LinearRegression().fit(x, 2 * x[:, 0] + 1),
        registered_model_name=name,
        serialization_format="cloudpickle",
        pip_requirements=[f"{kind}=={module.__version__}" for kind, module in kinds.items()],
        **given,
    )
client = mlflow.MlflowClient()
assert client.get_model_version(name, "1").run_id == run.info.run_id
client.set_registered_model_alias(name, "champion", "1")
client.transition_model_version_stage(name, "1", "Production")
for end in ("/1", "/latest", "/Production", "@champion"):
    found = mlflow.pyfunc.load_model(f"models:/{name}{end}")
    assert abs(found.predict(numpy.array([[5.0]]))[0] - 11) < 1e-6, end
client.copy_model_version(f"models:/{name}@champion", name + " copy")
print(run.info.run_id)
"""


@pytest.mark.parametrize("release", RELEASES)
def test_a_model_that_mlflow_registers_is_deployed(
    server: ServerProcess, workspace: Workspace, tmp_path: Path, release: str
) -> None:
    run_id = run_client(TRAIN, address_of(server, "team"), server.token, release).split()[-1]
    model = Model(workspace, f"line of {release}", version=1)
    assert (model.run_id, model.entry) == (run_id, "model") and model.run is not None
    assert model.id in [each.id for each in Model.list(workspace, run_id=run_id)]
    assert (Path(model.download(tmp_path)) / "MLmodel").is_file()
    # A copy has the same contents.
    assert Model(workspace, f"{model.name} copy").manifest_path == model.manifest_path
    service = Model.deploy(workspace, f"line-{release.replace('.', '-')}", [model])
    try:
        service.wait_for_deployment()
        assert service.state == "Healthy", service.get_logs()
        assert service.run(json.dumps({"data": [[5.0]]}))["predictions"] == pytest.approx([11])
        table = {"columns": ["x"], "data": [[1.0], [2.0]]}
        assert service.run(json.dumps({"dataframe_split": table}))["predictions"] == pytest.approx([3, 5])
        for method, path, more in (
            ("DELETE", "registered-models/delete", {}),
            ("POST", "registered-models/rename", {"new_name": "new"}),
            ("DELETE", "model-versions/delete", {"version": "1"}),
        ):
            given = {"name": model.name, **more}
            answer = server.request(method, f"/mlflow/team/api/2.0/mlflow/{path}", given)
            assert answer.status == 400 and b"it is deployed" in answer.body, answer
    finally:
        service.delete()


LOAD = """
import os, urllib.error, urllib.request
import mlflow

client = mlflow.MlflowClient()
assert os.listdir(mlflow.artifacts.download_artifacts("models:/ours/1")) == ["weights.bin"]
assert client.get_registered_model("ours").latest_versions[0].source == "mlflow-artifacts:/models/ours/2"
found = mlflow.pyfunc.load_model("models:/ours/2")
assert found.metadata.flavors["python_function"]["loader_module"] == "loader"
client.set_registered_model_alias("ours", "best", "2")
client.rename_registered_model("ours", "our net")
assert mlflow.pyfunc.load_model("models:/our net@best") is not None

# A version whose files come later.
client.create_registered_model("later")
run = client.create_run("0")
client.create_model_version("later", f"runs:/{run.info.run_id}/net", run.info.run_id)
print(run.info.run_id)

address = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow-artifacts/artifacts/models/our%20net/2/MLmodel"
for method in ("PUT", "DELETE"):
    headers = {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}
    try:
        urllib.request.urlopen(urllib.request.Request(address, b"x", headers, method=method))
    except urllib.error.HTTPError as error:
        assert error.code == 403, error
    else:
        raise AssertionError("files of a registered model never change")
"""


LOADER = """
class Net:
    def predict(self, table):
        return table


def _load_pyfunc(path):
    return Net()
"""


def test_a_model_of_ours_is_loaded_by_mlflow(server: ServerProcess, workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"123")
    Model.register(workspace, tmp_path / "weights.bin", "ours")
    folder = tmp_path / "net"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "loader.py").write_text(LOADER)
    flavour = "flavors:\n  python_function:\n    loader_module: loader\n    code: code\n    python_version: 3.11.0\n"
    (folder / "MLmodel").write_text(flavour)
    Model.register(workspace, folder, "ours")
    run_id = run_client(LOAD, address_of(server, "team"), server.token, NEWEST).split()[-1]
    renamed = Model(workspace, "our net", version=2)
    assert Path(renamed.path, "MLmodel").read_text() == flavour

    late = Model(workspace, "later")
    assert late.run_id == run_id
    with pytest.raises(ModelPathNotFoundException, match="has no files yet"):
        late.download(tmp_path / "too early")
    workspace.get_run(run_id).upload_file("net/weights.bin", str(tmp_path / "weights.bin"))
    assert Path(late.download(tmp_path / "there"), "weights.bin").read_bytes() == b"123"


def test_the_registry_answers_as_a_real_server_does(
    server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Without the models of other tests.
    server.create_workspace("twin")
    with (
        start_mlflow_server(tmp_path_factory.mktemp("mlflow")) as address,
        closing(Line(address_of(server, "twin"), server.token)) as ours,
        closing(Line(address)) as theirs,
    ):
        twin = Twin(ours, theirs)
        _try_names(twin)
        _try_versions(twin)
        _try_stages_and_aliases(twin)
        _try_searches(twin)
        _try_copies(twin)
        _try_prompts(twin)
    assert not twin.differences, "\n".join(twin.differences)


def _patch(twin: Twin, path: str, **arguments: object) -> None:
    twin.send("PATCH", f"/api/2.0/mlflow/{path}", arguments)


def _delete(twin: Twin, path: str, **arguments: object) -> None:
    twin.send("DELETE", f"/api/2.0/mlflow/{path}", arguments)


def _create_version(twin: Twin, name: str, path: str = "model", run_id: str = "r" * 32, **more: object) -> None:
    twin.post("model-versions/create", name=name, source=f"runs:/{run_id}/{path}", run_id=run_id, **more)


def _try_names(twin: Twin) -> None:
    tags = [{"key": "a", "value": "1"}, {"key": "with space", "value": ""}, {"key": "a", "value": "2"}]
    twin.post("registered-models/create", name="my model", tags=tags, description="one")
    twin.post("registered-models/create", name="plain")
    twin.post("registered-models/create", name="plain", tags=tags)
    for wrong in ("", "   ", "a/b", "a:b", ".", "..", None, 5):
        twin.post("registered-models/create", name=wrong)
        twin.post("registered-models/rename", name="plain", new_name=wrong)
    for key in ("a" * 251, "", "x!", "../y", None):
        twin.post("registered-models/create", name="tagged", tags=[{"key": key, "value": "v"}])
        twin.post("registered-models/set-tag", name="plain", key=key, value="v")
        _delete(twin, "registered-models/delete-tag", name="plain", key=key)
    twin.post("registered-models/set-tag", name="plain", key="k", value="v" * 100_001)
    twin.post("registered-models/set-tag", name="plain", key="k", value="v" * 5_000)
    twin.post("registered-models/set-tag", name="plain", key="k", value="w")
    twin.post("registered-models/set-tag", name="plain", key="empty")
    twin.post("registered-models/set-tag", name="absent", key="k", value="w")
    for name in ("my model", "plain", "absent", ""):
        twin.get("registered-models/get", name=name)
    _delete(twin, "registered-models/delete-tag", name="plain", key="empty")
    _delete(twin, "registered-models/delete-tag", name="plain", key="absent")
    _delete(twin, "registered-models/delete-tag", name="absent", key="k")
    _patch(twin, "registered-models/update", name="plain", description="two")
    _patch(twin, "registered-models/update", name="my model")
    _patch(twin, "registered-models/update", name="absent", description="two")
    twin.post("registered-models/rename", name="my model", new_name="plain")
    twin.post("registered-models/rename", name="my model", new_name="new name")
    twin.post("registered-models/rename", name="my model", new_name="other")
    twin.get("registered-models/get", name="new name")
    _delete(twin, "registered-models/delete", name="new name")
    _delete(twin, "registered-models/delete", name="new name")
    _delete(twin, "registered-models/delete", name="plain")
    twin.get("registered-models/search")


def _try_versions(twin: Twin) -> None:
    twin.post("registered-models/create", name="v")
    _create_version(twin, "v", tags=[{"key": "t", "value": "1"}], description="d", run_link="http://run")
    _create_version(twin, "v", "deep/er/model")
    _create_version(twin, "absent")
    for key in ("", "a" * 251, "x!"):
        _create_version(twin, "v", tags=[{"key": key, "value": "v"}])
        twin.post("model-versions/set-tag", name="v", version="1", key=key, value="v")
        _delete(twin, "model-versions/delete-tag", name="v", version="1", key=key)
    twin.post("model-versions/create", name="v")
    twin.post("model-versions/create", source="runs:/a/b")
    for version in ("1", "2", "3", "0", "-1", "one", "", None):
        twin.get("model-versions/get", name="v", **({} if version is None else {"version": version}))
        twin.post("model-versions/set-tag", name="v", version=version, key="k", value="w")
        _delete(twin, "model-versions/delete-tag", name="v", version=version, key="k")
        _patch(twin, "model-versions/update", name="v", version=version, description=f"of {version}")
    twin.post("model-versions/set-tag", name="v", version="1", key="k", value="v" * 100_001)
    twin.post("model-versions/set-tag", name="v", version="1", key="empty")
    twin.get("model-versions/get", name="v", version="1")
    twin.get("model-versions/get", name="absent", version="1")
    twin.get("model-versions/get-download-uri", name="v", version="1")
    twin.get("model-versions/get-download-uri", name="v", version="9")
    twin.get("registered-models/get", name="v")
    _delete(twin, "model-versions/delete", name="v", version="2")
    _delete(twin, "model-versions/delete", name="v", version="2")
    _create_version(twin, "v")
    twin.get("model-versions/get", name="v", version="3")
    _delete(twin, "registered-models/delete", name="v")
    twin.get("model-versions/get", name="v", version="1")
    twin.post("registered-models/create", name="v")
    # The numbers of a name that was deleted begin again.
    _create_version(twin, "v")
    twin.post("registered-models/rename", name="v", new_name="w x")
    twin.get("model-versions/get", name="w x", version="1")
    twin.get("model-versions/get", name="v", version="1")
    for source, run_id, model_id in (
        ("runs://host/a/model", "a", None),
        ("runs:/a/model", "a", "m-1"),
        ("models:/m-1", None, None),
        ("models:/m-1", None, "m-2"),
        ("models:/absent/1", None, None),
        ("models:/w x/9", None, None),
        ("models:/w x@nobody", None, None),
        ("models:/w x/latest/more", None, None),
        ("mlflow-artifacts:/0/a/artifacts/model", "a", None),
        ("mlflow-artifacts:/0/a/artifacts/model", None, None),
        ("mlflow-artifacts://host/0/a/artifacts/../b", "a", None),
        ("path/to/model", None, None),
        ("/etc", None, None),
        ("file:///etc", None, None),
        ("runs:/a/../b", "a", None),
        ("runs:/a/%2e%2e/b", "a", None),
    ):
        given = {"run_id": run_id, "model_id": model_id}
        named = {key: value for key, value in given.items() if value is not None}
        twin.post("model-versions/create", name="w x", source=source, **named)
    _delete(twin, "registered-models/delete", name="w x")


def _try_stages_and_aliases(twin: Twin) -> None:
    twin.post("registered-models/create", name="s")
    for number in range(1, 6):
        _create_version(twin, "s", f"m{number}")
    for version, stage, archive in (
        ("1", "Production", False),
        ("2", "pROduction", False),
        ("3", "Staging", True),
        ("4", "Production", True),
        ("4", "None", True),
        ("4", "Archived", True),
        ("5", "unknown", False),
        ("9", "Staging", False),
        ("x", "Staging", False),
        ("5", "", False),
    ):
        twin.post(
            "model-versions/transition-stage",
            name="s",
            version=version,
            stage=stage,
            archive_existing_versions=archive,
        )
    for version in "12345":
        twin.get("model-versions/get", name="s", version=version)
    for stages in ([], ["None"], ["Production", "staging"], ["unknown"]):
        twin.post("registered-models/get-latest-versions", name="s", stages=stages)
        twin.get("registered-models/get-latest-versions", name="s", stages=stages)
    twin.get("registered-models/get-latest-versions", name="absent")
    for alias, version in (
        ("champion", "1"),
        ("other", "1"),
        ("champion", "2"),
        ("Latest", "1"),
        ("v1", "1"),
        ("", "1"),
        ("a b", "1"),
        ("a" * 256, "1"),
        ("fine", "9"),
        ("fine", "x"),
    ):
        twin.post("registered-models/alias", name="s", alias=alias, version=version)
        twin.get("registered-models/alias", name="s", alias=alias)
    twin.post("registered-models/alias", name="absent", alias="fine", version="1")
    twin.get("registered-models/alias", name="absent", alias="fine")
    twin.get("registered-models/get", name="s")
    twin.get("model-versions/get", name="s", version="2")
    twin.post("registered-models/get-latest-versions", name="s")
    _delete(twin, "registered-models/alias", name="s", alias="absent")
    _delete(twin, "registered-models/alias", name="absent", alias="champion")
    _delete(twin, "registered-models/alias", name="s", alias="other")
    _delete(twin, "model-versions/delete", name="s", version="2")
    twin.get("registered-models/alias", name="s", alias="champion")
    twin.get("registered-models/get", name="s")
    twin.post("registered-models/create", name="empty")
    twin.get("registered-models/alias", name="empty", alias="latest")
    _delete(twin, "registered-models/delete", name="s")
    _delete(twin, "registered-models/delete", name="empty")


MODEL_FILTERS = (
    "",
    "name = 'Search03'",
    "name != 'Search03'",
    "name LIKE 'Search%1'",
    "name LIKE 'search%'",
    "name ILIKE 'search_1'",
    "name IN ('Search01', 'Search02')",
    "name NOT IN ('Search01', 'Search02')",
    "tags.kind = 'Odd'",
    "tags.kind != 'Odd' and name LIKE '%0'",
    "tag.`kind` ILIKE 'o%'",
    "tags.absent != 'x'",
    "name = 'x' or name = 'y'",
    "name > 'x'",
    "name = 5",
    "version_number = 1",
    "run_id = 'x'",
    "tags.kind IN ('a')",
    "nonsense",
    "tags.`mlflow.prompt.is_prompt` = 'false'",
    "name = 'Search03';",
    "name ILIKE '%Search03'",
)

MODEL_ORDERS = (
    ["name DESC"],
    ["name"],
    ["timestamp DESC"],
    ["last_updated_timestamp"],
    ["creation_timestamp DESC"],
    ["name", "name DESC"],
    ["tags.kind"],
    ["name UP"],
    ["run_id"],
    [""],
    ["name\tDESC"],
    ["timestamp\r\n  aSC", "`name`   dESC"],
    ["timestamp DESC soon"],
    ["timestamp", "last_updated_timestamp"],
)

VERSION_FILTERS = (
    "",
    "name = 'Search03'",
    "name LIKE '%3' and version_number > 1",
    "version_number = 1",
    "version_number != '1'",
    "version_number <= 1.5",
    "version_number LIKE '1'",
    "run_id = 'run3'",
    "run_id IN ('run3', 'run5')",
    "run_id NOT IN ('run3')",
    "source_path = 'runs:/run0/m0'",
    "source_path LIKE '%m3'",
    "source_path IN ('a')",
    "tags.n = '0' and name = 'Search00'",
    "tags.n ILIKE '%'",
    "current_stage = 'None'",
    "creation_timestamp > 5",
    "name = 5",
)

VERSION_ORDERS = (
    ["name DESC"],
    ["version_number DESC", "name DESC"],
    ["creation_timestamp"],
    ["last_updated_timestamp DESC", "name"],
    ["version_number", "version_number"],
    ["run_id"],
    ["tags.n"],
    ["version_number\n DeSC", "name\tASC"],
    ["name", "last_updated_timestamp DESC soon"],
)


def _try_searches(twin: Twin) -> None:
    for number in range(12):
        tags = [{"key": "kind", "value": "even" if number % 2 == 0 else "Odd"}]
        twin.post("registered-models/create", name=f"Search{number:02}", tags=tags)
    for number in (0, 3, 5, 0, 3):
        tags = [{"key": "n", "value": str(number)}]
        _create_version(twin, f"Search{number:02}", f"m{number}", f"run{number}", tags=tags)
    _search(twin, "registered-models/search", MODEL_FILTERS, MODEL_ORDERS, ("0", "1", "5", "1000", "1001", "x"))
    _search(twin, "model-versions/search", VERSION_FILTERS, VERSION_ORDERS, ("0", "-1", "2", "200000", "200001"))


def _search(twin: Twin, path: str, filters: Sequence[str], orders: Sequence[list[str]], sizes: Sequence[str]) -> None:
    for text in filters:
        twin.get(path, filter=text)
    for order in orders:
        twin.get(path, order_by=order)
    for most in sizes:
        twin.get(path, max_results=most)
    page = twin.get(path, max_results=2)
    while "next_page_token" in page.ours:
        page = twin.get(path, max_results=2, page_token=page["next_page_token"])
    for token in ("x", "e30=", "eyJvZmZzZXQiOiAiYSJ9"):
        twin.get(path, page_token=token)


def _try_copies(twin: Twin) -> None:
    twin.post("registered-models/create", name="origin")
    _create_version(twin, "origin", run_id="abc")
    twin.post("registered-models/alias", name="origin", alias="best", version="1")
    twin.post("registered-models/create", name="copy")
    for source in ("models:/origin/1", "models:/origin@best", "models:/origin/latest", "models:/origin/None"):
        twin.post("model-versions/create", name="copy", source=source)
    twin.post("model-versions/create", name="copy", source="models:/origin/1", run_id="other")
    twin.post("model-versions/create", name="copy", source="models:/origin/1", run_id="abc")
    twin.post("model-versions/create", name="copy", source="models:/origin/Production")
    twin.post("model-versions/create", name="copy", source="models:/origin/unknown")
    for version in "1234":
        twin.get("model-versions/get", name="copy", version=version)
        twin.get("model-versions/get-download-uri", name="copy", version=version)


def _try_prompts(twin: Twin) -> None:
    prompt = [{"key": "mlflow.prompt.is_prompt", "value": "true"}]
    twin.post("registered-models/create", name="greeting", tags=prompt)
    twin.post("registered-models/create", name="greeting")
    text = {"key": "mlflow.prompt.text", "value": "Hello {{name}}"}
    twin.post("model-versions/create", name="greeting", source="dummy-source", tags=[*prompt, text])
    twin.post("model-versions/create", name="greeting", source="/etc/passwd", tags=[*prompt, text])
    twin.get("registered-models/search", filter="tags.`mlflow.prompt.is_prompt` = 'true'")
    twin.get("registered-models/search", filter="name = 'greeting'")
    twin.get("model-versions/search", filter="name = 'greeting'")
    twin.get("model-versions/search", filter="name = 'greeting' and tags.`mlflow.prompt.is_prompt` = 'true'")
    twin.post("model-versions/create", name="copy", source="models:/greeting/1")

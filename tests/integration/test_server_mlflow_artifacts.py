"""Artifacts of MLflow's clients through the server."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import until
from tests.mlflow_releases import RELEASES, address_of, run_client
from tests.server_people import People, add_people
from tests.server_process import Answer, ServerProcess

from trainmaster.dispatcher.runs.disk_use import measure_folders

pytestmark = pytest.mark.timeout(600)

_TOP = "/mlflow/vision/api/2.0/mlflow-artifacts/artifacts"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


@pytest.fixture
def run(people: People) -> Run:
    return Run(people)


class Run:
    """A new run of MLflow in the workspace `vision`."""

    def __init__(self, people: People, workspace: str = "vision") -> None:
        self.people = people
        self.id = uuid.uuid4().hex
        self.workspace = people.server.root / "workspaces" / workspace
        people.server.call(workspace, "experiments.ensure", name="artifacts")
        now = time.time()
        record = {"id": self.id, "experiment": "artifacts", "status": "Running", "created_at": now, "started_at": now}
        people.server.call(workspace, "runs.create", runs=[{**record, "type": "mlflow"}])
        listed = people.ask("owner", "GET", f"/mlflow/{workspace}/api/2.0/mlflow/artifacts/list?run_id={self.id}")
        if workspace == "vision":
            self.root = listed.json()["root_uri"].removeprefix("mlflow-artifacts:/")

    @property
    def files(self) -> Path:
        return self.workspace / "runs" / self.id / "files"

    def send(
        self, method: str, name: str, body: bytes | None = None, who: str = "contributor", **headers: str
    ) -> Answer:
        return self.people.ask(who, method, f"{_TOP}/{self.root}/{name}", body, **headers)


@pytest.mark.parametrize("release", RELEASES)
def test_a_client_uploads_lists_and_downloads(run: Run, release: str) -> None:
    script = f"""
import os, tempfile, mlflow
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
repo = get_artifact_repository("mlflow-artifacts:/{run.root}")
folder = tempfile.mkdtemp()
os.makedirs(folder + "/in/deep")
for name, text in (("a b.txt", "0"), ("in/ü.txt", "1"), ("in/deep/c.bin", "2" * 3000000)):
    open(folder + "/" + name, "w").write(text)
repo.log_artifacts(folder)
repo.log_artifact(folder + "/a b.txt", "more")
listed = [(f.path, f.is_dir, f.file_size) for f in repo.list_artifacts()]
assert listed == [("a b.txt", False, 1), ("in", True, None), ("more", True, None)]
assert [f.path for f in repo.list_artifacts("in")] == ["in/deep", "in/ü.txt"]
assert repo.list_artifacts("a b.txt") == [] and repo.list_artifacts("none") == []
# A file may be written again, as log_table does.
open(folder + "/a b.txt", "w").write("other")
repo.log_artifact(folder + "/a b.txt")
into = repo.download_artifacts("")
assert open(into + "/a b.txt").read() == "other" and os.path.getsize(into + "/in/deep/c.bin") == 3000000
repo.delete_artifacts("in/deep")
repo.delete_artifacts("in/deep")
assert [f.path for f in repo.list_artifacts("in")] == ["in/ü.txt"]
try:
    repo.download_artifacts("none")
except Exception as error:
    print(error)
"""
    printed = run_client(script, address_of(run.people.server, "vision"), run.people.tokens["owner"], release)
    assert "none" in printed
    assert (run.files / "a b.txt").read_text() == "other"
    names = [
        each["name"]
        for each in run.people.ask("reader", "GET", f"/api/v1/workspaces/vision/runs/{run.id}/files").json()["files"]
    ]
    assert names == ["a b.txt", "in/ü.txt", "more/a b.txt"]


def test_answers_are_those_of_mlflow(run: Run) -> None:
    assert run.send("PUT", "dir/a.html", b"<script>").body == b""
    answer = run.send("GET", "dir/a.html")
    assert (answer.status, answer.body) == (200, b"<script>")
    assert answer.headers["content-disposition"] == "attachment; filename=a.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    part = run.send("GET", "dir/a.html", Range="bytes=1-3")
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"scr", "bytes 1-3/8")
    assert run.send("GET", "dir").json() == {
        "error_code": "INVALID_PARAMETER_VALUE",
        "message": f"Artifact path refers to a directory, not a file: '{run.root}/dir'",
        "detail": f"Artifact path refers to a directory, not a file: '{run.root}/dir'",
        "sqlstate": "KAM00",
        "error_class": "INVALID_PARAMETER_VALUE",
    }
    absent = run.send("GET", "none")
    assert (absent.status, absent.json()["message"]) == (404, f"No such artifact: '{run.root}/none'")
    ask, top = run.people.ask, "/mlflow/vision"
    listed = ask("reader", "GET", f"{top}/ajax-api/2.0/mlflow/artifacts/list?run_uuid={run.id}&path=dir")
    assert listed.json() == {
        "files": [{"path": "dir/a.html", "is_dir": False, "file_size": 8}],
        "root_uri": f"mlflow-artifacts:/{run.root}",
    }
    shown = ask("reader", "GET", f"{top}/get-artifact?run_uuid={run.id}&path=dir/a.html")
    assert (shown.body, shown.headers["content-disposition"]) == (b"<script>", "attachment; filename=a.html")
    assert "sandbox" in shown.headers["content-security-policy"]
    missing = ask("reader", "GET", f"{top}/get-artifact?run_uuid=none&path=a")
    assert (missing.status, missing.json()["message"]) == (404, "Run with id=none not found")
    for step in ("create", "complete", "abort"):
        answer = ask(
            "contributor", "POST", f"{top}/api/2.0/mlflow-artifacts/mpu/{step}/{run.root}", {"path": "x", "parts": [{}]}
        )
        assert answer.status == 501
        assert answer.json()["message"].startswith("Multipart upload is not supported")
    upload = f"{top}/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run.id}"
    assert ask("contributor", "POST", f"{upload}&path=dir/b.txt", b"page").status == 200
    assert run.send("GET", "dir/b.txt").body == b"page"
    assert ask("contributor", "POST", f"{upload}&path=dir/b.txt").json()["message"] == "Request must specify data."
    large = ask("contributor", "POST", f"{upload}&path=b", bytes(10 * 1024 * 1024 + 1))
    assert large.json()["message"] == "Artifact size is too large. Max size is 10MB."


def test_other_paths_are_a_folder_of_the_workspace(run: Run) -> None:
    ask = run.people.ask
    for path in ("a.txt", "7/models/m-1/artifacts/MLmodel"):
        assert ask("contributor", "PUT", f"{_TOP}/{path}", b"0").status == 200
        assert ask("reader", "GET", f"{_TOP}/{path}").body == b"0"
    listed = ask("reader", "GET", f"{_TOP}?path=7/models/m-1/artifacts").json()
    assert listed == {"files": [{"path": "MLmodel", "is_dir": False, "file_size": 1}]}
    assert ask("owner", "DELETE", f"{_TOP}/7").status == 200
    assert ask("reader", "GET", f"{_TOP}/7/models/m-1/artifacts/MLmodel").status == 404
    # The folder is the workspace's own.
    assert ask("elsewhere", "GET", "/mlflow/other/api/2.0/mlflow-artifacts/artifacts").json() == {}


def test_files_of_a_job_are_only_added_to(run: Run) -> None:
    people = run.people
    listed = people.ask("reader", "GET", f"/mlflow/vision/api/2.0/mlflow/artifacts/list?run_id={people.run_id}")
    root = listed.json()["root_uri"].removeprefix("mlflow-artifacts:/")
    path = f"{_TOP}/{root}/outputs/added.txt"
    assert people.ask("contributor", "PUT", path, b"one").status == 200
    assert people.ask("contributor", "PUT", path, b"one").status == 200
    refused = people.ask("contributor", "PUT", path, b"two")
    assert (refused.status, refused.json()["error_code"]) == (400, "RESOURCE_ALREADY_EXISTS")
    assert people.ask("owner", "DELETE", path).status == 403
    assert people.ask("reader", "GET", path).body == b"one"


def test_who_may_upload_and_remove(run: Run) -> None:
    people = run.people
    assert [run.send("PUT", "a", b"0", who).status for who in ("nobody", "stranger", "elsewhere", "reader")] == [
        401,
        403,
        403,
        403,
    ]
    assert not (run.files / "a").exists()
    assert run.send("PUT", "a", b"0").status == 200
    assert run.send("DELETE", "a", who="contributor").status == 403
    assert run.send("DELETE", "a", who="owner").status == 200
    audit = people.server.request("GET", "/api/v1/audit").json()["entries"]
    seen = [(each["caller"], each["method"], each["status"]) for each in audit if run.id in each["target"]]
    assert {("contributor", "PUT", 200), ("reader", "PUT", 403), ("owner", "DELETE", 200)} <= set(seen)


def test_an_upload_is_whole_or_absent(run: Run) -> None:
    from http.client import HTTPConnection

    server = run.people.server
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", f"{_TOP}/{run.root}/cut.bin")
    connection.putheader("Authorization", f"Bearer {run.people.tokens['contributor']}")
    connection.putheader("Content-Length", "1000000")
    connection.endheaders(b"x" * 1000)
    connection.close()
    assert run.send("GET", "cut.bin").status == 404
    assert run.send("PUT", "cut.bin", b"x" * 1000).status == 200
    assert os.listdir(run.files) == ["cut.bin"]


def test_the_disk_quota_is_kept(run: Run) -> None:
    server = run.people.server
    server.call("vision", "quotas.set", owner="contributor", disk_bytes=0)
    try:
        refused = run.send("PUT", "a", b"0")
        assert refused.status == 403 and "disk quota" in refused.json()["message"], refused
    finally:
        server.call("vision", "quotas.set", owner="contributor", disk_bytes=None)
    assert run.send("PUT", "a", b"0").status == 200


@pytest.mark.parametrize("place", ["run", "logged model", "logged model without a run", "nobody"])
def test_whatever_is_uploaded_counts_for_the_disk_quota(run: Run, place: str) -> None:
    server = run.people.server
    top = f"{_TOP}/{run.root}"
    if place == "nobody":
        top = f"{_TOP}/nobody/{run.id}"
    elif place != "run":
        source = {"source_run_id": run.id} if place == "logged model" else {}
        given = {"experiment_id": run.root.split("/")[0], "name": "net", **source}
        path = "/mlflow/vision/api/2.0/mlflow/logged-models"
        answer = run.people.ask("contributor", "POST", path, given)
        uri = answer.json()["model"]["info"]["artifact_uri"]
        top = f"{_TOP}/{uri.removeprefix('mlflow-artifacts:/')}"

    def count() -> int:
        (report,) = server.call("vision", "quotas.list")
        found: int = report["disk_bytes"]
        return found

    # What other tests have left behind counts as well, and is measured some time.
    limit = measure_folders([run.workspace]) + 2**20
    server.call("vision", "quotas.set", owner="", disk_bytes=limit)
    try:
        assert run.people.ask("contributor", "PUT", f"{top}/a.bin", b"x" * 3 * 2**20).status == 200
        assert until(lambda: count() >= limit)
        refused = run.people.ask("contributor", "PUT", f"{top}/b.bin", b"x")
        assert refused.status == 403 and "disk quota of the workspace" in refused.json()["message"], refused
        assert run.people.ask("owner", "DELETE", f"{top}/a.bin").status == 200
        assert until(lambda: count() < limit)
        assert run.people.ask("contributor", "PUT", f"{top}/b.bin", b"x").status == 200
    finally:
        server.call("vision", "quotas.set", owner="", disk_bytes=None)


ATTACKS = (
    "../secret.txt",
    "%2e%2e/secret.txt",
    "%2e%2e%2fsecret.txt",
    "..%2fsecret.txt",
    "%252e%252e%252fsecret.txt",
    "%25252e%25252e/secret.txt",
    "a/../../secret.txt",
    "..%5csecret.txt",
    "a%5c..%5csecret.txt",
    "C:%5csecret.txt",
    "secret.txt%00.png",
    "a%0ab",
    "%23/../secret.txt",
)
# In the middle of a path they are names like others.
ABSOLUTE = ("%2fetc%2fpasswd", "C:/secret.txt", "file:///etc/passwd", "file:%2f%2f%2fetc%2fpasswd")


@pytest.mark.parametrize("attack", ATTACKS + ABSOLUTE)
def test_no_path_leads_out_of_the_folder(run: Run, attack: str) -> None:
    """Each is refused as MLflow refuses it, whatever the method; nothing is read, written or removed."""
    secret = run.files.parent / "secret.txt"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("secret")
    (run.workspace / "secret.txt").write_text("secret")
    ask = run.people.ask
    for path in (f"{_TOP}/{attack}", *([] if attack in ABSOLUTE else [f"{_TOP}/{run.root}/{attack}"])):
        for method, body in (("GET", None), ("PUT", b"new"), ("DELETE", None)):
            answer = ask("owner", method, path, body)
            assert answer.status == 400 and answer.json()["message"] == "Invalid path", (method, path, answer)
    for path in (f"get-artifact?run_uuid={run.id}&", f"api/2.0/mlflow/artifacts/list?run_id={run.id}&"):
        answer = ask("owner", "GET", f"/mlflow/vision/{path}path={attack}")
        assert answer.status == 400 and answer.json()["message"] == "Invalid path", (path, answer)
    assert secret.read_text() == (run.workspace / "secret.txt").read_text() == "secret"


def test_links_of_a_job_lead_nowhere(run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    other = Run(run.people)
    assert other.send("PUT", "of-other.txt", b"other").status == 200
    assert run.send("PUT", "a/own.txt", b"0").status == 200
    (run.files / "file").symlink_to(secret)
    (run.files / "folder").symlink_to(tmp_path)
    (run.files / "run").symlink_to(other.files)
    (run.files / "a" / "spec").symlink_to("../../journals")
    for name in ("file", "folder/secret.txt", "run/of-other.txt"):
        assert run.send("GET", name).status == 404, name
    assert [each["path"] for each in run.people.ask("reader", "GET", f"{_TOP}?path={run.root}").json()["files"]] == [
        "a"
    ]
    for name in ("folder", "run", "folder/x"):
        assert run.people.ask("reader", "GET", f"{_TOP}?path={run.root}/{name}").json() == {}
    for name in ("folder/secret.txt", "folder/new.txt", "run/of-other.txt"):
        assert run.send("PUT", name, b"new").status == 400, name
        assert run.send("DELETE", name, who="owner").status == 200
    # What a link leads to stays when the link or a folder with links is removed or replaced.
    assert run.send("PUT", "file", b"new").status == 200
    for name in ("file", "folder", "run", "a"):
        assert run.send("DELETE", name, who="owner").status == 200
    assert os.listdir(run.files) == []
    assert secret.read_text() == "secret" and os.listdir(tmp_path) == ["secret.txt"]
    assert other.send("GET", "of-other.txt").body == b"other"


def test_ids_of_others_lead_nowhere(run: Run) -> None:
    elsewhere = Run(run.people, "other")
    experiment = run.root.split("/")[0]
    for run_id in (elsewhere.id, "none", "..."):
        path = f"{_TOP}/{experiment}/{run_id}/artifacts/a"
        answer = run.people.ask("owner", "GET", path)
        assert answer.status == 404 and answer.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST", answer
        # As on MLflow's server, what is sent below an unknown run is kept, in a folder of this workspace.
        assert run.people.ask("owner", "PUT", path, b"0").status == 200
        assert run.people.ask("owner", "GET", path).body == b"0"
        assert run.people.ask("owner", "DELETE", path).status == 200
    assert os.listdir(elsewhere.files) == []
    # A run of another experiment is not found below this one.
    assert run.send("PUT", "a", b"0").status == 200
    wrong = f"{_TOP}/99{experiment}/{run.id}/artifacts/a"
    assert run.people.ask("owner", "GET", wrong).status == 404

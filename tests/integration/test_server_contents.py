"""Snapshots, models, wheels and datastores over HTTP: only what is missing is sent, and cut uploads go on."""

from __future__ import annotations

import http.client
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from tests.conftest import ended, overwrite, run_folder, until
from tests.server_process import Answer, ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.server.files.content_kinds import KINDS
from trainmaster.snapshots import take_snapshot
from trainmaster.snapshots.manifest import manifest_path
from trainmaster.snapshots.uploads import Upload, sweep_uploads

BASE = "/api/v1/workspaces/vision"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("data")
    root = tmp_path_factory.mktemp("server") / "root"
    process = ServerProcess(root, settings={"data_folders": [str(data)]})
    process.create_workspace("vision")
    yield process
    process.end()


@pytest.fixture(scope="module")
def workspace(server: ServerProcess) -> Workspace:
    return Workspace(path=server.root / "workspaces" / "vision")


class Laptop:
    """A folder of another machine, with its snapshot."""

    def __init__(self, server: ServerProcess, folder: Path, **files: bytes) -> None:
        self.server = server
        self.folder = folder
        source = folder / "source"
        source.mkdir(parents=True)
        for name, content in files.items():
            (source / f"{name}.py").write_bytes(content)
        self.source = source
        self.id = take_snapshot(source, folder / "cache").id
        self.manifest = Path(manifest_path(str(folder / "cache"), self.id)).read_bytes()
        self.files: list[dict[str, Any]] = json.loads(self.manifest)["files"]

    def missing(self) -> list[str]:
        digests = [[file["digest"], file["size"]] for file in self.files]
        answer = self.server.request("POST", f"{BASE}/contents/snapshots/missing", {"digests": digests})
        found: list[str] = answer.json()["missing"]
        return found

    def send(self, digest: str, content: bytes | None = None) -> Answer:
        blob = self.folder / "cache" / "blobs" / digest[:2] / digest
        body = blob.read_bytes() if content is None else content
        return self.server.request("PUT", f"{BASE}/contents/snapshots/{digest}", body)

    def commit(self) -> Answer:
        return self.server.request("PUT", f"{BASE}/snapshots/{self.id}", self.manifest)


def test_a_snapshot_is_sent_and_runs(server: ServerProcess, workspace: Workspace, tmp_path: Path) -> None:
    laptop = Laptop(server, tmp_path, train=b"print('from afar')", empty=b"", large=os.urandom(3 << 20))
    assert server.request("HEAD", f"{BASE}/snapshots/{laptop.id}").status == 404
    assert sorted(laptop.missing()) == sorted(file["digest"] for file in laptop.files)
    early = laptop.commit()
    assert (early.status, sorted(early.json()["missing"])) == (409, sorted(laptop.missing()))
    for digest in laptop.missing():
        assert laptop.send(digest).json()["complete"] is True
        # A client that did not get the answer sends it again.
        assert laptop.send(digest).json()["complete"] is True
    assert laptop.missing() == []
    assert laptop.commit().status == laptop.commit().status == 200
    assert server.request("HEAD", f"{BASE}/snapshots/{laptop.id}").status == 200
    assert server.request("GET", f"{BASE}/snapshots/{laptop.id}").body == laptop.manifest
    # The same folder on this machine has the same snapshot, and its contents are the ones that were sent.
    run = Experiment(workspace, "sent").submit(
        Estimator(str(laptop.source), entry_script="train.py", user_managed=True, compute_target="local")
    )
    assert ended(run)["status"] == "Completed"
    assert run.get_snapshot_id() == laptop.id
    assert "from afar" in (run_folder(run).logs / "70_driver_log.txt").read_text()
    archive = server.request("GET", f"{BASE}/snapshots/{laptop.id}/archive")
    with zipfile.ZipFile(io.BytesIO(archive.body)) as opened:
        assert sorted(opened.namelist()) == ["empty.py", "large.py", "train.py"]
        assert opened.read("large.py") == (laptop.source / "large.py").read_bytes()


def test_wrong_contents_and_manifests_count_for_nothing(server: ServerProcess, tmp_path: Path) -> None:
    laptop = Laptop(server, tmp_path, train=b"print('genuine')")
    digest = laptop.files[0]["digest"]
    assert laptop.send(digest, b"print('forged!')").status == 422
    assert laptop.missing() == [digest]
    assert laptop.commit().status == 409
    assert server.request("PUT", f"{BASE}/snapshots/{'0' * 64}", laptop.manifest).status == 400
    for wrong in ("", "..", "0" * 63, "A" * 64, f"{digest}x", f"..%2f{digest}"):
        assert server.request("PUT", f"{BASE}/contents/snapshots/{wrong}", b"x").status in (400, 404, 405)
    assert server.request("PUT", f"{BASE}/contents/other/{digest}", b"x").status == 404


def commit(server: ServerProcess, manifest: dict[str, Any]) -> Answer:
    text = json.dumps(manifest).encode()
    return server.request("PUT", f"{BASE}/snapshots/{blake3(text).hexdigest()}", text)


def test_the_limits_of_snapshots_are_checked(server: ServerProcess) -> None:
    file = {"path": "a", "digest": "0" * 64, "size": 301 << 20, "executable": False}
    answer = commit(server, {"version": 1, "files": [file], "links": [], "folders": []})
    assert (answer.status, "too large" in answer.json()["error"]["headline"]) == (400, True)
    links = [{"path": f"link-{n}", "target": "x"} for n in range(100_001)]
    answer = commit(server, {"version": 1, "files": [], "links": links, "folders": []})
    assert (answer.status, "too large" in answer.json()["error"]["headline"]) == (400, True)
    header = {"Content-Range": f"bytes 0-9/{301 << 20}"}
    assert server.request("PUT", f"{BASE}/contents/snapshots/{'0' * 64}", b"0" * 10, headers=header).status == 413


def start_upload(
    server: ServerProcess, path: str, content: bytes, sent: int, start: int = 0
) -> http.client.HTTPConnection:
    """Sends the headers and a part of the body, and leaves the rest."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", path)
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.putheader("Content-Length", str(len(content) - start))
    connection.putheader("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    connection.endheaders()
    connection.send(content[start : start + sent])
    return connection


def received(server: ServerProcess, path: str) -> int:
    return int(server.request("HEAD", path).headers["x-received"])


def test_an_upload_goes_on_after_the_client_and_the_server_died(server: ServerProcess) -> None:
    content = os.urandom(10 << 20)
    path = f"{BASE}/contents/models/{sha256(content).hexdigest()}"
    connection = start_upload(server, path, content, 3 << 20)
    until(lambda: received(server, path) > 0)
    connection.close()
    # The server notes the end of the connection, and keeps what came.
    until(lambda: received(server, path) == 3 << 20)
    connection = start_upload(server, path, content, 4 << 20, start=3 << 20)
    until(lambda: received(server, path) > 3 << 20)
    server.kill()
    connection.close()
    server.start()
    start = received(server, path)
    assert 3 << 20 < start < 10 << 20
    gap = server.request(
        "PUT",
        path,
        content[-5:],
        headers={"Content-Range": f"bytes {len(content) - 5}-{len(content) - 1}/{len(content)}"},
    )
    assert (gap.status, gap.json()["received"]) == (409, start)
    headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
    assert server.request("PUT", path, content[start:], headers=headers).json()["complete"] is True
    assert server.request("GET", path).body == content
    head = server.request("HEAD", path).headers
    assert (head["x-complete"], head["x-received"]) == ("true", str(len(content)))


def test_two_senders_do_not_disturb_each_other(server: ServerProcess) -> None:
    content = os.urandom(2 << 20)
    path = f"{BASE}/contents/models/{sha256(content).hexdigest()}"
    connection = start_upload(server, path, content, 1 << 20)
    until(lambda: received(server, path) > 0)
    busy = server.request("PUT", path, content[:5], headers={"Content-Range": f"bytes 0-4/{len(content)}"})
    assert (busy.status, busy.headers["retry-after"]) == (409, "1")
    connection.send(content[1 << 20 :])
    assert connection.getresponse().status == 200
    connection.close()
    assert server.request("GET", path).body == content


def test_uploads_that_nobody_continues_are_removed(tmp_path: Path) -> None:
    blobs, kind = str(tmp_path), KINDS["models"]
    upload = Upload(blobs, "0" * 64, "ann", 0, kind.hashing)
    upload.write(b"abc")
    upload.close()
    sweep_uploads(blobs)
    assert len(os.listdir(tmp_path / ".uploads")) == 1
    sweep_uploads(blobs, now=time.time() + 25 * 3600)
    assert os.listdir(tmp_path / ".uploads") == []


def test_a_model_is_stored_when_all_its_contents_are_here(server: ServerProcess, workspace: Workspace) -> None:
    content = os.urandom(1000)
    digest = sha256(content).hexdigest()
    file = {"path": "net/weights.bin", "digest": digest, "size": 1000, "executable": False}
    text = json.dumps({"entry": "net", "files": [file], "version": 1}, sort_keys=True).encode()
    path = f"{BASE}/model-lists/{sha256(text).hexdigest()}"
    assert server.request("HEAD", path).status == 404
    early = server.request("PUT", path, text)
    assert (early.status, early.json()["missing"]) == (409, [digest])
    assert server.request("PUT", f"{BASE}/contents/models/{digest}", content).status == 200
    assert server.request("PUT", path, text).status == 200
    assert server.request("GET", path).body == text
    assert server.request("HEAD", path).status == 200
    # A damaged content is missing, and is replaced.
    blob = workspace.path / "models" / ".blobs" / digest[:2] / digest
    overwrite(blob, bytes(1000))
    missing = server.request("POST", f"{BASE}/contents/models/missing", {"digests": [[digest, 1000]]})
    assert missing.json() == {"missing": [digest]}
    assert server.request("PUT", f"{BASE}/contents/models/{digest}", content).status == 200
    assert blob.read_bytes() == content
    for evil in ("../weights.bin", "/etc/passwd", "other/weights.bin", "net/../../x"):
        bad = json.dumps({"entry": "net", "files": [{**file, "path": evil}], "version": 1}).encode()
        assert server.request("PUT", f"{BASE}/model-lists/{sha256(bad).hexdigest()}", bad).status == 400


def test_a_wheel_gets_an_address(server: ServerProcess, workspace: Workspace) -> None:
    content = os.urandom(5000)
    path = f"{BASE}/contents/wheels/{sha256(content).hexdigest()}"
    answer = server.request("PUT", f"{path}?name=tool-1.0-py3-none-any.whl", content).json()
    place = Path(answer["address"].removeprefix("file://"))
    assert place.read_bytes() == content
    assert place.is_relative_to(workspace.path / "wheels")
    again = server.request("PUT", f"{path}?name=tool-1.0-py3-none-any.whl", content)
    assert again.status == 400
    assert server.request("PUT", f"{path}?name=tool-1.0-py3-none-any.whl&exist_ok=true", content).json() == answer
    for name in ("", "x.txt", "..%2f..%2fx.whl", "%2fetc%2fx.whl", ".whl"):
        assert server.request("PUT", f"{path}?name={name}", content).status == 400
    assert not list((workspace.path / "wheels" / ".uploads").iterdir())


def test_files_of_datastores(server: ServerProcess, workspace: Workspace, tmp_path: Path) -> None:
    path = f"{BASE}/datastores/workspaceblobstore/files"
    content = os.urandom(3 << 20)
    assert server.request("PUT", f"{path}/sets/a/x.bin", content).json() == {"name": "sets/a/x.bin", "size": 3 << 20}
    assert server.request("PUT", f"{path}/sets/b.txt", b"first").status == 200
    assert server.request("PUT", f"{path}/sets/b.txt", b"second").status == 200
    listed = server.request("GET", f"{path}?prefix=sets").json()["files"]
    assert [(each["name"], each["size"]) for each in listed] == [("sets/a/x.bin", 3 << 20), ("sets/b.txt", 6)]
    assert server.request("GET", f"{path}?prefix=sets/b.txt").json()["files"][0]["name"] == "sets/b.txt"
    assert server.request("GET", f"{path}?prefix=none").json() == {"files": []}
    assert server.request("GET", f"{path}/sets/b.txt").body == b"second"
    part = server.request("GET", f"{path}/sets/a/x.bin", headers={"Range": "bytes=-7"})
    assert (part.status, part.body) == (206, content[-7:])
    assert server.request("GET", f"{BASE}/datastores/none/files").status == 404


def test_only_allowed_folders_are_opened(server: ServerProcess, workspace: Workspace, tmp_path: Path) -> None:
    allowed = Path(json.loads((server.root / "server.json").read_text())["data_folders"][0])
    (allowed / "mnist").mkdir()
    (allowed / "mnist" / "t10k").write_bytes(b"digits")
    for name, folder in (("allowed", allowed / "mnist"), ("evil", server.root), ("cloud", "s3://bucket")):
        record = {"name": name, "url": str(folder), "options": {}, "created_at": 1.0}
        server.call("vision", "datastores.put", record=record, overwrite=True)
    assert server.request("GET", f"{BASE}/datastores/allowed/files/t10k").body == b"digits"
    assert server.request("GET", f"{BASE}/datastores/evil/files").status == 403
    assert server.request("GET", f"{BASE}/datastores/evil/files/server.json").status == 403
    assert server.request("PUT", f"{BASE}/datastores/evil/files/x", b"x").status == 403
    assert server.request("GET", f"{BASE}/datastores/cloud/files").status == 409

"""Previews over REST: of files of runs, snapshots and datastores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import ended
from tests.server_process import Answer, ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.run.run import Run

BASE = "/api/v1/workspaces/vision"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "train.py").write_text(
        "import os, shutil\n"
        "from trainmaster import Run\n"
        "os.makedirs('outputs', exist_ok=True)\n"
        "for name in ('book.ipynb', 'table.csv', 'page.html', 'dot.png'):\n"
        "    shutil.copy(name, 'outputs')\n"
    )
    (folder / "book.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# Hi"}]}))
    (folder / "table.csv").write_text("x,y\n1,2\n")
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder / "dot.png").write_bytes(PNG)
    (folder / "deep").mkdir()
    (folder / "deep" / "ä b.txt").write_text("inside")
    (folder / "link.txt").symlink_to("train.py")
    return folder


@pytest.fixture(scope="module")
def run(server: ServerProcess, source: Path) -> Run:
    workspace = Workspace(path=server.root / "workspaces" / "vision")
    estimator = Estimator(str(source), entry_script="train.py", user_managed=True, compute_target="local")
    run = Experiment(workspace, "shown").submit(estimator)
    assert ended(run)["status"] == "Completed"
    return run


def ask(server: ServerProcess, path: str) -> Any:
    answer = server.request("GET", BASE + path)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def get(server: ServerProcess, path: str) -> Answer:
    return server.request("GET", BASE + path)


def test_files_of_a_run(server: ServerProcess, run: Run) -> None:
    top = f"/runs/{run.id}/previews/outputs"
    assert ask(server, f"{top}/book.ipynb")["notebook"]["cells"][0]["source"] == "# Hi"
    table = ask(server, f"{top}/table.csv?rows=1")["table"]
    assert [column["name"] for column in table["columns"]] == ["x", "y"] and table["rows"] == [["1", "2"]]
    assert ask(server, f"{top}/page.html")["text"] == "<script>alert(1)</script>"
    picture = ask(server, f"{top}/dot.png")
    assert (picture["kind"], picture["media_type"]) == ("image", "image/png")
    assert get(server, f"/runs/{run.id}/previews/outputs/none").status == 404
    assert get(server, f"/runs/{run.id}/previews/..%2fspec.json").status in (400, 404)
    assert get(server, f"{top}/table.csv?start=-1").status == 400


def test_secrets_are_hidden_in_previews_of_logs(server: ServerProcess, run: Run) -> None:
    names = [each["name"] for each in ask(server, f"/runs/{run.id}/files")["files"]]
    log = next(name for name in names if name.startswith("azureml-logs/"))
    assert ask(server, f"/runs/{run.id}/previews/{log}")["kind"] == "text"
    # Secrets cannot be found in its compressed bytes. By another name it is the same file.
    folder = server.root / "workspaces" / "vision" / "runs" / run.id / "files"
    pq.write_table(pa.table({"key": ["hunter22"]}), folder / "azureml-logs" / "table.parquet")
    (folder / "outputs" / "alias.parquet").symlink_to("../azureml-logs/table.parquet")
    for name in ("azureml-logs/table.parquet", "outputs/alias.parquet"):
        shown = ask(server, f"/runs/{run.id}/previews/{name}")
        assert shown["kind"] == "none" and "Secrets cannot be hidden" in shown["notice"]


def test_pages_are_only_sent_into_a_sandbox(server: ServerProcess, run: Run) -> None:
    page = get(server, f"/runs/{run.id}/pages/outputs/page.html")
    assert page.body == b"<script>alert(1)</script>"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"].split("; ")
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"] and "frame-ancestors 'self'" in policy
    for name in ("outputs/dot.png", "outputs/table.csv"):
        assert get(server, f"/runs/{run.id}/pages/{name}").status == 415
    assert get(server, f"/runs/{run.id}/pages/outputs/none.html").status == 404
    assert get(server, f"/runs/{run.id}/pages/..%2fspec.html").status in (400, 404)


def test_code_as_it_was_submitted(server: ServerProcess, run: Run, source: Path) -> None:
    snapshot = f"/snapshots/{ask(server, f'/runs/{run.id}')['snapshot_id']}"
    manifest = ask(server, snapshot)
    paths = {each["path"] for each in manifest["files"]}
    assert paths >= {"train.py", "deep/ä b.txt"}
    assert [each["path"] for each in manifest["links"]] == ["link.txt"]
    assert ask(server, f"{snapshot}/previews/{quote('deep/ä b.txt')}")["text"] == "inside"
    assert ask(server, f"{snapshot}/previews/train.py")["text"] == (source / "train.py").read_text()
    file = get(server, f"{snapshot}/files/page.html")
    assert file.body == b"<script>alert(1)</script>" and "attachment" in file.headers["content-disposition"]
    assert "sandbox" in file.headers["content-security-policy"]
    part = server.request("GET", f"{BASE}{snapshot}/files/train.py", headers={"Range": "bytes=0-5"})
    assert (part.status, part.body) == (206, b"import")
    shown = get(server, f"{snapshot}/files/dot.png?preview=image")
    assert shown.headers["content-type"] == "image/png" and shown.body == PNG
    assert get(server, f"{snapshot}/files/page.html?preview=image").status == 415


@pytest.mark.parametrize(
    "name", ["nothing.py", "link.txt", "..%2f..%2fworkspace.json", "deep", "%2e%2e/train.py", "train.py/", "a%00b"]
)
def test_nothing_else_is_read_from_a_snapshot(server: ServerProcess, run: Run, name: str) -> None:
    snapshot = ask(server, f"/runs/{run.id}")["snapshot_id"]
    for part in ("files", "previews"):
        assert get(server, f"/snapshots/{snapshot}/{part}/{name}").status in (400, 404)
    assert get(server, f"/snapshots/{'0' * 64}/files/train.py").status == 404
    assert get(server, "/snapshots/..%2fworkspace/files/train.py").status in (400, 404)


def test_files_of_a_datastore(server: ServerProcess) -> None:
    store = ask(server, "/datastores")["datastores"][0]["name"]
    path = f"{BASE}/datastores/{store}/files/seen/table.csv"
    assert server.request("PUT", path, b"a,b\n1,2\n").status == 200
    shown = ask(server, f"/datastores/{store}/previews/seen/table.csv")
    assert shown["table"]["rows"] == [["1", "2"]]
    assert get(server, f"/datastores/{store}/previews/none").status == 404

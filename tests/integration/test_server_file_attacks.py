"""Attacks on files and streams of the server. Each test fails when the defence it tries is taken away.

The classes are those of the reference of issue 15: traversal (1), stored addresses (2), links (3), addresses that the
server would fetch (8), scripts in pages (9), unpickling (10), unlimited bodies and slow clients (12).
"""

from __future__ import annotations

import http.client
import io
import json
import os
import pickle
import re
import select
import socket
import threading
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from tests.conftest import PATIENCE, ended, run_folder, until
from tests.server_process import Answer, ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.run.run import Run

BASE = "/api/v1/workspaces/vision"
TREASURE = b"only for the account of the server"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("server") / "root"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_SNAPSHOT_MAX_MB", "2")
        process = ServerProcess(root, settings={"limits": {"body_seconds": 2.0}})
    process.create_workspace("vision")
    process.create_workspace("other")
    (root / "treasure").write_bytes(TREASURE)
    yield process
    process.end()


@pytest.fixture(scope="module")
def workspace(server: ServerProcess) -> Workspace:
    return Workspace(path=server.root / "workspaces" / "vision")


@pytest.fixture(scope="module")
def run(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    source = tmp_path_factory.mktemp("source")
    (source / "train.py").write_text("open('outputs/model.bin', 'wb').write(b'weights')\nprint('hello')\n")
    found = Experiment(workspace, "attacked").submit(
        Estimator(str(source), entry_script="train.py", user_managed=True, compute_target="local")
    )
    assert ended(found)["status"] == "Completed"
    return found


def path_of(run: Run, rest: str) -> str:
    return f"{BASE}/runs/{run.id}/{rest}"


# 1. Traversal

_UP = [
    "../{}",
    "outputs/../../{}",
    "..%2f{}",
    "%2e%2e/{}",
    "%2e%2e%2f{}",
    "%252e%252e%252f{}",
    "..%5c{}",
    "%5c..%5c{}",
    "..%c0%af{}",
    "..%00/{}",
    "outputs%2f..%2f..%2f{}",
    "./../{}",
    "outputs/;/../../{}",
    "..;/{}",
    "outputs/%23/../../../{}",
    "//{}",
    "%2f{}",
    "code/../{}",
    "azureml-logs/../../{}",
]


@pytest.mark.parametrize("form", _UP)
def test_no_name_leads_out_of_the_files_of_a_run(server: ServerProcess, run: Run, form: str) -> None:
    """The names lead to the run's specification, to the database, and to what is beside the workspace."""
    assert run_folder(run).spec.is_file()
    for target in ("spec.json", "../../trainmaster.db", "..%2f..%2ftrainmaster.db", "../../../../treasure"):
        for route in ("files", "logs"):
            path = path_of(run, f"{route}/{form.format(target)}")
            for method in ("GET", "HEAD"):
                answer = server.request(method, path)
                assert answer.status in (400, 404), path
            assert TREASURE not in answer.body
        before = {each: each.stat().st_mtime_ns for each in run_folder(run).path.parent.parent.iterdir()}
        answer = server.request("PUT", path_of(run, f"files/{form.format(target)}"), b"planted")
        if answer.status == 200:
            # Such characters are allowed in names: then it is a file of the run.
            assert b"planted" in server.request("GET", path_of(run, f"files/{form.format(target)}")).body
        after = {each: each.stat().st_mtime_ns for each in run_folder(run).path.parent.parent.iterdir()}
        assert after.keys() == before.keys()
    assert (server.root / "treasure").read_bytes() == TREASURE
    assert b"planted" not in run_folder(run).spec.read_bytes()
    assert not any(each.read_bytes() == b"planted" for each in run_folder(run).path.iterdir() if each.is_file())


@pytest.mark.parametrize(
    "name", ["%2fetc%2fpasswd", "/etc/passwd", "C:%5cx", "..%2f..%2fx", "a%00b", "%0d%0aX:%20y", "."]
)
def test_no_new_file_gets_a_name_that_is_a_path_elsewhere(server: ServerProcess, run: Run, name: str) -> None:
    for path in (path_of(run, f"files/{name}"), f"{BASE}/datastores/workspaceblobstore/files/{name}"):
        assert server.request("PUT", path, b"planted").status in (400, 404), path


@pytest.mark.parametrize("run_id", ["..", "%2e%2e", "..%2fruns%2f{}", "{}%2f..%2f{}", "{}%00", "%2e", "{}%2ffiles"])
def test_no_run_id_leads_out_of_the_folder_of_runs(server: ServerProcess, run: Run, run_id: str) -> None:
    wanted = run_id.replace("{}", run.id)
    for rest in ("files", "files/spec.json", "logs", "logs/x", "events"):
        assert server.request("GET", f"{BASE}/runs/{wanted}/{rest}").status in (400, 404)


def test_no_digest_or_workspace_leads_elsewhere(server: ServerProcess) -> None:
    for evil in ("..%2f..%2ftreasure", "%2e%2e", "..%2f" + "0" * 61):
        for path in (f"{BASE}/contents/models/{evil}", f"{BASE}/snapshots/{evil}", f"{BASE}/model-lists/{evil}"):
            assert server.request("GET", path).status in (400, 404), path
            assert server.request("PUT", path, b"x").status in (400, 404), path
        assert server.request("GET", f"/api/v1/workspaces/{evil}/runs/x/files").status in (400, 404)


def test_datastore_paths_stay_inside(server: ServerProcess) -> None:
    for evil in ("..%2f..%2f..%2ftreasure", "%2e%2e/trainmaster.db", "../trainmaster.db"):
        answer = server.request("GET", f"{BASE}/datastores/workspaceblobstore/files/{evil}")
        assert answer.status in (400, 404)
        assert server.request("GET", f"{BASE}/datastores/workspaceblobstore/files?prefix={evil}").status == 400


# 2. Stored addresses


def test_an_address_of_a_datastore_is_not_opened_later(server: ServerProcess) -> None:
    own = server.root / "workspaces" / "vision"
    forms = [
        str(server.root),
        f"file://{server.root}",
        f"{own}/datastore/../../..",
        f"file://{own}/datastore/%2e%2e/%2e%2e/%2e%2e",
        str(own),
        f"{own}/runs",
        f"local://{server.root}",
    ]
    for number, url in enumerate(forms):
        record = {"name": f"evil{number}", "url": url, "options": {}, "created_at": 1.0}
        server.call("vision", "datastores.put", record=record, overwrite=True)
        path = f"{BASE}/datastores/evil{number}/files"
        assert server.request("GET", path).status == 403, url
        assert server.request("GET", f"{path}/treasure").status == 403, url
        assert server.request("PUT", f"{path}/planted", b"x").status == 403, url
    assert not (server.root / "planted").exists()


def test_a_model_list_cannot_name_files_elsewhere(server: ServerProcess) -> None:
    digest = sha256(b"x").hexdigest()
    assert server.request("PUT", f"{BASE}/contents/models/{digest}", b"x").status == 200
    for entry, path in (("..", "../x"), ("m", "m/../../x"), ("/etc", "/etc/x"), ("m", "x"), ("m", "m/a\0b"), ("", "")):
        files = [{"path": path, "digest": digest, "size": 1, "executable": False}]
        text = json.dumps({"entry": entry, "files": files, "version": 1}).encode()
        answer = server.request("PUT", f"{BASE}/model-lists/{sha256(text).hexdigest()}", text)
        assert answer.status == 400, (entry, path)
    files = [{"path": "m/x", "digest": "../../treasure", "size": 1, "executable": False}]
    text = json.dumps({"entry": "m", "files": files, "version": 1}).encode()
    assert server.request("PUT", f"{BASE}/model-lists/{sha256(text).hexdigest()}", text).status == 400


# 3. Links


def replace_by_link(place: Path, target: Path | str) -> None:
    """What a job may do with its own folder."""
    if place.is_dir() and not place.is_symlink():
        place.rename(place.with_name(f"{place.name}-away"))
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def restore(place: Path) -> None:
    place.unlink()
    place.with_name(f"{place.name}-away").rename(place)


def test_links_in_a_run_show_nothing_from_elsewhere(server: ServerProcess, run: Run) -> None:
    files = run_folder(run).files
    outside = server.root / "treasure"
    links = {
        "outputs/direct": outside,
        "outputs/relative": "../../../../../../treasure",
        "outputs/spec": run_folder(run).spec,
        "outputs/database": "../../../../trainmaster.db",
        "outputs/folder": server.root,
        "outputs/magic": f"/proc/{server.process.pid}/environ",
        "outputs/device": "/dev/zero",
    }
    for name, target in links.items():
        (files / name).symlink_to(target)
    os.mkfifo(files / "outputs" / "pipe")
    (files / "azureml-logs" / "linked.txt").symlink_to(outside)
    try:
        names = [each["name"] for each in server.request("GET", path_of(run, "files")).json()["files"]]
        assert not [name for name in names if name in links or "linked" in name or "pipe" in name]
        for name in (*links, "outputs/folder/treasure", "outputs/pipe", "azureml-logs/linked.txt"):
            for query in ("", "?preview=auto"):
                assert server.request("GET", path_of(run, f"files/{name}{query}")).status == 404, name
        logs = [each["name"] for each in server.request("GET", path_of(run, "logs")).json()["logs"]]
        assert "linked.txt" not in logs
        assert server.request("GET", path_of(run, "logs/linked.txt")).status == 404
        # Neither does an upload follow a link, in any part of its name.
        for name in ("outputs/direct", "outputs/folder/planted", "outputs/folder/deep/planted"):
            assert server.request("PUT", path_of(run, f"files/{name}"), b"x").status in (400, 409), name
            assert server.request("PUT", path_of(run, f"files/{name}?offset=0"), b"x").status in (400, 409, 500), name
        assert outside.read_bytes() == TREASURE
        assert not (server.root / "planted").exists()
    finally:
        for name in (*links, "outputs/pipe", "azureml-logs/linked.txt"):
            (files / name).unlink()


@pytest.mark.parametrize("part", ["files", "code", "files/azureml-logs", "journals", "."])
def test_a_folder_of_a_run_that_is_a_link_shows_nothing(server: ServerProcess, run: Run, part: str) -> None:
    """The root of a run's files may itself be replaced: it must not become the new root."""
    place = run_folder(run).path if part == "." else run_folder(run).path / part
    replace_by_link(place, server.root)
    try:
        paths = ("files/treasure", "files/code/treasure", "files/azureml-logs/treasure", "logs/treasure")
        for path in paths:
            answer = server.request("GET", path_of(run, path))
            assert (answer.status, TREASURE in answer.body) == (404, False), path
        for path in ("files", "files?left=true", "logs"):
            answer = server.request("GET", path_of(run, path))
            assert b"treasure" not in answer.body, path
        for path in ("files/planted", "files/code/planted", "files/azureml-logs/planted"):
            if server.request("PUT", path_of(run, path), b"x").status == 200:
                assert part in ("code", "journals", "files/azureml-logs")
        assert not (server.root / "planted").exists()
    finally:
        restore(place)
        for planted in run_folder(run).files.rglob("planted"):
            planted.unlink()


def test_the_folder_of_all_runs_that_is_a_link_shows_nothing(
    server: ServerProcess, workspace: Workspace, run: Run
) -> None:
    """Another workspace's runs are not read through this one's."""
    stranger = server.root / "workspaces" / "other" / "runs" / run.id / "files"
    stranger.mkdir(parents=True)
    (stranger / "theirs.txt").write_bytes(TREASURE)
    runs = workspace.path / "runs"
    replace_by_link(runs, server.root / "workspaces" / "other" / "runs")
    try:
        answer = server.request("GET", path_of(run, "files/theirs.txt"))
        assert (answer.status, TREASURE in answer.body) == (404, False)
        assert server.request("GET", path_of(run, "files")).status == 404
        assert server.request("PUT", path_of(run, "files/planted"), b"x").status == 404
    finally:
        restore(runs)


def test_links_in_a_datastore_lead_nowhere_else(server: ServerProcess, workspace: Workspace) -> None:
    store = workspace.path / "datastore"
    store.mkdir(exist_ok=True)
    (store / "link").symlink_to(server.root)
    path = f"{BASE}/datastores/workspaceblobstore/files"
    try:
        assert server.request("GET", f"{path}/link/treasure").status == 404
        assert server.request("PUT", f"{path}/link/planted", b"x").status == 400
        assert "treasure" not in server.request("GET", path).body.decode()
        assert not (server.root / "planted").exists()
    finally:
        (store / "link").unlink()
    replace_by_link(store, server.root)
    try:
        assert server.request("GET", f"{path}/treasure").status == 404
        assert server.request("PUT", f"{path}/planted", b"x").status == 400
    finally:
        restore(store)


def commit(server: ServerProcess, **lists: Any) -> Answer:
    text = json.dumps({"version": 1, "files": [], "links": [], "folders": [], **lists}).encode()
    return server.request("PUT", f"{BASE}/snapshots/{blake3(text).hexdigest()}", text)


def test_a_snapshot_cannot_write_through_its_links(server: ServerProcess) -> None:
    digest = blake3(b"x").hexdigest()
    assert server.request("PUT", f"{BASE}/contents/snapshots/{digest}", b"x").status == 200

    def file(path: str) -> dict[str, Any]:
        return {"path": path, "digest": digest, "size": 1, "executable": False}

    link = {"path": "a", "target": str(server.root)}
    assert commit(server, files=[file("b")], links=[link]).status == 200
    for wrong in (
        {"files": [file("a/planted")], "links": [link]},
        {"files": [file("a"), file("a/b")]},
        {"files": [file("a")], "links": [link]},
        {"files": [file("a"), file("a")]},
        {"links": [link], "folders": ["a/deep"]},
        {"files": [file("../x")]},
        {"files": [file("/x")]},
        {"files": [file("x\0y")]},
        {"links": [{"path": "../../x", "target": "y"}]},
        {"links": [{"path": "x", "target": "a\0b"}]},
        {"folders": [".."]},
        {"files": [{**file("x"), "digest": "../../treasure"}]},
        {"files": [{**file("x"), "size": -1}]},
        {"more": 1},
    ):
        assert commit(server, **wrong).status == 400, wrong


def test_an_archive_has_links_as_links(server: ServerProcess) -> None:
    answer = commit(server, links=[{"path": "treasure", "target": str(server.root / "treasure")}])
    assert answer.status == 200
    text = json.dumps(
        {
            "version": 1,
            "files": [],
            "links": [{"path": "treasure", "target": str(server.root / "treasure")}],
            "folders": [],
        }
    ).encode()
    archive = server.request("GET", f"{BASE}/snapshots/{blake3(text).hexdigest()}/archive").body
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.read("treasure") == os.fsencode(server.root / "treasure")


# 8. Addresses that the server would fetch


def test_the_server_fetches_no_address_it_is_given(server: ServerProcess, run: Run) -> None:
    asked: list[str] = []

    class Inner(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    inner = HTTPServer(("127.0.0.1", 0), Inner)
    thread = threading.Thread(target=inner.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{inner.server_port}/secret"
    try:
        for number, address in enumerate((url, f"simplecache::{url}", f"file://127.0.0.1:{inner.server_port}/x")):
            record = {"name": f"far{number}", "url": address, "options": {}, "created_at": 1.0}
            server.call("vision", "datastores.put", record=record, overwrite=True)
            for path in (f"{BASE}/datastores/far{number}/files", f"{BASE}/datastores/far{number}/files/secret"):
                assert server.request("GET", path).status in (400, 409), path
        for path in (f"files/{url}", f"logs/{url}", f"files/{url.replace('/', '%2f')}"):
            assert server.request("GET", path_of(run, path)).status in (400, 404)
    finally:
        inner.shutdown()
        thread.join()
        inner.server_close()
    assert asked == []


# 9. Scripts in pages


def test_nothing_of_a_file_runs_in_a_browser(server: ServerProcess, run: Run) -> None:
    page = b"<html><script>alert(document.cookie)</script></html>"
    for name in ("page.html", "page.xhtml", "page.svg", "page.xml", "page", "page.js", 'a"; x=".html', "<b>.html"):
        quoted = name.replace('"', "%22").replace(" ", "%20").replace("<", "%3c").replace(">", "%3e")
        assert server.request("PUT", path_of(run, f"files/pages/{quoted}"), page).status == 200
        answer = server.request("GET", path_of(run, f"files/pages/{quoted}"))
        assert answer.body == page
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert '"' not in answer.headers["content-disposition"]
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        for kind in ("auto", "text", "csv"):
            shown = server.request("GET", path_of(run, f"files/pages/{quoted}?preview={kind}"))
            assert shown.headers["content-type"] == "application/json"
        assert server.request("GET", path_of(run, f"files/pages/{quoted}?preview=image")).status == 415
    # A picture by its name only.
    assert server.request("PUT", path_of(run, "files/pages/evil.png"), page).status == 200
    assert server.request("GET", path_of(run, "files/pages/evil.png?preview=image")).status == 415
    log = run_folder(run).logs / "70_driver_log.txt"
    log.write_bytes(page)
    answer = server.request("GET", path_of(run, "logs/70_driver_log.txt"))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"


# 10. Unpickling


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mknod, (str(self._proof),)


def test_the_server_unpickles_nothing(server: ServerProcess, run: Run, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    evil = pickle.dumps(Planted(proof))
    digest = sha256(evil).hexdigest()
    assert server.request("PUT", path_of(run, "files/outputs/model.pkl"), evil).status == 200
    assert server.request("PUT", f"{BASE}/contents/models/{digest}", evil).status == 200
    files = [{"path": "model.pkl", "digest": digest, "size": len(evil), "executable": False}]
    text = json.dumps({"entry": "model.pkl", "files": files, "version": 1}).encode()
    assert server.request("PUT", f"{BASE}/model-lists/{sha256(text).hexdigest()}", text).status == 200
    for query in ("", "?preview=auto", "?preview=text", "?preview=csv"):
        server.request("GET", path_of(run, f"files/outputs/model.pkl{query}"))
    assert server.request("PUT", f"{BASE}/snapshots/{blake3(evil).hexdigest()}", evil).status == 400
    assert server.request("PUT", f"{BASE}/model-lists/{digest}", evil).status == 400
    for path in ("contents/models/missing", "operations/runs.list"):
        headers = {"Content-Type": "application/octet-stream"}
        assert server.request("POST", f"{BASE}/{path}", evil, headers=headers).status in (400, 415)
    assert not proof.exists()
    # It would have run.
    pickle.loads(evil)
    assert proof.exists()


def test_the_server_imports_nothing_that_unpickles() -> None:
    """Neither our code of the server nor that of the contents mentions a module that runs code from data."""
    source = Path(__file__).parents[2] / "src" / "trainmaster"
    for module in [
        *(source / "server").rglob("*.py"),
        source / "snapshots" / "uploads.py",
        source / "snapshots" / "commits.py",
    ]:
        text = module.read_text()
        for name in ("pickle", "marshal", "shelve", "joblib", "yaml.load", "eval(", "exec("):
            assert not re.search(rf"\b{re.escape(name)}", text), f"{module} mentions {name}"


# 12. Unlimited bodies, slow clients


def open_request(server: ServerProcess, method: str, path: str, *headers: str) -> socket.socket:
    """A request whose body the test sends by hand."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {server.token}", *headers, "", ""]
    connection.sendall("\r\n".join(lines).encode())
    return connection


def read_status(connection: socket.socket) -> int:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("runs/{}/journals/w?offset=0", 17 << 20),
        ("runs/{}/files/grows.txt?offset=0", 17 << 20),
        (f"contents/snapshots/{'0' * 64}", 2 << 20),
    ],
)
def test_bodies_in_chunks_are_limited_too(
    server: ServerProcess, workspace: Workspace, notebook_folder: Path, path: str, limit: int
) -> None:
    """The server stops to read while the client still sends. The client may see that before it sees the answer."""
    loose = Experiment(workspace, "loose").start_logging(snapshot_directory=None)
    wanted = f"{BASE}/{path.format(loose.id)}"
    with open_request(server, "PUT", wanted, "Transfer-Encoding: chunked") as connection:
        sent = 0
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        try:
            while not poll.poll(0):
                assert sent <= 4 * limit, "the server reads on and on"
                connection.sendall(b"40000\r\n" + b"x" * 0x40000 + b"\r\n")
                sent += 0x40000
            assert read_status(connection) == 413
        except ConnectionError:
            assert sent > limit
    kept = [*run_folder(loose).path.rglob("*"), *(workspace.path / "blobs").rglob("*")]
    assert all(each.stat().st_size <= limit for each in kept)
    loose.complete()


def test_an_announced_body_that_is_too_large_is_refused_before_it_is_read(server: ServerProcess, run: Run) -> None:
    manifest = f"{BASE}/snapshots/{'0' * 64}"
    content = f"{BASE}/contents/snapshots/{'0' * 64}"
    for path, size in ((manifest, 65 << 20), (path_of(run, "journals/w?offset=0"), 18 << 20), (content, 1 << 50)):
        with open_request(server, "PUT", path, f"Content-Length: {size}") as connection:
            assert read_status(connection) == 413, path


def test_a_client_that_stalls_is_dropped(server: ServerProcess, run: Run) -> None:
    """The limit is 2 s on this server. What such a client sent of a file is removed."""
    with open_request(server, "PUT", path_of(run, "files/slow/x"), "Content-Length: 1000") as connection:
        connection.sendall(b"x" * 10)
        assert read_status(connection) == 408
    until(lambda: not list((run_folder(run).files / "slow").iterdir()))


def test_a_client_that_does_not_read_costs_little_memory(server: ServerProcess, run: Run) -> None:
    """Twenty clients ask for a gigabyte each and read nothing."""
    large = run_folder(run).logs / "large.txt"
    with open(large, "wb") as file:
        file.truncate(1 << 30)

    def resident() -> int:
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) * 1024

    before = resident()
    connections = []
    try:
        for path in ("logs/large.txt/stream", "files/azureml-logs/large.txt") * 10:
            connection = open_request(server, "GET", path_of(run, path))
            connection.recv(1)
            connections.append(connection)
        # The server answers others meanwhile, again and again, and holds a few megabytes for each of them.
        for _ in range(20):
            assert server.request("GET", path_of(run, "files")).status == 200
        assert resident() - before < 200 << 20
    finally:
        for connection in connections:
            connection.close()
        large.unlink()


def test_deep_and_strange_json_is_refused(server: ServerProcess) -> None:
    deep = b'{"files":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for text in (deep, b"[]", b"null", b"{", b"\xff\xfe", b'{"version": 1e999}', b'{"version": NaN}'):
        assert server.request("PUT", f"{BASE}/snapshots/{blake3(text).hexdigest()}", text).status == 400
        assert server.request("PUT", f"{BASE}/model-lists/{sha256(text).hexdigest()}", text).status == 400
    for digests in ([1], [["x", 1]], [["0" * 64]], [["0" * 64, "1"]], [["0" * 64, 1.5]], "x", None):
        answer = server.request("POST", f"{BASE}/contents/models/missing", {"digests": digests})
        assert answer.status == 400, digests

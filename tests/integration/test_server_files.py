"""Files, logs and events of runs over HTTP: a real server, real runs, and clients that lose their connection."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.conftest import ended, run_folder, until
from tests.event_reader import EventReader
from tests.integration.conftest import Gate
from tests.server_process import Answer, ServerProcess

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.run.run import Run

SECRET = "hunter22-correct-horse"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


@pytest.fixture(scope="module")
def workspace(server: ServerProcess) -> Workspace:
    """The workspace of the server, as its own machine sees it."""
    return Workspace(path=server.root / "workspaces" / "vision")


@pytest.fixture
def launch(workspace: Workspace, project: Callable[..., Path]) -> Callable[..., Run]:
    def send(script: str, **settings: Any) -> Run:
        estimator = Estimator(
            str(project(train=script)), entry_script="train.py", user_managed=True, compute_target="local", **settings
        )
        return Experiment(workspace, "files").submit(estimator)

    return send


def path_of(run: Run, rest: str) -> str:
    return f"/api/v1/workspaces/vision/runs/{run.id}/{rest}"


@pytest.fixture(scope="module")
def finished(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with files, which has ended."""
    source = tmp_path_factory.mktemp("finished")
    (source / "train.py").write_text(
        "import os\n"
        "os.makedirs('outputs/deep/er')\n"
        "open('outputs/deep/er/weights.bin', 'wb').write(bytes(range(256)) * 4096)\n"
        "open('outputs/table.csv', 'w').write('x,y\\n' + ''.join('%d,%d\\n' % (n, n * n) for n in range(500)))\n"
        "open('outputs/page.html', 'w').write('<script>alert(1)</script>')\n"
        "open('outputs/draw.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>')\n"
        "open('outputs/dot.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 50)\n"
        "open('outputs/ä #1;%2e?.txt', 'w').write('odd name')\n"
        "open('left.txt', 'w').write('left behind')\n"
        "print('hello from rank 0')\n"
    )
    run = Experiment(workspace, "files").submit(
        Estimator(str(source), entry_script="train.py", user_managed=True, compute_target="local")
    )
    assert ended(run)["status"] == "Completed"
    return run


def test_files_are_listed_with_size_and_time(server: ServerProcess, finished: Run) -> None:
    files = {each["name"]: each for each in server.request("GET", path_of(finished, "files")).json()["files"]}
    assert sorted(files) == finished.get_file_names()
    weights = run_folder(finished).files / "outputs/deep/er/weights.bin"
    assert files["outputs/deep/er/weights.bin"]["size"] == 1 << 20
    assert files["outputs/deep/er/weights.bin"]["modified_at"] == pytest.approx(weights.stat().st_mtime)
    left = server.request("GET", path_of(finished, "files?left=true")).json()["files"]
    assert [each["name"] for each in left] == ["code/left.txt"]
    assert server.request("GET", path_of(finished, "files/code/left.txt")).body == b"left behind"


def test_a_file_is_downloaded_whole_and_in_parts(server: ServerProcess, finished: Run) -> None:
    content = bytes(range(256)) * 4096
    path = path_of(finished, "files/outputs/deep/er/weights.bin")

    def get(header: str, method: str = "GET") -> Answer:
        return server.request(method, path, headers={"Range": header} if header else {})

    assert (get("").status, get("").body) == (200, content)
    assert (get("bytes=1000-1999").status, get("bytes=1000-1999").body) == (206, content[1000:2000])
    assert get("bytes=1000-1999").headers["content-range"] == f"bytes 1000-1999/{1 << 20}"
    assert get("bytes=-10").body == content[-10:]
    assert get("bytes=1048570-").body == content[1048570:]
    assert (get(f"bytes={1 << 20}-").status, get(f"bytes={1 << 20}-").body) == (416, b"")
    assert get(f"bytes={1 << 20}-").headers["content-range"] == f"bytes */{1 << 20}"
    assert (get("nonsense").status, get("bytes=1-2,4-5").status) == (200, 200)
    head = get("", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(1 << 20))
    # A part of another state of the file is not mixed with this one.
    stale = server.request("GET", path, headers={"Range": "bytes=5-9", "If-Range": '"other"'})
    assert (stale.status, len(stale.body)) == (200, 1 << 20)
    same = server.request("GET", path, headers={"Range": "bytes=5-9", "If-Range": head.headers["etag"]})
    assert (same.status, same.body) == (206, content[5:10])


def test_a_name_with_odd_characters_is_decoded_once(server: ServerProcess, finished: Run) -> None:
    name = "outputs/ä #1;%2e?.txt"
    answer = server.request("GET", path_of(finished, "files/" + quote(name)))
    assert (answer.status, answer.body) == (200, b"odd name")
    assert server.request("GET", path_of(finished, "files/" + quote(quote(name)))).status == 404


def test_previews(server: ServerProcess, finished: Run) -> None:
    def preview(name: str, options: str = "preview=auto") -> Any:
        return server.request("GET", path_of(finished, f"files/{name}?{options}"))

    table = preview("outputs/table.csv", "preview=auto&rows=3").json()
    assert (table["kind"], table["rows"], table["is_all"]) == ("csv", [["x", "y"], ["0", "0"], ["1", "1"]], False)
    assert preview("outputs/deep/er/weights.bin").json()["kind"] == "none"
    text = preview("outputs/page.html", "preview=text&size=7").json()
    assert (text["text"], text["is_all"]) == ("<script", False)
    picture = preview("outputs/dot.png")
    assert (picture.headers["content-type"], picture.headers["content-disposition"]) == ("image/png", "inline")
    assert preview("outputs/draw.svg", "preview=image").status == 415


def test_upload_is_exact_repeatable_and_never_overwrites(server: ServerProcess, finished: Run) -> None:
    path = path_of(finished, "files/reports/first.bin")
    content = os.urandom(3 << 20)
    assert server.request("PUT", path, content).json() == {"name": "reports/first.bin", "size": 3 << 20}
    assert server.request("PUT", path, content).status == 200
    assert server.request("PUT", path, b"other").status == 409
    assert server.request("PUT", path + "?beside=true", b"other").json()["name"] == "reports/first_1.bin"
    assert server.request("GET", path).body == content
    assert "reports/first.bin" in finished.get_file_names()


def test_a_text_grows_by_offsets(server: ServerProcess, finished: Run) -> None:
    path = path_of(finished, "files/logs/user_log.txt")
    assert server.request("PUT", path + "?offset=0", b"one\ntwo\n").json()["size"] == 8
    assert server.request("PUT", path + "?offset=4", b"two\nthree\n").json()["size"] == 14
    assert server.request("PUT", path + "?offset=0", b"one\n").json()["size"] == 14
    gap = server.request("PUT", path + "?offset=20", b"later")
    assert (gap.status, gap.json()["size"]) == (409, 14)
    assert server.request("PUT", path + "?offset=4", b"TWO\n").status == 409
    assert server.request("GET", path).body == b"one\ntwo\nthree\n"


def test_a_run_without_a_folder_has_no_files_and_gets_one(server: ServerProcess, launch: Callable[..., Run]) -> None:
    """As one that waits in the queue."""
    run = launch("print('done')")
    assert ended(run)["status"] == "Completed"
    shutil.rmtree(run_folder(run).path)
    assert server.request("GET", path_of(run, "files")).json() == {"files": []}
    assert server.request("GET", path_of(run, "logs")).json() == {"logs": []}
    assert server.request("GET", path_of(run, "files/none")).status == 404
    assert server.request("PUT", path_of(run, "files/notes.txt"), b"before the start").status == 200
    assert server.request("GET", path_of(run, "files/notes.txt")).body == b"before the start"


def test_an_unknown_run_is_404(server: ServerProcess) -> None:
    for rest in ("files", "files/x", "logs", "logs/x", "logs/x/stream", "events"):
        answer = server.request("GET", f"/api/v1/workspaces/vision/runs/nothing/{rest}")
        assert (answer.status, answer.json()["error"]["type"]) == (404, "RunNotFoundException"), rest


# Logs


def follow_text(server: ServerProcess, run: Run, last_id: str = "") -> str:
    """The text of the log of rank 0, as a client gets it that follows it to the end."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with EventReader(server, path_of(run, "logs/70_driver_log.txt/stream"), headers) as reader:
        return "".join(event.data["text"] for event in reader if event.kind == "text")


def test_logs_are_listed_and_read_from_offsets(server: ServerProcess, finished: Run) -> None:
    logs = {each["name"]: each for each in server.request("GET", path_of(finished, "logs")).json()["logs"]}
    log = logs["70_driver_log.txt"]
    assert (log["rank"], log["attempt"]) == (0, None)
    whole = (run_folder(finished).logs / "70_driver_log.txt").read_bytes()
    assert log["size"] == len(whole)
    path = path_of(finished, "logs/70_driver_log.txt")
    part = server.request("GET", f"{path}?identity={log['identity']}&start=6")
    assert (part.body, part.headers["x-next-offset"]) == (whole[6:], str(len(whole)))
    assert part.headers["x-identity"] == log["identity"]
    assert server.request("GET", f"{path}?last=5").body == whole[-5:]
    other = server.request("GET", f"{path}?identity=1&start=6")
    assert (other.status, other.body, other.headers["x-next-offset"]) == (200, b"", "6")


def test_a_log_is_followed_live_through_retries(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    first, second = gate("first"), gate("second")
    run = launch(
        "import os, sys\n"
        "attempt = os.environ['TRAINMASTER_ATTEMPT']\n"
        "print('attempt', attempt, 'ä', flush=True)\n"
        f"if attempt == '1':\n    {first.wait}\n    sys.exit(3)\n"
        f"{second.wait}\nprint('the end')\n",
        max_retries=1,
    )
    first.await_arrival()
    with EventReader(server, path_of(run, "logs/70_driver_log.txt/stream")) as reader:
        assert reader.next("text").data["text"] == "attempt 1 ä\n"
        first.open()
        second.await_arrival()
        begun = reader.next("log")
        assert begun.data["attempt"] is None
        # A script writes its lines in parts.
        text = ""
        while text != "attempt 2 ä\n":
            seen = reader.next("text")
            text += seen.data["text"]
            assert "attempt 2 ä\n".startswith(text)
    # Another connection goes on exactly there.
    with EventReader(server, path_of(run, "logs/70_driver_log.txt/stream"), {"Last-Event-ID": seen.id}) as reader:
        second.open()
        rest = list(reader)
    assert "".join(event.data["text"] for event in rest if event.kind == "text") == "the end\n"
    assert (rest[-1].kind, rest[-1].data["status"]) == ("end", "Completed")
    logs = server.request("GET", path_of(run, "logs")).json()["logs"]
    assert [each["attempt"] for each in logs if each["rank"] == 0] == [1, None]
    kept = [run_folder(run).logs / "attempt_1" / "70_driver_log.txt", run_folder(run).logs / "70_driver_log.txt"]
    assert follow_text(server, run) == "".join(log.read_text() for log in kept)


def test_secrets_are_hidden_in_logs_whatever_name_leads_to_them(
    server: ServerProcess, workspace: Workspace, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    """While the script runs: at its end, secrets are hidden on the disk too."""
    here = gate()
    workspace.get_default_keyvault().set_secret("token", SECRET)
    run = launch(
        "import os\nfrom azureml.core import Run\n"
        "run = Run.get_context()\nvalue = run.get_secret('token')\n"
        "print('a' * 1000)\nprint('the secret is', value)\nprint('b' * 1000, flush=True)\n"
        "os.makedirs('outputs', exist_ok=True)\n"
        f"os.symlink('../../files/azureml-logs/70_driver_log.txt', 'outputs/alias.txt')\n{here.wait}\n"
    )
    here.await_arrival()
    whole = (run_folder(run).logs / "70_driver_log.txt").read_bytes()
    place = whole.index(SECRET.encode())
    log, file = path_of(run, "logs/70_driver_log.txt"), path_of(run, "files/azureml-logs/70_driver_log.txt")
    with EventReader(server, f"{log}/stream") as reader:
        streamed = reader.next("text").data["text"].encode()
    answers = [
        server.request("GET", log).body,
        server.request("GET", file).body,
        streamed,
        server.request("GET", f"{log}?start={place + 3}").body,
        server.request("GET", file, headers={"Range": f"bytes={place - 5}-{place + 4}"}).body,
        server.request("GET", file, headers={"Range": f"bytes={place + 4}-{place + 40}"}).body,
        server.request("GET", f"{file}?preview=text").body,
        server.request("GET", path_of(run, "files/outputs/alias.txt")).body,
        server.request("GET", path_of(run, "previews/azureml-logs/70_driver_log.txt")).body,
        server.request("GET", path_of(run, "previews/outputs/alias.txt")).body,
    ]
    here.open()
    assert ended(run)["status"] == "Completed"
    hidden = whole[:place] + b"*" * len(SECRET) + whole[place + len(SECRET) :]
    assert answers[0] == answers[1] == answers[2] == answers[7] == hidden
    assert answers[3] == hidden[place + 3 :]
    assert (answers[4], answers[5]) == (hidden[place - 5 : place + 5], hidden[place + 4 : place + 41])
    for length in range(4, len(SECRET)):
        assert not any(SECRET[:length].encode() in answer for answer in (answers[6], *answers[8:]))


def test_a_long_log_opens_at_its_end(server: ServerProcess, finished: Run) -> None:
    log = run_folder(finished).logs / "long.txt"
    with open(log, "wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 30)
        file.write("ä the last line\n".encode())
    try:
        path = path_of(finished, "logs/long.txt")
        assert server.request("GET", f"{path}?last=9").body == b"ast line\n"
        # In the middle of the character.
        with EventReader(server, f"{path}/stream?last=16") as reader:
            events = list(reader)
        assert [event.data["text"] for event in events if event.kind == "text"] == [" the last line\n"]
        assert events[1].id.endswith(f":{log.stat().st_size}")
    finally:
        log.unlink()


# Events


def test_states_and_growing_files_are_reported_until_the_end(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    here = gate()
    run = launch(
        "from azureml.core import Run\n"
        f"{here.wait}\nRun.get_context().log('loss', 1.0)\nprint('x', flush=True)\n{here.wait}\n"
    )
    with EventReader(server, path_of(run, "events?files=logs,journals")) as reader:
        assert next(iter(reader)).kind == "files"
        here.await_arrival()
        until(lambda: reader.next("state").data["status"] == "Running")
        here.open()
        assert reader.next("files").data == {"kinds": ["journals", "logs"]}
        here.await_arrival()
        here.open()
        events = list(reader)
    assert events[-1].kind == "state"
    assert events[-1].data == {"run_id": run.id, "status": "Completed", "ended": True}


def test_many_clients_share_one_watch(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    here = gate()
    run = launch(f"print('begin', flush=True)\n{here.wait}\nprint('end')\n")
    here.await_arrival()
    readers = [EventReader(server, path_of(run, "logs/70_driver_log.txt/stream")) for _ in range(20)]
    for reader in readers:
        assert reader.next("text").data["text"] == "begin\n"
    kinds = []
    for handle in Path(f"/proc/{server.process.pid}/fd").iterdir():
        # The server opens and closes files meanwhile.
        with contextlib.suppress(FileNotFoundError):
            kinds.append(os.readlink(handle))
    assert kinds.count("anon_inode:inotify") == 1
    here.open()
    for reader in readers:
        assert "".join(event.data["text"] for event in reader if event.kind == "text") == "end\n"
        reader.close()


def test_changes_of_all_runs_are_reported_and_continued(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    here = gate()
    path = "/api/v1/workspaces/vision/changes"
    with EventReader(server, path) as reader, EventReader(server, path) as other:
        first = reader.next("changes")
        assert (first.data["runs"], first.data["whole"]) == ([], True)
        assert other.next("changes").data["whole"]
        run = launch(here.wait)
        seen = reader.next("changes")
        assert {each["id"] for each in seen.data["runs"]} == {run.id}
        assert {each["id"] for each in other.next("changes").data["runs"]} == {run.id}
    here.await_arrival()
    here.open()
    assert ended(run)["status"] == "Completed"
    with EventReader(server, path, {"Last-Event-ID": seen.id}) as reader:
        later = reader.next("changes")
        assert [each["status"] for each in later.data["runs"]] == ["Completed"]
        assert later.data["whole"]
    # Of another dispatcher: the client has to read everything again.
    with EventReader(server, path, {"Last-Event-ID": "nothing.7"}) as reader:
        assert reader.next("changes").data["whole"] is False


# The server is killed


def test_a_stream_that_is_cut_by_a_kill_goes_on_exactly(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    here = gate()
    lines = 20_000
    run = launch(
        f"for n in range({lines}):\n"
        f"    print('line', n, 'äöü€', flush=n % 50 == 0)\n"
        f"    if n == {lines // 2}:\n        {here.wait}\n"
    )
    here.await_arrival()
    text, last_id = "", ""
    with EventReader(server, path_of(run, "logs/70_driver_log.txt/stream")) as reader:
        while "line 100 " not in text:
            event = reader.next("text")
            text, last_id = text + event.data["text"], event.id
        server.kill()
        here.open()
    server.start()
    while True:
        headers = {"Last-Event-ID": last_id}
        with EventReader(server, path_of(run, "logs/70_driver_log.txt/stream"), headers) as reader:
            for event in reader:
                text += event.data["text"] if event.kind == "text" else ""
                last_id = event.id or last_id
                if len(text) % 7 == 0:
                    # Cut by the client, in the middle.
                    break
            else:
                break
    assert text == (run_folder(run).logs / "70_driver_log.txt").read_text()


def test_an_upload_that_is_cut_by_a_kill_leaves_nothing_and_can_be_repeated(
    server: ServerProcess, finished: Run
) -> None:
    path = path_of(finished, "files/reports/big.bin")
    content = os.urandom(8 << 20)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", path)
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders()
    connection.send(content[: 4 << 20])
    folder = run_folder(finished).files / "reports"
    until(lambda: any(each.stat().st_size >= 1 << 20 for each in folder.glob(".partial-*")))
    server.kill()
    connection.close()
    server.start()
    assert server.request("GET", path).status == 404
    assert "reports/big.bin" not in finished.get_file_names()
    assert not [name for name in finished.get_file_names() if ".partial-" in name]
    assert server.request("PUT", path, content).status == 200
    assert server.request("GET", path).body == content


def test_a_server_that_stops_ends_its_streams(
    server: ServerProcess, launch: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    here = gate()
    run = launch(f"print('begin', flush=True)\n{here.wait}\nprint('end')\n")
    here.await_arrival()
    paths = ("logs/70_driver_log.txt/stream", "events?files=logs", "../../changes")
    readers = [EventReader(server, os.path.normpath(path_of(run, path))) for path in paths]
    seen = readers[0].next("text")
    assert server.stop() == 0
    for reader in readers:
        assert not [event for event in reader if event.kind in ("end", "error")]
        reader.close()
    server.start()
    here.open()
    assert follow_text(server, run, seen.id) == "end\n"


# Journals


def test_journals_are_appended_exactly(server: ServerProcess, workspace: Workspace, notebook_folder: Path) -> None:
    run = Experiment(workspace, "journals").start_logging(snapshot_directory=None)
    path = path_of(run, "journals/laptop-1")
    lines = b"".join(b'{"k":"metric","n":"loss","v":%d,"t":%d.0}\n' % (n, n) for n in range(10))
    cut = len(lines) // 2
    assert server.request("PUT", f"{path}?offset=0", lines[:cut]).json() == {"size": cut}
    gap = server.request("PUT", f"{path}?offset={cut + 1}", lines[cut + 1 :])
    assert (gap.status, gap.json()["size"]) == (409, cut)
    # Nobody knows whether it arrived: all of it is sent again.
    assert server.request("PUT", f"{path}?offset=0", lines).json() == {"size": len(lines)}
    assert server.request("PUT", f"{path}?offset={cut}", lines[cut:]).json() == {"size": len(lines)}
    conflict = server.request("PUT", f"{path}?offset=0", b"x" + lines[1:])
    assert (conflict.status, "size" in conflict.json()) == (409, False)
    assert (run_folder(run).journals / "laptop-1.jsonl").read_bytes() == lines
    assert run.get_metrics()["loss"] == list(range(10))
    for writer in ("..%2fx", "a%2fb", ".hidden", "%00"):
        assert server.request("PUT", path_of(run, f"journals/{writer}?offset=0"), b"x").status == 400
    run.complete()


def test_many_senders_of_one_journal_add_each_byte_once(
    server: ServerProcess, workspace: Workspace, notebook_folder: Path
) -> None:
    run = Experiment(workspace, "journals").start_logging(snapshot_directory=None)
    lines = b"".join(b'{"k":"metric","n":"a","v":%d,"t":1.0}\n' % n for n in range(2000))
    path = path_of(run, "journals/w")

    def send(step: int) -> None:
        offset = 0
        while offset < len(lines):
            answer = server.request("PUT", f"{path}?offset={offset}", lines[offset : offset + step]).json()
            offset = answer["size"]

    threads = [threading.Thread(target=send, args=(step,)) for step in (1000, 3001, 7919)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (run_folder(run).journals / "w.jsonl").read_bytes() == lines
    run.complete()


def test_other_programs_log_to_the_run_of_a_job_too(server: ServerProcess, finished: Run) -> None:
    """As at home: a program that evaluates a finished run adds what it found."""
    answer = server.request("PUT", path_of(finished, "journals/me?offset=0"), b"{}\n")
    assert (answer.status, answer.json()) == (200, {"size": 3})

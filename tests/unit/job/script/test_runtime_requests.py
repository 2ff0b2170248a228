"""Letters at the script, with the real other side: what is written, what is read, and what stays."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster.job.errors import ModelNotFoundException, ModelPathNotFoundException, ServiceException
from trainmaster.job.helper import job_requests as requests
from trainmaster.job.script.asking import ask, can_ask, is_elsewhere
from trainmaster.job.script.requests import JobRequest


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run on a machine from where the dispatcher is not reached."""
    folder = tmp_path / "run"
    (folder / "code" / "outputs").mkdir(parents=True)
    requests.make_folder(str(folder))
    monkeypatch.setenv("TRAINMASTER_LETTERS", str(folder / "letters"))
    return folder


@pytest.fixture
def answers(run: Path) -> Iterator[Callable[[Any], list[dict[str, Any]]]]:
    """Has the next letter answered so; gives the list into which it comes."""
    threads: list[threading.Thread] = []

    def begin(reply: Any) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []

        def answer() -> None:
            deadline = time.monotonic() + 60
            while not (names := requests.pending(str(run))) and time.monotonic() < deadline:
                time.sleep(0.001)
            text = requests.read(str(run), names[0])
            assert text is not None
            seen.append(
                {**json.loads(text), "modes": [path.stat().st_mode & 0o777 for path in (run / "letters").iterdir()]}
            )
            requests.answer(str(run), names[0], json.dumps(reply).encode())

        threads.append(threading.Thread(target=answer, daemon=True))
        threads[-1].start()
        return seen

    yield begin
    for thread in threads:
        thread.join(60)


def test_asked_and_answered_without_a_trace(run, answers):
    assert is_elsewhere() and can_ask()
    seen = answers({"result": {"token": "ä"}})
    assert ask("secrets.fetch", {"names": ["token"]}, "secrets", "") == {"token": "ä"}
    (asked,) = seen
    assert (asked["op"], asked["args"], asked["modes"]) == ("secrets.fetch", {"names": ["token"]}, [0o600])
    assert "files" not in asked
    assert (run / "letters").stat().st_mode & 0o777 == 0o700
    assert list((run / "letters").iterdir()) == []


def test_an_error_is_the_same_error(answers):
    answers({"error": {"type": "ModelNotFoundException", "headline": "no such model"}})
    with pytest.raises(ModelNotFoundException, match="no such model"):
        ask("models.get", {"name": "m"}, "models", "")


def test_nobody_gets_an_answer_to_a_letter_that_was_taken_back(run):
    requests.answer(str(run), "gone", b"secret")
    assert list((run / "letters").iterdir()) == []


def test_a_folder_that_cannot_be_written(run, monkeypatch):
    (run / "file").touch()
    monkeypatch.setenv("TRAINMASTER_LETTERS", str(run / "file" / "letters"))
    with pytest.raises(ServiceException, match="cannot be asked for its") as caught:
        ask("models.list", {}, "models", "Do that.")
    assert caught.value.hint == "Do that."


def request(path: Path, children: list[str] | None = None, of_run: bool = False) -> dict[str, Any]:
    return {"op": "models.keep", "args": {"path": str(path), "of_run": of_run, "child_paths": children}}


def test_files_of_the_run_are_named_as_they_are(run):
    (run / "code/outputs/m").touch()
    with JobRequest(str(run / "letters"), "models", "") as letter:
        sent = letter.with_files(request(run / "code/outputs/m"))
        assert (sent["args"]["path"], sent["files"]) == ("code/outputs/m", True)
        assert letter.with_files(request(Path("outputs/m"), of_run=True))["args"]["path"] == "outputs/m"
    assert not (run / "kept").exists()


def test_other_files_are_sent_along_and_gone_afterwards(run, tmp_path):
    for name in ("a", "sub/b", "c"):
        (tmp_path / "parts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "parts" / name).write_text(name)
    with JobRequest(str(run / "letters"), "models", "") as letter:
        sent = letter.with_files(request(tmp_path / "parts", ["a", str(tmp_path / "parts/sub")]))["args"]
        assert sent["child_paths"] is None
        top = run / sent["path"]
        assert sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()) == ["a", "sub/b"]
    with JobRequest(str(run / "letters"), "models", "") as letter:
        assert (run / letter.with_files(request(tmp_path / "parts/c"))["args"]["path"]).read_text() == "c"
    assert list((run / "kept").rglob("*")) == []


@pytest.mark.parametrize(("path", "children"), [("nothing", None), ("parts", ["../run"]), ("parts", ["nothing"])])
def test_what_is_not_there_is_refused(run, tmp_path, path, children):
    (tmp_path / "parts").mkdir()
    with JobRequest(str(run / "letters"), "models", "") as letter, pytest.raises(ModelPathNotFoundException):
        letter.with_files(request(tmp_path / path, children))

"""What every backend of a workspace has to do, whether the workspace is a folder of this machine or on a server.

    from trainmaster.testing import BackendConformance, BackendPlace

    class TestMyBackend(BackendConformance):
        @pytest.fixture
        def place(self):
            return BackendPlace(backend, folder)

The suite writes to `folder` what a job on the machine of the dispatcher would write.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.runs.attempts import note_failure, set_logs_apart
from trainmaster.job.errors import (
    RunNotFoundException,
    SnapshotException,
    TrainmasterError,
    UserErrorException,
    WebserviceException,
)
from trainmaster.sdk.backend.backend import JOURNALS, LOGS, Backend, RunFiles, RunNews
from trainmaster.sdk.run.logs import LogReader
from trainmaster.shared.attempts import FailedAttempt
from trainmaster.shared.folders import RunFolder, WorkspaceFolder, home
from trainmaster.shared.records import RunError, RunRecord, Status
from trainmaster.shared.serialization import to_plain
from trainmaster.snapshots.blobs import blob_path

_THREADS = 8
_PATIENCE_SECONDS = 60.0
# Names that lead out of the files of a run.
_OUTSIDE = ("../spec.json", "/etc/passwd", "outputs/../../spec.json", "code/../spec.json", "..", "")


@dataclass(frozen=True)
class BackendPlace:
    """A backend, and the folder of its workspace as the dispatcher sees it."""

    backend: Backend
    folder: WorkspaceFolder
    home: Path = field(default_factory=home)
    """The user's own folder of the dispatcher, by default that of this process."""


@dataclass(frozen=True)
class TestedRun:
    """A run without a job: its files by the backend, and its folder as the dispatcher sees it."""

    id: str
    files: RunFiles
    folder: RunFolder

    def write_log(self, name: str, text: str) -> None:
        """Appends to a log, as the agent of a job does."""
        self.folder.logs.mkdir(parents=True, exist_ok=True)
        with open(self.folder.logs / name, "a") as file:
            file.write(text)


class BackendConformance:
    """Inherit this and give the fixture `place`."""

    @pytest.fixture
    def backend(self, place: BackendPlace) -> Backend:
        """The backend."""
        return place.backend

    @pytest.fixture
    def run(self, place: BackendPlace) -> TestedRun:
        """A new run, which is Running."""
        run_id = create_run(place.backend.connection.call)
        return TestedRun(run_id, place.backend.run_files(run_id), place.folder.run(run_id))

    # The connection

    def test_call(self, backend: Backend) -> None:
        """An operation returns its result, and raises its own errors with all that they say."""
        assert backend.connection.call("status")["active"] is not None
        with pytest.raises(RunNotFoundException) as raised:
            backend.connection.call("runs.get", run_id="nobody")
        assert "nobody" in raised.value.headline
        with pytest.raises(TrainmasterError):
            backend.connection.call("runs.get", run_id="nobody", whatever=1)

    def test_call_from_threads(self, backend: Backend, run: TestedRun) -> None:
        """Threads may share a connection; each gets its own answer."""
        found: list[tuple[str, str]] = []

        def ask(number: int) -> None:
            name = f"thread-{number}"
            backend.connection.call("runs.tags.set", run_id=run.id, tags={name: str(number)})
            tags = backend.connection.call("runs.get", run_id=run.id)["tags"]
            found.append((tags[name], str(number)))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == _THREADS and all(mine == given for mine, given in found)

    def test_call_after_close(self, backend: Backend) -> None:
        """A closed connection is opened again by the next call."""
        backend.connection.close()
        assert backend.connection.call("status")

    def test_call_in_a_forked_process(self, backend: Backend) -> None:
        """A child of a fork gets its own answers, and its parent goes on."""
        backend.connection.call("status")
        child = os.fork()
        if child == 0:
            try:
                backend.connection.call("status")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert backend.connection.call("status")

    def test_watch(self, backend: Backend, run: TestedRun) -> None:
        """A watch begins with the current state and ends with the last one."""
        seen: list[RunNews] = []
        with backend.connection.watch(run.id) as watch:
            for news in watch:
                if not seen:
                    finish(backend, run.id)
                seen.append(news)
        assert [(news["run_id"], news["status"], news["ended"]) for news in (seen[0], seen[-1])] == [
            (run.id, "Running", False),
            (run.id, "Completed", True),
        ]

    def test_watch_an_ended_run(self, backend: Backend, run: TestedRun) -> None:
        """A watch of a run that has ended says so, and ends."""
        finish(backend, run.id)
        with backend.connection.watch(run.id) as watch:
            assert [news["ended"] for news in watch] == [True]

    # Following a run

    def test_follow(self, backend: Backend, run: TestedRun) -> None:
        """The first look is at once; growing logs are reported; the end is the last."""
        run.write_log("70_driver_log.txt", "one\n")
        shown: list[str] = []
        reader = LogReader(run.files, headings=False)
        seen: list[RunNews | None] = []
        for news in limit_time(backend.follow_run(run.id)):
            reader.show(shown.append)
            seen.append(news)
            if len(seen) == 1:
                run.write_log("70_driver_log.txt", "two\n")
            elif "".join(shown) == "one\ntwo\n":
                run.write_log("70_driver_log.txt", "three\n")
                finish(backend, run.id)
        assert "".join(shown) == "one\ntwo\nthree\n"
        assert seen[0] is None and seen[-1] == {"run_id": run.id, "status": "Completed", "ended": True}

    def test_follow_logs_that_appear_later(self, backend: Backend, run: TestedRun) -> None:
        """The folder of the logs need not exist at the beginning."""
        has_written = False
        for _ in limit_time(backend.follow_run(run.id, (LOGS,))):
            if not has_written:
                has_written = True
                run.write_log("20_image_build_log.txt", "prepared\n")
            if run.files.logs():
                break
        assert [log.name for log in run.files.logs()] == ["20_image_build_log.txt"]

    def test_follow_journals(self, backend: Backend, run: TestedRun) -> None:
        """What a job logs is reported."""
        looks = backend.follow_run(run.id, (JOURNALS,))
        assert next(looks) is None
        run.folder.journals.mkdir(exist_ok=True)
        (run.folder.journals / "0-1-a.jsonl").write_text('{"k":"metric","n":"loss","v":0.5,"t":1.0}\n')
        for _ in limit_time(looks):
            if backend.connection.call("runs.series", run_id=run.id, name="loss"):
                break

    def test_follow_at_least_every_second(self, backend: Backend, run: TestedRun) -> None:
        """With `every`, there are looks without any news."""
        looks = limit_time(backend.follow_run(run.id, (), every=0.01))
        assert sum(next(looks) is None for _ in range(10)) >= 8

    def test_follow_an_ended_run(self, backend: Backend, run: TestedRun) -> None:
        """A run that has ended is looked at, and that is all."""
        finish(backend, run.id)
        assert list(limit_time(backend.follow_run(run.id)))[-1] == {
            "run_id": run.id,
            "status": "Completed",
            "ended": True,
        }

    # Files

    def test_add_and_read(self, run: TestedRun, tmp_path: Path) -> None:
        """A file or a stream is added whole, and read whole or in parts."""
        source = tmp_path / "model.bin"
        source.write_bytes(bytes(range(256)) * 4000)
        assert run.files.add("./outputs//model.bin", source) == "outputs/model.bin"
        assert run.files.add("plots/größe.txt", io.StringIO("größe")) == "plots/größe.txt"
        assert run.files.add("raw data/a b%2F#.bin", io.BytesIO(b"\0\xff")) == "raw data/a b%2F#.bin"
        run.files.flush(["outputs/model.bin"])
        run.files.flush_all()
        assert run.files.names() == ["outputs/model.bin", "plots/größe.txt", "raw data/a b%2F#.bin"]
        assert run.files.read("outputs/model.bin") == source.read_bytes()
        assert run.files.read("outputs/model.bin", 254, 4) == b"\xfe\xff\x00\x01"
        assert run.files.read("outputs/model.bin", 1_023_998) == b"\xfe\xff"
        assert run.files.read("raw data/a b%2F#.bin") == b"\0\xff"
        assert run.files.read("plots/größe.txt").decode() == "größe"
        wanted = ["plots/größe.txt", "gone", "outputs/model.bin"]
        assert run.files.sizes(wanted) == [("plots/größe.txt", 7), ("outputs/model.bin", 1_024_000)]
        assert run.files.has("plots/größe.txt") and not run.files.has("plots") and not run.files.has("gone")

    def test_an_empty_file(self, run: TestedRun) -> None:
        """A file may be empty."""
        run.files.add("outputs/empty", io.BytesIO(b""))
        assert run.files.read("outputs/empty") == b""
        assert run.files.sizes(run.files.names()) == [("outputs/empty", 0)]

    def test_files_never_change(self, run: TestedRun) -> None:
        """The same contents may be added again; others are refused, or get the next free name."""
        run.files.add("a.txt", io.StringIO("one"))
        run.files.add("a.txt", io.StringIO("one"))
        with pytest.raises(UserErrorException, match="already exists"):
            run.files.add("a.txt", io.StringIO("two"))
        assert run.files.add_beside("a.txt", io.StringIO("three")) == "a_1.txt"
        assert run.files.add_beside("b.txt", io.StringIO("four")) == "b.txt"
        assert {name: run.files.read(name) for name in run.files.names()} == {
            "a.txt": b"one",
            "a_1.txt": b"three",
            "b.txt": b"four",
        }

    def test_add_what_is_not_there(self, run: TestedRun, tmp_path: Path) -> None:
        """A path without a file is refused."""
        with pytest.raises(UserErrorException, match="there is no file"):
            run.files.add("a.txt", tmp_path / "nothing")
        assert run.files.names() == []

    def test_a_file_that_is_not_there(self, run: TestedRun, tmp_path: Path) -> None:
        """The error says which files there are."""
        run.files.add("outputs/model.bin", io.StringIO("x"))
        for read in (run.files.read, lambda name: run.files.copy(name, tmp_path / "copy")):
            with pytest.raises(UserErrorException, match=r"has no file 'outputs/modl\.bin'") as raised:
                read("outputs/modl.bin")
            assert "outputs/model.bin" in raised.value.hint
        assert not (tmp_path / "copy").exists()

    @pytest.mark.parametrize("name", _OUTSIDE)
    def test_no_name_leads_out(self, run: TestedRun, tmp_path: Path, name: str) -> None:
        """Neither reading nor adding leaves the files of the run."""
        (run.folder.path / "spec.json").write_text("{}")
        with pytest.raises(TrainmasterError):
            run.files.read(name)
        with pytest.raises(TrainmasterError):
            run.files.copy(name, tmp_path / "copy")
        with pytest.raises(TrainmasterError):
            run.files.add(name, io.StringIO("x"))
        assert run.files.read_log(name, "1", 0).data == b""
        assert not (tmp_path / "copy").exists() and run.files.names() == []

    def test_links_out_are_not_shown(self, run: TestedRun, tmp_path: Path) -> None:
        """A link that a script has put among its files leads nowhere."""
        secret = tmp_path / "secret"
        secret.write_text("secret")
        run.files.add("outputs/own", io.StringIO("x"))
        (run.folder.files / "outputs" / "link").symlink_to(secret)
        (run.folder.files / "outputs" / "folder").symlink_to(tmp_path)
        assert run.files.names() == ["outputs/own"]
        for name in ("outputs/link", "outputs/folder/secret"):
            with pytest.raises(TrainmasterError):
                run.files.read(name)

    def test_copy(self, run: TestedRun, tmp_path: Path) -> None:
        """A copy has the folder it needs; what cannot be written is one clear error."""
        run.files.add("outputs/model.bin", io.BytesIO(b"m" * 3_000_000))
        run.files.copy("outputs/model.bin", tmp_path / "new" / "folder" / "model.bin")
        assert (tmp_path / "new" / "folder" / "model.bin").read_bytes() == b"m" * 3_000_000
        (tmp_path / "file").write_text("")
        with pytest.raises(UserErrorException, match="cannot be copied"):
            run.files.copy("outputs/model.bin", tmp_path / "file" / "model.bin")

    def test_mirror(self, run: TestedRun, tmp_path: Path) -> None:
        """A mirror shows a folder of the run, also what is added later, until it is closed."""
        run.files.add("logs/one/events", io.StringIO("1"))
        mirror = run.files.mirror("logs", tmp_path / "below" / "mirror")
        mirror.update()
        assert (tmp_path / "below" / "mirror" / "one" / "events").read_text() == "1"
        run.files.add("logs/two", io.StringIO("2"))
        with open(run.folder.files / "logs" / "one" / "events", "a") as file:
            file.write("3")
        mirror.update()
        assert (tmp_path / "below" / "mirror" / "two").read_text() == "2"
        assert (tmp_path / "below" / "mirror" / "one" / "events").read_text() == "13"
        mirror.close()
        mirror.close()
        assert not os.path.lexists(tmp_path / "below" / "mirror")
        assert run.files.names() == ["logs/one/events", "logs/two"]

    # Logging

    def test_journal(self, backend: Backend, run: TestedRun) -> None:
        """What was logged is among the metrics that the next call returns; a journal may be opened again."""
        for value in (0.5, 0.25):
            journal = run.files.open_journal("client-1-a")
            journal.append({"k": "metric", "n": "loss", "v": value, "t": 1.0})
            journal.close()
        found = backend.connection.call("runs.series", run_id=run.id, name="loss")
        assert found[0]["values"] == [0.5, 0.25]

    def test_journal_of_a_run_that_ends(self, backend: Backend, run: TestedRun) -> None:
        """Everything that was logged is there when the run has ended."""
        journal = run.files.open_journal("client-1-a")
        for number in range(1000):
            journal.write(b'{"k":"metric","n":"loss","v":%d,"t":1.0}\n' % number)
        journal.close()
        finish(backend, run.id)
        found = backend.connection.call("runs.series", run_id=run.id, name="loss")
        assert found[0]["values"] == list(range(1000))

    def test_text(self, backend: Backend, run: TestedRun) -> None:
        """Text that was appended is a file of the run when it has ended."""
        for text in ("one\n", "zwölf \udc80\n"):
            with run.files.open_text("logs/user_log.txt") as file:
                file.write(text)
        run.files.flush_all()
        finish(backend, run.id)
        assert run.files.read("logs/user_log.txt").decode() == "one\nzwölf \\udc80\n"

    # Logs

    def test_logs(self, run: TestedRun) -> None:
        """Logs are listed by name and read from any offset; an identity stays while a log grows."""
        assert run.files.logs() == []
        run.write_log("70_driver_log_1.txt", "rank one\n")
        run.write_log("20_image_build_log.txt", "built\n")
        run.write_log("70_driver_log.txt", "größe")
        logs = run.files.logs()
        assert [(log.name, log.rank, log.attempt, log.size) for log in logs] == [
            ("20_image_build_log.txt", None, None, 6),
            ("70_driver_log.txt", 0, None, 7),
            ("70_driver_log_1.txt", 1, None, 9),
        ]
        assert len({log.identity for log in logs}) == 3
        driver = logs[1]
        assert run.files.read_log(driver.name, driver.identity, 0) == ("größe".encode(), 7)
        # In the middle of a character.
        assert run.files.read_log(driver.name, driver.identity, 3) == ("größe".encode()[3:], 7)
        run.write_log(driver.name, "!\n")
        assert run.files.logs()[1] == replace(driver, size=9)
        assert run.files.read_log(driver.name, driver.identity, 7) == (b"!\n", 9)
        assert run.files.read_log(driver.name, driver.identity, 9) == (b"", 9)

    def test_a_log_that_is_another_one(self, run: TestedRun) -> None:
        """Nothing is read from a log whose name is now that of another one, or that is gone."""
        run.write_log("70_driver_log.txt", "first\n")
        log = run.files.logs()[0]
        (run.folder.logs / log.name).rename(run.folder.logs / "kept")
        assert run.files.read_log(log.name, log.identity, 0) == (b"", 0)
        run.write_log(log.name, "second\n")
        assert run.files.read_log(log.name, log.identity, 2) == (b"", 2)
        assert run.files.logs()[0].identity != log.identity

    def test_logs_of_attempts(self, run: TestedRun) -> None:
        """The logs of a failed attempt come first and keep their identity; a reader shows each line once."""
        run.write_log("70_driver_log.txt", "first\n")
        before = run.files.logs()[0]
        shown: list[str] = []
        reader = LogReader(run.files, headings=False)
        reader.show(shown.append)
        set_logs_apart(run.folder, "attempt 1 of 2 failed")
        run.write_log("70_driver_log.txt", "second\n")
        logs = run.files.logs()
        assert [(log.name, log.attempt) for log in logs] == [
            ("attempt_1/70_driver_log.txt", 1),
            ("70_driver_log.txt", None),
        ]
        assert logs[0].identity == before.identity != logs[1].identity
        reader.finish(shown.append)
        assert "".join(shown) == "first\nattempt 1 of 2 failed\nsecond\n"

    def test_a_long_log(self, run: TestedRun) -> None:
        """A log that is longer than one part is read whole."""
        text = "".join(f"{number} {'ü' * 50}\n" for number in range(40_000))
        run.write_log("70_driver_log.txt", text)
        shown: list[str] = []
        LogReader(run.files, headings=False).show(shown.append)
        assert "".join(shown) == text

    def test_logs_are_masked(self, place: BackendPlace, run: TestedRun, tmp_path: Path) -> None:
        """Secrets that the script received are hidden, however its log is read."""
        place.backend.connection.call("secrets.put", secrets={"key": {"value": "hunter22", "content_type": ""}})
        give_secret(place, run, "hunter22")
        run.write_log("70_driver_log.txt", "login hunter22 ok\n")
        log = run.files.logs()[0]
        hidden = b"login ******** ok\n"
        assert run.files.read_log(log.name, log.identity, 0) == (hidden, 18)
        # From the middle of the secret.
        assert run.files.read_log(log.name, log.identity, 9) == (hidden[9:], 18)
        assert run.files.read(f"azureml-logs/{log.name}") == hidden
        assert b"ter" not in run.files.read(f"azureml-logs/{log.name}", 9, 4)
        run.files.copy(f"azureml-logs/{log.name}", tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == hidden

    # What is known about a run by its files

    def test_attempts(self, run: TestedRun) -> None:
        """The attempts that failed are known with their errors."""
        assert run.files.read_failed_attempts() == []
        failed = FailedAttempt(1, RunError("ScriptFailed", "it failed", {"rank": 3}), 1.0, 2.0)
        note_failure(run.folder, failed)
        assert run.files.read_failed_attempts() == [failed]

    def test_environment_lock(self, run: TestedRun) -> None:
        """The packages of the environment are known if it was built."""
        assert run.files.read_environment_lock() is None
        run.folder.environment_lock.write_text("torch==2.0\n")
        assert run.files.read_environment_lock() == "torch==2.0\n"

    def test_places(self, backend: Backend, run: TestedRun) -> None:
        """The workspace, a run and its files have addresses for people."""
        assert run.files.run_id == run.id
        assert "://" in backend.address
        assert backend.find_page("runs") in ("", f"{backend.address}/runs")
        assert run.id in run.files.address() and "://" in run.files.address()
        assert run.files.address("outputs/a.txt").endswith("outputs/a.txt")
        assert run.id in run.files.location

    def test_an_unknown_run(self, backend: Backend) -> None:
        """A run that nobody created has no logs, or is not found; an id that leads out of its folder is refused."""
        with contextlib.suppress(RunNotFoundException):
            assert backend.run_files(str(uuid.uuid4())).logs() == []
        with pytest.raises(TrainmasterError):
            backend.run_files("../../etc").names()

    # Contents

    def test_snapshot(self, backend: Backend, tmp_path: Path) -> None:
        """The same files have the same snapshot; it comes back as they were."""
        source = make_source(tmp_path / "source")
        first = backend.contents.take_snapshot(source)
        assert backend.contents.take_snapshot(source).id == first.id
        archive = backend.contents.write_archive(first.id, tmp_path / "one.zip")
        with zipfile.ZipFile(archive) as found:
            assert {name: found.read(name) for name in found.namelist() if not name.endswith("/")} == {
                "train.py": b"print(1)\n",
                "data/größe.bin": b"\0" * 300_000,
                "empty": b"",
            }
        (source / "train.py").write_text("print(2)\n")
        assert backend.contents.take_snapshot(source).id != first.id
        assert backend.contents.write_archive(first.id, tmp_path).read_bytes() == archive.read_bytes()

    def test_the_dispatcher_has_the_snapshot(self, place: BackendPlace, tmp_path: Path) -> None:
        """A snapshot is complete where jobs run, before `take_snapshot` returns."""
        from trainmaster.snapshots import verify_snapshot

        snapshot = place.backend.contents.take_snapshot(make_source(tmp_path / "source"))
        verify_snapshot(place.folder.path, snapshot.id)

    def test_an_unknown_snapshot(self, backend: Backend, tmp_path: Path) -> None:
        """There is one clear error, and no archive."""
        with pytest.raises((SnapshotException, UserErrorException)):
            backend.contents.write_archive("0" * 64, tmp_path / "one.zip")
        assert not (tmp_path / "one.zip").exists()

    def test_model(self, place: BackendPlace, tmp_path: Path) -> None:
        """The files of a model are kept, listed, checked, copied and laid out; what changed on the disk is noticed."""
        contents = place.backend.contents
        source = make_source(tmp_path / "source")
        files = {f"model/{path}": source / path for path in ("train.py", "data/größe.bin", "empty")}
        kept = contents.keep_model("model", files)
        assert contents.keep_model("model", files).digest == kept.digest
        assert contents.read_model_list(kept.digest) == kept.manifest
        assert [(file.path, file.size) for file in kept.manifest.files] == [
            ("model/data/größe.bin", 300_000),
            ("model/empty", 0),
            ("model/train.py", 9),
        ]
        contents.check_model("model", 1, kept.digest)
        contents.copy_model(kept.digest, tmp_path / "copy")
        laid_out = contents.materialise_model("model", 1, kept.digest)
        for folder in (tmp_path / "copy", laid_out):
            assert {path: (folder / path).read_bytes() for path in files} == {
                path: file.read_bytes() for path, file in files.items()
            }
        blob = Path(blob_path(str(place.folder.models / ".blobs"), kept.manifest.files[-1].digest))
        blob.chmod(0o600)
        blob.write_text("print(2)\n")
        with pytest.raises(WebserviceException):
            contents.check_model("model", 1, kept.digest)

    def test_register_a_model(self, backend: Backend, tmp_path: Path) -> None:
        """The dispatcher registers a model whose contents were kept."""
        source = make_source(tmp_path / "source")
        kept = backend.contents.keep_model("train.py", {"train.py": source / "train.py"})
        model = {
            "key": uuid.uuid4().hex,
            "name": "kept",
            "manifest": kept.digest,
            "entry": "train.py",
            "file_count": 1,
            "byte_count": 9,
        }
        answer = backend.connection.call("models.register", model=model, datasets=[])
        assert (answer["name"], answer["version"], answer["manifest"]) == ("kept", 1, kept.digest)

    def test_register_files_of_a_run(self, backend: Backend, run: TestedRun) -> None:
        """A model can be made of files that are already with a run."""
        run.files.add("outputs/net/weights.bin", io.BytesIO(b"w" * 1000))
        model = {"key": uuid.uuid4().hex, "name": "of-run", "run_id": run.id}
        answer = backend.connection.call("models.register_run_files", model=model, path="outputs/net")
        found = backend.contents.read_model_list(answer["manifest"])
        assert [(file.path, file.size) for file in found.files] == [("net/weights.bin", 1000)]

    def test_wheel(self, backend: Backend, tmp_path: Path) -> None:
        """A wheel gets an address; another of the same name is only added on request."""
        wheel = tmp_path / "own-1.0-py3-none-any.whl"
        wheel.write_bytes(b"PK one")
        address = backend.contents.keep_wheel(wheel, False)
        assert "://" in address and wheel.name in address
        wheel.write_bytes(b"PK two")
        with pytest.raises(UserErrorException, match="already has a wheel"):
            backend.contents.keep_wheel(wheel, False)
        assert backend.contents.keep_wheel(wheel, True) != address
        with pytest.raises(UserErrorException, match="not a wheel"):
            backend.contents.keep_wheel(tmp_path / "nothing.whl", False)

    # The workspace

    def test_identity(self, backend: Backend) -> None:
        """What is known about the workspace can be changed, except for its name and id."""
        before = backend.identity()
        changed = backend.change_identity({"description": "ours", "tags": {"team": "a"}})
        assert changed == backend.identity() == {**before, "description": "ours", "tags": {"team": "a"}}
        assert before["id"] and before["name"]


def give_secret(place: BackendPlace, run: TestedRun, value: str) -> None:
    """Notes that the script of the run received this secret, as the dispatcher does."""
    from cryptography.fernet import Fernet

    key = place.home / "keys" / f"{place.backend.identity()['id']}.key"
    cipher = Fernet(key.read_bytes())
    given = [{"name": "key", "token": cipher.encrypt(value.encode()).decode()}]
    run.folder.secrets.write_text(json.dumps({"version": 1, "given": given}))


def create_run(call: Callable[..., Any]) -> str:
    """Creates a run without a job; returns its id."""
    record = RunRecord(
        id=str(uuid.uuid4()),
        experiment="conformance",
        status=Status.RUNNING,
        created_at=time.time(),
        started_at=time.time(),
        type="azureml.scriptrun",
    )
    return str(call("runs.create", runs=[to_plain(record)])[0]["id"])


def finish(backend: Backend, run_id: str) -> None:
    """Ends a run."""
    backend.connection.call("runs.finish", run_id=run_id, status="Completed", error=None)


def make_source(folder: Path) -> Path:
    """A folder with files of several kinds."""
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "data" / "größe.bin").write_bytes(b"\0" * 300_000)
    (folder / "empty").touch()
    return folder


def limit_time(looks: Iterator[RunNews | None]) -> Iterator[RunNews | None]:
    """The same, as long as it does not take too long."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for look in looks:
        assert time.monotonic() < deadline, "it does not end"
        yield look

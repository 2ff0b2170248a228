"""Which runs are old, and that a removal that is killed at any step is finished by the next dispatcher."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.runs.removal import Removal, old_runs
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.logged_models import LoggedModel
from trainmaster.job.errors import UserErrorException
from trainmaster.shared import beneath
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import RunRecord, Status
from trainmaster.snapshots import take_snapshot, verify_snapshot


@pytest.mark.parametrize(
    ("ended_before", "keep", "old"),
    [
        (None, 0, ["b4", "a3", "a2", "b1", "a0"]),
        (None, 1, ["a2", "b1", "a0"]),
        (None, 9, []),
        (2.0, 0, ["b1", "a0"]),
        (2.5, 1, ["a2", "b1", "a0"]),
        (2.5, 2, ["a0"]),
        (0.0, 0, []),
    ],
)
def test_old_runs(ended_before: float | None, keep: int, old: list[str]) -> None:
    newest_first = [
        RunRecord(name, name[0], Status.COMPLETED, 0.0, ended_at=float(name[1]))
        for name in ("b4", "a3", "a2", "b1", "a0")
    ]
    assert [record.id for record in old_runs(newest_first, ended_before, keep)] == old


class Place:
    """A workspace folder with what a dispatcher has of it."""

    def __init__(self, path: Path) -> None:
        self.folder = WorkspaceFolder(path)
        self.store = Store.open(self.folder.database)

    def removal(self) -> Removal:
        return assemble(self.folder, self.store).removal

    def runs(self) -> dict[str, int]:
        """Run id to how many points it has and files."""
        found = {}
        for top in ("parent", "other"):
            for run_id, _ in self.store.removal.list_family(top):
                points, _ = self.store.sweeps.read_numbers(run_id, "loss")
                found[run_id] = points + sum(path.is_file() for path in self.folder.run(run_id).path.rglob("*"))
        return found

    def snapshots(self) -> list[str]:
        return sorted(path.stem for path in self.folder.snapshots.glob("*.json"))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A run with a child, and another run that has a file in common with it."""
    path = tmp_path / "made"
    path.mkdir()
    store = Store.create(path / "trainmaster.db")
    snapshots = {}
    for name in ("parent", "other"):
        source = tmp_path / f"source-{name}"
        source.mkdir()
        (source / "train.py").write_text("both")
        (source / "own.py").write_text(name)
        snapshots[name] = take_snapshot(source, path).id
        os.utime(path / "snapshots" / f"{snapshots[name]}.json", (0, 0))
    for run_id, parent in (("parent", None), ("child_0", "parent"), ("other", None)):
        snapshot = snapshots.get(run_id, snapshots["parent"])
        record = RunRecord(run_id, "exp", Status.COMPLETED, 1.0, parent_id=parent, snapshot_id=snapshot, spec="{}")
        store.runs.add(record)
        records = [{"k": "metric", "n": "loss", "v": n, "t": 1.0} for n in range(5)]
        assert store.journals.ingest(run_id, "0-1.jsonl", 0, 10, records)
        outputs = path / "runs" / run_id / "files" / "outputs"
        outputs.mkdir(parents=True)
        (outputs / "model").write_text("x" * 10_000)
        (outputs / "link").symlink_to(path / "trainmaster.db")
        (outputs / "linked").symlink_to(tmp_path)
        store.logged_models.create(LoggedModel(f"m-{run_id}", "1", "model", 1, 1, source_run_id=run_id))
        (path / "logged-models" / f"m-{run_id}").mkdir(parents=True)
        (path / "logged-models" / f"m-{run_id}" / "MLmodel").write_text("x" * 10_000)
    store.close()
    return path


WHOLE = {"parent": 7, "child_0": 7, "other": 7}


def test_a_run_goes_with_all_it_had(made: Path) -> None:
    place = Place(made)
    assert place.runs() == WHOLE and len(place.snapshots()) == 2
    # Scripts close folders, to themselves too.
    closed = place.folder.run("child_0").path / "files" / "outputs" / "closed"
    closed.mkdir()
    (closed / "file").write_text("x")
    closed.chmod(0o500)
    would = asyncio.run(place.removal().delete(["parent"], dry_run=True))
    assert place.runs() == {**WHOLE, "child_0": 8}
    done = asyncio.run(place.removal().delete(["parent"]))
    assert (done.run_ids, done.children, done.left) == (("parent",), 1, ())
    assert done.bytes >= would.bytes >= 40_000
    assert place.runs() == {"other": 7}
    assert os.listdir(made / "runs") == ["other"] and os.listdir(made / "logged-models") == ["m-other"]
    assert made.parent.exists() and (made / "trainmaster.db").exists()
    (kept,) = place.snapshots()
    verify_snapshot(made, kept)
    assert sorted(path.read_text() for path in (made / "blobs").glob("??/*")) == ["both", "other"]
    # A client whose dispatcher died may ask again.
    assert asyncio.run(place.removal().delete(["parent"])).bytes == 0


def test_one_that_may_not_go_keeps_all(made: Path) -> None:
    place = Place(made)
    place.store.runs.add(RunRecord("going", "exp", Status.RUNNING, 2.0, parent_id="other"))
    with pytest.raises(UserErrorException, match="run going has not ended"):
        asyncio.run(place.removal().delete(["parent", "other"]))
    with pytest.raises(UserErrorException, match="child_0 is a child of run parent") as caught:
        asyncio.run(place.removal().delete(["child_0"]))
    assert "Delete parent" in caught.value.hint
    assert place.runs() == {**WHOLE, "going": 0}


def test_killed_at_any_step_the_next_dispatcher_finishes(made: Path, tmp_path: Path) -> None:
    steps, outcomes = 0, []
    while True:
        steps += 1
        copy = tmp_path / f"copy-{steps}"
        shutil.copytree(made, copy, symlinks=True)
        was_killed = _in_a_process(lambda copy=copy, step=steps: _remove_until(copy, step))
        place = Place(copy)
        asyncio.run(place.removal().resume())
        left = place.runs()
        outcomes.append(left)
        assert left in (WHOLE, {"other": 7}), f"killed at step {steps}"
        assert not (copy / "runs" / ".removed").exists()
        assert sorted(os.listdir(copy / "runs")) == sorted(left)
        assert sorted(os.listdir(copy / "logged-models")) == sorted(f"m-{run_id}" for run_id in left)
        for snapshot in place.snapshots():
            verify_snapshot(copy, snapshot)
        if left != WHOLE:
            asyncio.run(place.removal().delete(["parent"]))
            assert sorted(path.read_text() for path in (copy / "blobs").glob("??/*")) == ["both", "other"]
        place.store.close()
        if not was_killed:
            break
    assert WHOLE in outcomes and outcomes.count({"other": 7}) > 15


def _in_a_process(work: Callable[[], None]) -> bool:
    """Whether it was killed on the way."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _remove_until(path: Path, step: int) -> None:
    """Removes a run, in a process that is killed before the step of this number."""
    left = step

    def count(event: str, _arguments: object = ()) -> None:
        nonlocal left
        if event in ("os.rename", "os.remove", "os.rmdir", "store"):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    place = Place(path)
    removal = place.store.removal
    for repository, name in ((place.store.facts, "put"), (removal, "delete_points"), (removal, "delete_runs")):
        setattr(repository, name, _counted(getattr(repository, name), count))
    sys.addaudithook(count)
    asyncio.run(place.removal().delete(["parent"]))


def _counted(work: Callable[..., Any], count: Callable[[str], None]) -> Callable[..., Any]:
    def counting(*args: Any) -> Any:
        count("store")
        return work(*args)

    return counting


@pytest.mark.parametrize("name", ["{victim}", "../../victim", "../victim", "."])
def test_what_is_no_run_is_not_touched(made: Path, tmp_path: Path, name: str) -> None:
    """Neither an id that is none, nor one that an earlier release took from a journal."""
    for victim in (tmp_path / "victim", made / "victim"):
        victim.mkdir()
        (victim / "file").write_text("mine")
    name = name.format(victim=tmp_path / "victim")
    place = Place(made)
    asyncio.run(place.removal().delete([name]))
    place.store.runs.add(RunRecord(name, "exp", Status.COMPLETED, 2.0, parent_id="other"))
    done = asyncio.run(place.removal().delete(["other"]))
    assert (done.run_ids, done.left) == (("other",), ())
    assert (tmp_path / "victim" / "file").exists() and (made / "victim" / "file").exists()
    assert place.runs() == {each: number for each, number in WHOLE.items() if each != "other"}


def test_a_long_id_can_be_removed(made: Path) -> None:
    place = Place(made)
    for run_id, parent in (("s" * 246, "other"), ("s" * 255, "s" * 246)):
        place.store.runs.add(RunRecord(run_id, "exp", Status.COMPLETED, 2.0, parent_id=parent))
        place.folder.run(run_id).files.mkdir(parents=True)
    done = asyncio.run(place.removal().delete(["other", "parent"]))
    assert (done.run_ids, done.children, done.left) == (("other", "parent"), 3, ())
    assert os.listdir(made / "runs") == []


def test_one_that_cannot_be_removed_holds_up_no_other(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a child that cannot be renamed, as one on which something is mounted."""
    place = Place(made)
    refuse = _refusing(beneath.rename, "child_0")
    monkeypatch.setattr(beneath, "rename", refuse)
    done = asyncio.run(place.removal().delete(["parent", "other"]))
    assert (done.run_ids, done.children) == (("other",), 0)
    (sentence,) = done.left
    assert sentence.startswith("run parent: ") and "Device or resource busy" in sentence
    # It is whole, and nothing is noted that would stop the next removal.
    assert place.runs() == {each: number for each, number in WHOLE.items() if each != "other"}
    assert not place.store.facts.get("runs.removing")
    asyncio.run(place.removal().resume())
    monkeypatch.undo()
    assert asyncio.run(place.removal().delete(["parent"])).run_ids == ("parent",)
    assert place.runs() == {}


def test_what_an_earlier_release_noted_holds_up_no_other(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(made)
    place.store.facts.put("runs.removing", ["parent", "../../victim", "gone"])
    monkeypatch.setattr(beneath, "rename", _refusing(beneath.rename, "child_0"))
    asyncio.run(place.removal().resume())
    assert not place.store.facts.get("runs.removing")
    assert asyncio.run(place.removal().delete(["other"])).run_ids == ("other",)


def test_a_full_disk_puts_a_removal_off(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(made)
    monkeypatch.setattr(beneath, "rename", _refusing(beneath.rename, "child_0", errno.ENOSPC))
    with pytest.raises(OSError):
        asyncio.run(place.removal().delete(["parent"]))
    assert place.runs() == WHOLE and place.store.facts.get("runs.removing") == ["parent"]
    monkeypatch.undo()
    asyncio.run(place.removal().resume())
    assert place.runs() == {"other": 7}


def _refusing(rename: Callable[..., None], name: str, number: int = errno.EBUSY) -> Callable[..., None]:
    def renamed(root: Path, source: str, target: str) -> None:
        if source == name:
            raise OSError(number, os.strerror(number), str(root / source))
        rename(root, source, target)

    return renamed

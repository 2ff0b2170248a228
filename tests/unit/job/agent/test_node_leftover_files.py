"""Files that a script left outside outputs/ and logs/, without the unchanged files of the snapshot."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from trainmaster.job.agent import leftover_files
from trainmaster.job.agent.layout import lay_out
from trainmaster.snapshots import take_snapshot


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run whose snapshot is laid out."""
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    for name in ("train.py", "deep/part.py", "config.ini", "data.bin"):
        (source / name).write_text(f"of {name}")
    folder = tmp_path / "ws" / "runs" / "run"
    folder.mkdir(parents=True)
    lay_out(*layout_of(tmp_path / "ws", take_snapshot(source, tmp_path / "ws").id), folder / "code")
    for name in ("outputs", "logs"):
        (folder / "code" / name).mkdir()
    return folder


def layout_of(workspace: Path, snapshot_id: str) -> tuple[str, str]:
    return str(workspace / "snapshots" / f"{snapshot_id}.json"), str(workspace / "blobs")


def found(run: Path, started_at: float) -> list[str]:
    files, is_all = leftover_files.find(str(run / "code"), layout(run), started_at)
    assert is_all
    return sorted(name for name, _ in files)


def layout(run: Path) -> tuple[str, str]:
    (manifest,) = (run.parents[1] / "snapshots").glob("*.json")
    return layout_of(run.parents[1], manifest.stem)


def test_nothing_is_left_by_a_script_that_writes_nothing(run: Path) -> None:
    assert found(run, time.time()) == []
    # Compared by content, because it is unknown when they were written.
    assert found(run, 0.0) == []


def test_new_and_changed_files_are_left(run: Path) -> None:
    started_at = time.time()
    code = run / "code"
    (code / "model.pt").write_text("weights")
    (code / "deep" / "new").mkdir()
    (code / "deep" / "new" / "one").write_text("1")
    (code / "train.py").write_text("shorter")
    (code / "config.ini").write_text("OF CONFIG.INI")  # As long as it was.
    (code / "data.bin").touch()  # Written to, but not changed.
    (code / "deep" / "part.py").unlink()
    assert found(run, started_at) == ["config.ini", "deep/new/one", "model.pt", "train.py"]


def test_what_the_run_collects_or_nobody_wants_is_passed_over(run: Path) -> None:
    code = run / "code"
    for name in ("outputs/model", "logs/events", "__pycache__/a.pyc", "deep/__pycache__/b.pyc"):
        (code / name).parent.mkdir(exist_ok=True)
        (code / name).write_text("text")
    (code / "linked").symlink_to("/")
    (code / "file").symlink_to("/etc/hostname")
    os.mkfifo(code / "pipe")
    (code / "deep" / "outputs").mkdir()
    (code / "deep" / "outputs" / "own").write_text("not the run's")
    assert found(run, 0.0) == ["deep/outputs/own"]


def test_the_report_names_the_five_largest(run: Path) -> None:
    started_at = time.time()
    for number in range(8):
        (run / "code" / f"{number}.bin").write_bytes(b"x" * number)
    report = leftover_files.report(str(run), 0, layout(run), started_at)
    assert report == {
        "count": 8,
        "bytes": 28,
        "largest": [{"name": f"{number}.bin", "bytes": number} for number in (7, 6, 5, 4, 3)],
        "all": True,
    }


def test_a_name_that_is_no_text_can_be_told(run: Path) -> None:
    with open(os.fsencode(run / "code") + b"/\xff\n", "w"):
        pass
    assert leftover_files.report(str(run), 0, layout(run), 1.0)["largest"] == [{"name": "�\n", "bytes": 0}]


def test_a_large_folder_is_not_looked_through_for_ever(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (run / "code" / f"{number}.bin").touch()
    monkeypatch.setattr(leftover_files, "_MOST", 20)
    report = leftover_files.report(str(run), 0, layout(run), time.time())
    assert not report["all"]
    assert 0 < report["count"] <= 20


def test_without_a_snapshot_or_a_start_nothing_is_told(run: Path) -> None:
    assert leftover_files.report(str(run), 0, None, 1.0) is None
    assert leftover_files.report(str(run), 0, layout(run), None) is None


def test_another_attempt_tells_what_all_of_them_left(run: Path) -> None:
    manifest, blobs = layout(run)
    plan = {
        "version": 1,
        "run_id": "run",
        "node": 0,
        "folder": str(run),
        "layout": {"manifest": manifest, "blobs": blobs},
        "links": [],
        "processes": [],
        "grace_seconds": 1.0,
        "notify": None,
    }
    node = run / "nodes" / "0"
    node.mkdir(parents=True)
    (node / "plan.json").write_text(json.dumps(plan))
    (node / "running.json").write_text(json.dumps({"version": 1, "started_at": time.time(), "processes": []}))
    (run / "code" / "config.ini").write_text("OF CONFIG.INI")
    (run / "code" / "checkpoint").write_text("of the first")
    report = leftover_files.report(str(run), 0, None, time.time() + 60.0)
    assert [file["name"] for file in report["largest"]] == ["config.ini", "checkpoint"]

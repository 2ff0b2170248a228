"""What a dry run says of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.cli.source import source_as_json
from trainmaster.job.errors import SnapshotException


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    for name, count in {
        "train.py": 10,
        "data/big.bin": 5000,
        "data/x.tmp": 7,
        ".git/HEAD": 3,
        "outputs/old": 1,
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"x" * count)
    (place / ".amlignore").write_text("*.tmp\n")
    (place / "venv2").mkdir()
    (place / "venv2" / "pyvenv.cfg").write_text("")
    return place


def test_files_sizes_and_what_is_left_out(folder: Path) -> None:
    found = source_as_json(str(folder), folder / "workspace")
    assert found["files"] == 3
    assert found["bytes"] == 10 + 5000 + 6
    assert found["largest"][0] == {"path": "data/big.bin", "bytes": 5000}
    assert found["ignored"] == [".git/", "data/x.tmp", "outputs/", "venv2/"]


def test_it_is_what_the_snapshot_has(folder: Path, tmp_path: Path) -> None:
    from trainmaster.snapshots import take_snapshot

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    found = source_as_json(str(folder), workspace)
    taken = take_snapshot(folder, workspace)
    assert (found["files"], found["bytes"]) == (taken.file_count, taken.byte_count)


def test_a_folder_beyond_the_limits_is_refused_as_at_submit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_SNAPSHOT_MAX_FILES", "2")
    with pytest.raises(SnapshotException, match="limit"):
        source_as_json(str(folder), folder / "workspace")

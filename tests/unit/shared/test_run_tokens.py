"""What a workspace knows about its server, and the tokens of its jobs."""

from __future__ import annotations

import threading
from pathlib import Path

from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.run_tokens import Served, read_served, write_served


def test_the_key_stays_when_the_address_changes(tmp_path: Path) -> None:
    folder = WorkspaceFolder(tmp_path)
    assert read_served(folder) is None
    first = write_served(folder, "http://a", "team")
    assert (tmp_path / "served.json").stat().st_mode & 0o077 == 0
    second = write_served(folder, "http://b", "team")
    assert second == read_served(folder) == Served("http://b", "team", first.key)
    assert [each.name for each in tmp_path.iterdir()] == ["served.json"]


def test_servers_that_begin_at_the_same_time_have_the_same_key(tmp_path: Path) -> None:
    for number in range(40):
        folder = WorkspaceFolder(tmp_path / str(number))
        folder.path.mkdir()
        together, keys = threading.Barrier(4), []

        def begin(folder: WorkspaceFolder = folder, together: threading.Barrier = together, keys: list = keys) -> None:
            together.wait()
            keys.append(write_served(folder, "http://a", "team").key)

        threads = [threading.Thread(target=begin) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 4 and len(set(keys)) == 1

"""What `trainmaster services logs` shows, and that it leaves nothing out."""

from __future__ import annotations

import io
import shutil
import sys
import threading
from pathlib import Path

import pytest

from trainmaster.cli.service_logs import ServiceLogs


class Screen(io.StringIO):
    """Where the service says one more line each time that something is shown; at the third its folder goes."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._shown = 0

    def write(self, text: str) -> int:
        self._shown += 1
        if self._shown == 3:
            shutil.rmtree(self._folder)
        else:
            with open(self._folder / "service.log", "a") as file:
                file.write(f"said meanwhile {self._shown}\n")
        return super().write(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "services" / "mine"
    (place / "1").mkdir(parents=True)
    (place / "1" / "deploy.log").write_text("deployed\n")
    (place / "service.log").write_text("one\ntwo\nthree\n")
    return place


def test_lines_between_the_first_look_and_the_following_are_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(folder)
    monkeypatch.setattr(sys, "stdout", screen)
    # One that misses a line waits for it for ever.
    deadline = threading.Timer(60, shutil.rmtree, [folder], {"ignore_errors": True})
    deadline.start()
    logs = ServiceLogs([folder / "1" / "deploy.log", folder / "service.log"])
    logs.show_last(2)
    logs.follow(folder)
    deadline.cancel()
    assert screen.getvalue() == "two\nthree\nsaid meanwhile 1\nsaid meanwhile 2\n"


def test_the_last_lines_of_all_logs_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [folder / "1" / "deploy.log", folder / "service.log", folder / "none.log"]
    ServiceLogs(paths).show_last(100)
    ServiceLogs(paths).show_last(1)
    ServiceLogs(paths).show_last(0)
    assert capsys.readouterr().out == "deployed\none\ntwo\nthree\nthree\n"

"""What doctor finds."""

from __future__ import annotations

import os
from pathlib import Path

from trainmaster.cli import findings
from trainmaster.environments import findings as machine
from trainmaster.shared.folders import WorkspaceFolder


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    place = tmp_path / "not" / "there"
    found = findings.examine(WorkspaceFolder(place), os.environ)
    assert not place.parent.exists()
    assert all(finding.hint and finding.purpose for finding in found if finding.state == "missing")
    assert findings.essential_missing(found) == []


def test_sources_are_shown_without_passwords() -> None:
    environ = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "https://me:secret@a.example/s http://b.example"}
    text = machine.packages(environ).found
    assert "secret" not in text
    assert "https://***@a.example/s http://b.example" in text


def test_a_missing_program_says_what_it_is_for() -> None:
    found = machine.program("thing", ("no-such-program-anywhere",), "Does things.", "Get it.")
    assert (found.state, found.purpose, found.hint) == ("missing", "Does things.", "Get it.")


def test_a_program_that_does_not_run_says_nothing() -> None:
    assert machine.first_line_of(["/nowhere/at/all"]) == ""
    assert machine.first_line_of(["false"]) == ""


def test_a_workspace_that_cannot_be_written_is_essential(tmp_path: Path) -> None:
    # Not even root can make a folder in a file.
    (tmp_path / "file").touch()
    found = findings.folder(WorkspaceFolder(tmp_path / "file" / "workspace"))
    assert (found.state, found.essential) == ("wrong", True)


class TestContainers:
    """Programs that say what engines say."""

    @staticmethod
    def path(folder: Path, **programs: str) -> dict[str, str]:
        for name, text in programs.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o700)
        return {"PATH": str(folder)}

    def test_one_that_answers(self, tmp_path: Path) -> None:
        environ = self.path(tmp_path, docker="echo 26.1.0")
        assert machine.container_engine(environ) == machine.Finding(
            "containers", "found", f"docker 26.1.0 ({tmp_path}/docker)"
        )
        chosen = machine.container_engine({**environ, "TRAINMASTER_CONTAINER_ENGINE": "docker"})
        assert chosen.found.endswith(", because of TRAINMASTER_CONTAINER_ENGINE")

    def test_one_that_does_not(self, tmp_path: Path) -> None:
        found = machine.container_engine(self.path(tmp_path, docker="echo 'Cannot connect to the daemon' >&2; exit 1"))
        assert (found.state, found.found) == ("wrong", "docker: Cannot connect to the daemon")
        assert not found.essential

    def test_none(self, tmp_path: Path) -> None:
        found = machine.container_engine(self.path(tmp_path))
        assert (found.state, found.essential) == ("missing", False)
        assert "podman" in found.hint

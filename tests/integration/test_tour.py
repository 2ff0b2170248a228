"""The tour in the guide, as a newcomer follows it: every file is written, every command run, every output compared."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import end_workspace

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "tour.md"
_ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

pytestmark = pytest.mark.timeout(600)


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of the page, each with the output that the page shows."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_the_tour(tmp_path: Path) -> None:
    text = PAGE.read_text()
    project = tmp_path / "project"
    project.mkdir()
    (name,) = re.findall(r"Write a file `(.*)`", text)
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (project / name).write_text(script)
    environment = {
        **os.environ,
        "TRAINMASTER_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "120",
    }
    try:
        assert len(commands(text)) > 20
        for command, wanted in commands(text):
            done = subprocess.run(
                command, shell=True, cwd=project, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            assert doctest.OutputChecker().check_output(wanted, done.stdout, _ALIKE), f"{command}\n{done.stdout}"
        assert (project / "told.json").exists()
    finally:
        end_workspace(tmp_path / "home" / "workspaces" / "default")

"""What is loaded to do little: starting is what a command line does most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "sqlalchemy", "alembic", "torch", "numpy", "fsspec", "pathspec", "rich", "typer", "pydantic", "asyncio",
    "subprocess", "trainmaster.dispatcher.store", "trainmaster.dispatcher", "trainmaster.server",
)  # fmt: skip
LIGHT_HELP = ("json", "socket", "dataclasses", "pathlib", "argparse", "trainmaster.sdk.workspace.workspace")


def loaded(program: str, tmp_path: Path) -> set[str]:
    """The modules that a program has loaded when it ends."""
    report = tmp_path / "modules.json"
    code = f"""
import atexit, sys
def report():
    names = sorted(sys.modules)
    import json
    open({str(report)!r}, "w").write(json.dumps(names))
atexit.register(report)
{program}
"""
    variables = {**os.environ, "TRAINMASTER_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(report.read_text()))


def command(*argv: str) -> str:
    return f"sys.argv = ['trainmaster', *{list(argv)!r}]\nfrom trainmaster.cli import main\nassert main() == 0"


@pytest.mark.parametrize(
    "program",
    ["import trainmaster", command("--help"), command("--version"), command("status"), command("workspace", "--json")],
)
def test_nothing_heavy_is_loaded(program: str, tmp_path: Path) -> None:
    assert not set(HEAVY) & loaded(program, tmp_path)


def test_help_loads_nearly_nothing(tmp_path: Path) -> None:
    assert not {*HEAVY, *LIGHT_HELP} & loaded(command("--help"), tmp_path)


def test_listing_the_commands_loads_none_of_them(tmp_path: Path) -> None:
    parts = ("trainmaster.cli.", "trainmaster.sdk.")
    own = {name for name in loaded(command("--help"), tmp_path) if name.startswith(parts)}
    cli = {f"trainmaster.cli.{name}" for name in ("commands", "entry", "exits", "manual")}
    assert own == {*cli, "trainmaster.sdk.display", "trainmaster.sdk.display.screen"}

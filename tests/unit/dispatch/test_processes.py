"""What is said of a process beside the dispatcher that ended badly."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from trainmaster.dispatch.processes import run_module
from trainmaster.errors import AzureMLException


def test_a_builder_that_is_killed_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/victim.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGKILL)})\n")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    with pytest.raises(AzureMLException) as raised:
        asyncio.run(run_module(["victim"], tmp_path / "log", variables))
    assert raised.value.headline == "victim was killed by SIGKILL"
    assert "Submit again" in raised.value.hint

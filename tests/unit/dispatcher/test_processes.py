"""What is said of a process beside the dispatcher that ended badly."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from trainmaster.dispatcher.processes import Shortage, run_module
from trainmaster.job.errors import TrainmasterError


def test_a_builder_that_is_killed_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/victim.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGKILL)})\n")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    with pytest.raises(TrainmasterError) as raised:
        asyncio.run(run_module(["victim"], tmp_path / "log", variables))
    assert raised.value.headline == "victim was killed by SIGKILL"
    assert "Submit again" in raised.value.hint


def test_a_builder_without_free_processes_says_that_it_may_be_tried_again(tmp_path: Path) -> None:
    """Real but for the system, which refuses every new process."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/short.py").write_text("""
import errno, json, os, subprocess, sys
from trainmaster.environments import build
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain

def refuse(*args, **settings):
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

subprocess.Popen = refuse
spec = json.dumps(to_plain(EnvironmentSpec(pip_packages=("colorama==0.4.6",))))
sys.exit(build.main(sys.argv[1], spec, os.getppid(), False, None))
""")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    with pytest.raises(Shortage) as raised:
        asyncio.run(run_module(["short", str(tmp_path / "environments")], tmp_path / "log", variables))
    assert "Resource temporarily unavailable" in raised.value.headline

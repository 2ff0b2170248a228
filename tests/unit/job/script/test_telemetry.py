"""The switch for diagnostics does nothing, and says so once."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """\
import socket
def refuse(*arguments, **options):
    raise AssertionError("a connection was opened")
socket.socket.connect = refuse
from trainmaster.job.script.telemetry import set_diagnostics_collection
assert set_diagnostics_collection(send_diagnostics=False) is None
set_diagnostics_collection(send_diagnostics=True)
set_diagnostics_collection(True, verbosity=20)
"""


def test_it_says_once_that_nothing_is_sent() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("\n") == 1
    assert "sends no diagnostics" in done.stdout
    assert done.stderr == ""

"""Commands as a person types them, for tests over both backends."""

from __future__ import annotations

import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from typing import Any

from trainmaster import Workspace

COMMAND = [sys.executable, "-m", "trainmaster.cli"]


def run_command(workspace: Workspace, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command with this workspace; what stands behind `--` are the arguments of a script."""
    done = subprocess.run(
        _line(workspace, words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert "Traceback (most recent call last)" not in done.stderr, done.stderr
    return done


def read_command(workspace: Workspace, *words: str, code: int = 0) -> Any:
    """The JSON that a command prints."""
    dashes = words.index("--") if "--" in words else len(words)
    return json.loads(run_command(workspace, *words[:dashes], "--json", *words[dashes:], code=code).stdout)


def show_command(workspace: Workspace, *words: str, width: int = 80) -> list[str]:
    """The lines that a command prints on a terminal of this width, without colours."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color"}
    variables.pop("NO_COLOR", None)
    program = subprocess.Popen(
        _line(workspace, words), stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=variables
    )
    os.close(slave)
    parts = []
    try:
        while part := os.read(master, 65536):
            parts.append(part)
    except OSError:
        # The program has closed its end.
        pass
    os.close(master)
    assert program.wait(60) == 0
    text = b"".join(parts).decode()
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def _line(workspace: Workspace, words: tuple[str, ...]) -> list[str]:
    place = str(workspace.backend.as_config().get("path", workspace.name))
    dashes = words.index("--") if "--" in words else len(words)
    return [*COMMAND, *words[:dashes], "--workspace", place, *words[dashes:]]

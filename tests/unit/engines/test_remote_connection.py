"""A connection through a replacement for ssh that runs the command on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.host import SshHost

# As with a ProxyCommand or a shared connection: a process that ssh started outlives it and holds its pipes.
SSH = """\
#!/bin/sh
sleep 600 &
echo $! > "$SLEEPER"
for command; do :; done
exec sh -c "$command"
"""


@pytest.fixture
def sleeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    note = tmp_path / "sleeper"
    monkeypatch.setenv("SLEEPER", str(note))
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    yield note
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(note.read_text()), signal.SIGKILL)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_closed_connection_leaves_nothing_open(sleeper: Path, tmp_path: Path) -> None:
    async def open_and_close() -> tuple[int, int, int]:
        # The first process of a loop opens what the loop keeps.
        await (await asyncio.create_subprocess_exec("true")).wait()
        before = open_files()
        connection = await Connection.open(SshHost("here"), str(tmp_path / "there"), silence=120)
        assert connection.facts.cpus > 0
        during = open_files()
        await connection.close()
        # The loop closes the pipes in its next turn.
        await asyncio.sleep(0)
        return before, during, open_files()

    before, during, after = asyncio.run(asyncio.wait_for(open_and_close(), 120))
    os.kill(int(sleeper.read_text()), 0)
    assert during > before == after

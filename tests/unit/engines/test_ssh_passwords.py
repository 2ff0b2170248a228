"""How ssh gets a password."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from trainmaster.engines.ssh import passwords


def test_the_program_prints_the_password_and_is_private(tmp_path: Path) -> None:
    variables = passwords.variables("it's $HOME", tmp_path / "new")
    assert ask(variables) == "it's $HOME\n"
    assert Path(variables["SSH_ASKPASS"]).stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["ask-password"]


def test_it_can_run_while_other_programs_are_started(tmp_path: Path) -> None:
    """A file that this process has written is busy as long as a process just forked from it has it open."""
    is_over = threading.Event()

    def start_programs() -> None:
        while not is_over.is_set():
            subprocess.run(["/bin/true"], check=True)

    threads = [threading.Thread(target=start_programs) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(40):
            assert ask(passwords.variables("secret", tmp_path / str(number))) == "secret\n"
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def ask(variables: dict[str, str]) -> str:
    command = [variables["SSH_ASKPASS"], "password: "]
    return subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True, text=True).stdout

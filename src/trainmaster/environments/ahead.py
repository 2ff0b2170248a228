"""uv's first answer takes longest of all, so it is asked for before the rest of the builder is imported.

Imports next to nothing itself: that is its purpose (`python -m benchmarks environments` shows what it saves). The
builder takes the answer only if it would have put the very same question.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


class Ahead:
    """uv on its way: its answer goes to a file in memory, what it says beside that to a pipe."""

    def __init__(self, command: tuple[str, ...], text: str, variables: dict[str, str]) -> None:
        self.question = (command, text, variables)
        given, self._answer = os.memfd_create("question"), os.memfd_create("answer")
        os.write(given, text.encode())
        os.lseek(given, 0, os.SEEK_SET)
        said, saying = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _become(command, variables, (given, self._answer, saying), parent)
        os.close(given)
        os.close(saying)
        self.lines: IO[str] = open(said, errors="replace")  # noqa: SIM115
        self._code: int | None = None

    def wait(self) -> int:
        """Its exit code, when it has ended."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def answer(self) -> str:
        """What it wrote."""
        os.lseek(self._answer, 0, os.SEEK_SET)
        with open(self._answer, errors="replace", closefd=False) as file:
            return file.read()

    def close(self) -> None:
        """Ends it, if nobody wanted to know after all."""
        if self._code is None:
            os.kill(self._pid, 9)
            self.wait()
        self.lines.close()
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1


def _become(command: tuple[str, ...], variables: dict[str, str], files: tuple[int, int, int], parent: int) -> None:
    """In the child: turns into `command`."""
    try:
        from trainmaster.shared.orphans import die_with

        die_with(parent)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.execve(command[0], list(command), variables)
    finally:
        os._exit(127)

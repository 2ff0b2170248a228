"""A running `uv pip compile`, started before the rest of the builder is imported.

Resolving is the slowest step of a build, so this module imports almost nothing (`python -m benchmarks environments`
shows what that saves). The builder uses the result only if it would have run exactly the same command.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


class ResolverProcess:
    """Runs uv. Its standard output goes to a file in memory, its standard error to a pipe."""

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
        """Wait until uv ends and return its exit code."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def answer(self) -> str:
        """Read uv's standard output."""
        os.lseek(self._answer, 0, os.SEEK_SET)
        with open(self._answer, errors="replace", closefd=False) as file:
            return file.read()

    def close(self) -> None:
        """Kill uv if it still runs, and close the files."""
        if self._code is None:
            os.kill(self._pid, 9)
            self.wait()
        self.lines.close()
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1


def _become(command: tuple[str, ...], variables: dict[str, str], files: tuple[int, int, int], parent: int) -> None:
    """Replace the forked child by `command`."""
    try:
        from trainmaster.shared.orphans import die_with

        die_with(parent)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.execve(command[0], list(command), variables)
    finally:
        os._exit(127)

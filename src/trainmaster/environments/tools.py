"""Runs the programs that build environments, shows their output live, and reports it if they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO

from trainmaster.environments.hints import hint_for
from trainmaster.environments.sources import mask_passwords, pip_settings, uv_options, uv_variables
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.orphans import die_with

_SHOWN_LINES = 15
# Gives up on a hanging index after 90 seconds; the user's own settings for uv take precedence.
_UV_TIMEOUTS = {"UV_HTTP_TIMEOUT": "30", "UV_HTTP_CONNECT_TIMEOUT": "10", "UV_HTTP_RETRIES": "2"}


@dataclass(frozen=True)
class Tools:
    """uv and other programs, with the user's package sources."""

    environ: Mapping[str, str]

    @cached_property
    def settings(self) -> dict[str, str]:
        """pip's settings, which uv does not read."""
        return pip_settings(self.environ)

    @property
    def source_options(self) -> list[str]:
        """The user's package sources as options of `uv pip`, in addition to `uv_environ`."""
        return uv_options(self.settings)

    def uv(self, arguments: Sequence[str], shown: str, hint: str = "") -> str:
        """Run uv and return its output; `shown` is the command to print."""
        return self.run(self.uv_command(arguments), f"uv {shown}", self.uv_environ, hint)

    @staticmethod
    def uv_command(arguments: Sequence[str]) -> list[str]:
        """The command line for uv with these arguments."""
        beside = os.path.join(os.path.dirname(sys.executable), "uv")
        if os.access(beside, os.X_OK):
            return [beside, *arguments]
        # uv's own search is slower than some of the commands it runs.
        from uv import find_uv_bin

        return [os.fsdecode(find_uv_bin()), *arguments]

    @cached_property
    def uv_environ(self) -> dict[str, str]:
        """The variables uv runs with."""
        return self.uv_environ_with(self.settings)

    def uv_environ_with(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The variables for uv with these pip settings. They may contain passwords: never print them."""
        variables = {**_UV_TIMEOUTS, **uv_variables(settings, self.environ)}
        variables.update(UV_NO_PROGRESS="1", UV_PYTHON_DOWNLOADS="never")
        return variables

    def run(
        self,
        command: Sequence[str],
        shown: str,
        variables: Mapping[str, str] | None = None,
        hint: str = "",
    ) -> str:
        """Run a program to its end, print its output live, and return it. It dies with this process."""
        print(f"$ {mask_passwords(shown)}", flush=True)
        code, said = self.attempt(command, variables, show=True)
        if code:
            raise self.failure(shown, code, said, hint)
        return "".join(said)

    @staticmethod
    def failure(shown: str, code: int, said: Sequence[str], hint: str = "") -> EnvironmentException:
        """The error for a program that exited with `code`, with its last output as the cause."""
        return EnvironmentException(
            f"the environment could not be built: '{mask_passwords(shown)}' exited with {code}",
            cause="".join(deque(said, _SHOWN_LINES)).rstrip(),
            hint=hint or hint_for("".join(said)),
        )

    def attempt(
        self, command: Sequence[str], variables: Mapping[str, str] | None = None, show: bool = False
    ) -> tuple[int, list[str]]:
        """Run a program that may fail; return its exit code and its output lines without passwords."""
        return self.begin(command, variables).finish(show)

    def begin(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> Started:
        """Start a program without waiting for it."""
        me = os.getpid()
        process = subprocess.Popen(
            command,
            env=dict(self.environ if variables is None else variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=lambda: die_with(me),
        )
        assert process.stdout is not None
        return Started(process.stdout, process.wait)


@dataclass(frozen=True)
class Started:
    """A running program."""

    lines: IO[str]
    wait: Callable[[], int]

    def finish(self, show: bool = False) -> tuple[int, list[str]]:
        """Wait until it ends; return its exit code and its output lines without passwords."""
        said: list[str] = []
        for line in self.lines:
            said.append(mask_passwords(line))
            if show:
                print(said[-1], end="", flush=True)
        self.lines.close()
        return self.wait(), said

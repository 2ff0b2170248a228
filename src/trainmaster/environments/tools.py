"""Running the programs that make environments: what they say is shown as they say it, and told if they fail."""

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
from trainmaster.environments.sources import masked, pip_settings, uv_options, uv_variables
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.orphans import die_with

_SHOWN_LINES = 15
# An index that hangs is given up after a minute and a half; what the user set for uv goes before.
_PATIENCE = {"UV_HTTP_TIMEOUT": "30", "UV_HTTP_CONNECT_TIMEOUT": "10", "UV_HTTP_RETRIES": "2"}


@dataclass(frozen=True)
class Tools:
    """uv and other programs, with the user's package sources."""

    environ: Mapping[str, str]

    @cached_property
    def settings(self) -> dict[str, str]:
        """pip's settings, which uv does not read by itself."""
        return pip_settings(self.environ)

    @property
    def source_options(self) -> list[str]:
        """The user's package sources as options of `uv pip`, beside those in `uv_environ`."""
        return uv_options(self.settings)

    def uv(self, arguments: Sequence[str], shown: str, hint: str = "") -> str:
        """Runs uv and returns what it said; `shown` is the command as people see it."""
        return self.run(self.uv_command(arguments), f"uv {shown}", self.uv_environ, hint)

    @staticmethod
    def uv_command(arguments: Sequence[str]) -> list[str]:
        """The command line of uv with these arguments."""
        beside = os.path.join(os.path.dirname(sys.executable), "uv")
        if os.access(beside, os.X_OK):
            return [beside, *arguments]
        # Where uv itself looks for it; that takes longer than some of what it is then asked to do.
        from uv import find_uv_bin

        return [os.fsdecode(find_uv_bin()), *arguments]

    @cached_property
    def uv_environ(self) -> dict[str, str]:
        """The variables uv runs with."""
        return self.uv_environ_with(self.settings)

    def uv_environ_with(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The variables uv runs with where other settings of pip count. Not to be shown: they may hold passwords."""
        variables = {**_PATIENCE, **uv_variables(settings, self.environ)}
        variables.update(UV_NO_PROGRESS="1", UV_PYTHON_DOWNLOADS="never")
        return variables

    def run(
        self,
        command: Sequence[str],
        shown: str,
        variables: Mapping[str, str] | None = None,
        hint: str = "",
    ) -> str:
        """Runs a program to its end, shows its lines at once, and returns them. It dies with this process."""
        print(f"$ {masked(shown)}", flush=True)
        code, said = self.attempt(command, variables, show=True)
        if code:
            raise self.failure(shown, code, said, hint)
        return "".join(said)

    @staticmethod
    def failure(shown: str, code: int, said: Sequence[str], hint: str = "") -> EnvironmentException:
        """The error of a program that ended with `code`, in its own words."""
        return EnvironmentException(
            f"the environment could not be built: '{masked(shown)}' ended with {code}",
            cause="".join(deque(said, _SHOWN_LINES)).rstrip(),
            hint=hint or hint_for("".join(said)),
        )

    def attempt(
        self, command: Sequence[str], variables: Mapping[str, str] | None = None, show: bool = False
    ) -> tuple[int, list[str]]:
        """Runs a program that may fail: its exit code and its lines, without passwords."""
        return self.begin(command, variables).finish(show)

    def begin(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> Started:
        """Starts a program and does not wait for it."""
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
    """A program on its way."""

    lines: IO[str]
    wait: Callable[[], int]

    def finish(self, show: bool = False) -> tuple[int, list[str]]:
        """Waits for its end: its exit code and its lines, without passwords."""
        said: list[str] = []
        for line in self.lines:
            said.append(masked(line))
            if show:
                print(said[-1], end="", flush=True)
        self.lines.close()
        return self.wait(), said

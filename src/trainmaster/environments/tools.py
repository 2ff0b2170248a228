"""Running the programs that make environments: what they say is shown as they say it, and told if they fail."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainmaster.environments.sources import pip_settings, uv_options, uv_variables
from trainmaster.errors import EnvironmentException
from trainmaster.orphans import die_with

_SHOWN_LINES = 15


@dataclass(frozen=True)
class Tools:
    """uv and other programs, with the user's package sources."""

    environ: Mapping[str, str]

    @cached_property
    def settings(self) -> dict[str, str]:
        """pip's settings, which uv does not read by itself."""
        return pip_settings(self.environ)

    @property
    def index_options(self) -> list[str]:
        """The user's package sources as options of `uv pip`. Not to be shown: an address may hold a password."""
        return uv_options(self.settings)

    def uv(self, arguments: Sequence[str], shown: str, hint: str = "") -> str:
        """Runs uv and returns what it said; `shown` is the command as people see it."""
        from uv import find_uv_bin

        variables = uv_variables(self.settings, self.environ)
        variables.update(UV_NO_PROGRESS="1", UV_PYTHON_DOWNLOADS="never")
        return self.run([os.fsdecode(find_uv_bin()), *arguments], f"uv {shown}", variables, hint)

    def run(
        self, command: Sequence[str], shown: str, variables: Mapping[str, str] | None = None, hint: str = ""
    ) -> str:
        """Runs a program to its end, shows its lines at once, and returns them. It dies with this process."""
        print(f"$ {shown}", flush=True)
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
        said: list[str] = []
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
        if process.wait():
            raise EnvironmentException(
                f"the environment could not be built: '{shown}' ended with {process.returncode}",
                cause="".join(deque(said, _SHOWN_LINES)).rstrip(),
                hint=hint or "Check the names and versions of the packages, and pip's configured package sources.",
            )
        return "".join(said)

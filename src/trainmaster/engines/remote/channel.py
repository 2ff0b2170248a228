"""What a connection needs of the way to a host, whatever it is: ssh, or the API server of a cluster."""

from __future__ import annotations

import asyncio
from typing import Protocol

from trainmaster.job.errors import ComputeTargetException

# Reads the length of the program, then the program, and not a byte of what follows. Apart from single quotes, no
# character in it is special in any login shell.
BOOTSTRAP = 'import os;r=lambda n,b=b"":b if len(b)==n else r(n,b+os.read(0,n-len(b)));exec(r(int(r(8))))'
"""The text that Python gets as its program (`-c`) at the other end. It reads our helper from its input."""


class Unreachable(ComputeTargetException):
    """The host does not answer now, but may do so later."""


class Channel(Protocol):
    """A program on a host, with its input and output."""

    @property
    def output(self) -> asyncio.StreamReader:
        """What the program prints. It ends when the program has ended or the connection is lost."""

    @property
    def error_text(self) -> str:
        """The end of what the program, or the way to it, has printed as errors so far."""

    @property
    def returncode(self) -> int | None:
        """The exit code, once it is known."""

    async def write(self, data: bytes) -> None:
        """Sends bytes to the program and waits while its input is full. Raises ConnectionError if it is gone."""

    async def wait(self) -> None:
        """Returns when the program has ended, or the connection is lost, and all its error output has been read."""

    async def close(self) -> None:
        """Ends the connection at once. Agents that the program has started keep running."""


class Host(Protocol):
    """A machine or container on which our helper can be started."""

    @property
    def label(self) -> str:
        """Its name, as a person would write it; distinguishes it from other hosts."""

    @property
    def title(self) -> str:
        """The label after a word that says what it is: "host gpu1"."""

    @property
    def folder(self) -> str:
        """The folder there that holds all of our files."""

    @property
    def cache(self) -> str:
        """Another folder there, for contents that many runs use; hosts may share it. Empty if there is none."""

    async def open_channel(self, silence: float) -> Channel:
        """Starts Python there with `BOOTSTRAP`; notices within `silence` seconds if the host is silent.

        Raises ComputeTargetException.
        """

    def explain_loss(self, code: int | None, stderr: str) -> ComputeTargetException:
        """Why a connection was lost; `stderr` is what its channel has printed."""

    def explain_start(self, code: int | None, stderr: str, output: str) -> ComputeTargetException:
        """Why the helper did not start; `output` is what came in its place."""

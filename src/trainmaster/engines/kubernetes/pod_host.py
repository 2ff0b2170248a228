"""A pod as a host: our helper is started in it through the API server, and needs only the Python of the image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.exec_channel import open_exec
from trainmaster.engines.remote.channel import BOOTSTRAP, Channel, Unreachable
from trainmaster.job.errors import ComputeTargetException

FOLDER = "/trainmaster"
"""Where pods keep what is sent to them."""
CACHE = "/trainmaster-cache"
_LAST = 600
_NOT_FOUND = (126, 127)


@cache
def first_process() -> str:
    """The program of a pod's first process, as a text."""
    return resources.files("trainmaster.job.pod").joinpath("first_process.py").read_text("utf-8")


@dataclass(frozen=True)
class PodHost:
    """One pod."""

    api: Api
    pod: str
    python: str
    cache: str = ""

    @property
    def label(self) -> str:
        return self.pod

    @property
    def title(self) -> str:
        return f"pod {self.pod}"

    @property
    def folder(self) -> str:
        return FOLDER

    async def open_channel(self, silence: float) -> Channel:
        return await open_exec(self.api, self.pod, [self.python, "-c", BOOTSTRAP], silence=silence)

    def explain_loss(self, code: int | None, stderr: str) -> ComputeTargetException:
        return Unreachable(f"the connection to {self.title} was lost", cause=stderr.strip()[-_LAST:])

    def explain_start(self, code: int | None, stderr: str, output: str) -> ComputeTargetException:
        said = (stderr.strip() or output.strip())[-_LAST:]
        if code in _NOT_FOUND or "executable file not found" in said:
            return ComputeTargetException(
                f"the image of {self.title} has no '{self.python}'",
                cause=said,
                hint="Use an image with Python 3.6 or newer, or name its Python for the target (python).",
            )
        if "SyntaxError" in said or "ImportError" in said or "AttributeError" in said:
            return ComputeTargetException(
                f"the Python of {self.title} cannot be used",
                cause=said,
                hint="Use an image with Python 3.6 or newer.",
            )
        return self.explain_loss(code, said)

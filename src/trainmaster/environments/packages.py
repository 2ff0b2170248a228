"""The second stage: packages, by uv. First the lock, then exactly what it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.environments import accelerator, lock
from trainmaster.environments.lock import Request, Sources
from trainmaster.environments.prefix import python_version
from trainmaster.environments.sources import masked
from trainmaster.environments.tools import Tools
from trainmaster.job import EnvironmentSpec

_TORCH_INDEX = "download.pytorch.org"
_PROBE_SECONDS = 3.0


@dataclass(frozen=True)
class Resolved:
    """What is to be installed."""

    text: str
    """The lock as uv wrote it; it may hold passwords."""
    title: str
    sources: Sources


def resolve(
    spec: EnvironmentSpec,
    python: str,
    work: Path,
    tools: Tools,
    present: Sequence[str] = (),
    meanwhile: Callable[[], None] | None = None,
) -> Resolved:
    """The lock of the packages of `spec` for the interpreter `python`; `present` are packages that are there already.

    `work` is a folder for files on the way, made and removed here; `meanwhile` is done while uv waits for indexes.
    """
    given = spec.exclude_newer or tools.environ.get("TRAINMASTER_EXCLUDE_NEWER", "")
    cut = lock.cut_off(given, datetime.now(UTC)) if given else ""
    title = lock.title_of(python_version(spec), cut, os.uname().machine)
    sources = lock.sources_of(spec, tools.settings)
    wanted = lock.requirements_of(spec)
    if not wanted:
        return Resolved("", title, sources)
    request = Request(wanted, tuple(present), ("--exclude-newer", cut) if cut else ())
    return Resolved(_Resolver(python, work, sources, tools).resolve(request, spec, meanwhile), title, sources)


def install(found: Resolved, folder: Path, tools: Tools) -> None:
    """Keeps the lock in `folder`, and installs exactly that there."""
    lock.write(folder, found.text, found.title)
    if found.text:
        lock.install(found.text, folder, found.sources, tools)


@dataclass(frozen=True)
class _Resolver:
    """Asks uv for a lock until the builds in it are those that are wanted."""

    python: str
    work: Path
    sources: Sources
    tools: Tools

    def resolve(self, request: Request, spec: EnvironmentSpec, meanwhile: Callable[[], None] | None) -> str:
        words = masked(" ".join(spec.pip_packages))
        print(f"$ uv pip compile {words}", flush=True)
        text, said = lock.resolve(request, self.python, self.work, self.sources, self.tools, True, meanwhile)
        if not text:
            raise lock.failure("resolved", said)
        if spec.accelerator == "cpu":
            text = self._for_cpu(request, text)
        elif spec.accelerator == "cuda":
            text = self._for_cuda(request, text)
        for line in accelerator.told(lock.pins(text)):
            print(line, flush=True)
        return text

    def _for_cpu(self, request: Request, text: str) -> str:
        """The same with a CPU build of torch, if there is one; never CUDA by accident."""
        found = lock.pins(text)
        if accelerator.has_cpu_torch(found):
            return text
        for better in self._cpu_requests(request, text):
            other, _ = self._ask(better)
            if other and not accelerator.cuda_packages(lock.pins(other)):
                return other
        if not accelerator.cuda_packages(found):
            return text
        if self.tools.environ.get("TRAINMASTER_ALLOW_CUDA", "") in ("", "0"):
            raise accelerator.refusal(found)
        print("the package sources have only a CUDA build; TRAINMASTER_ALLOW_CUDA lets it in", flush=True)
        return text

    def _cpu_requests(self, request: Request, text: str) -> list[Request]:
        constraints = accelerator.cpu_constraints(lock.pins(text))
        if not constraints:
            return []
        asked = [replace(request, constraints=(*request.constraints, *constraints))]
        if self._may_ask_outside() and reachable(_TORCH_INDEX):
            asked.append(replace(request, options=(*request.options, "--torch-backend", "cpu")))
        return asked

    def _for_cuda(self, request: Request, text: str) -> str:
        """The same with a CUDA build of torch, if there is one."""
        constraints = accelerator.not_cpu_constraints(lock.pins(text))
        if not constraints:
            return text
        other, _ = self._ask(replace(request, constraints=(*request.constraints, *constraints)))
        if other and not accelerator.not_cpu_constraints(lock.pins(other)):
            return other
        print("the package sources have no CUDA build of this release: the CPU build is taken", flush=True)
        return text

    def _may_ask_outside(self) -> bool:
        offline = self.tools.environ.get("UV_OFFLINE", "").lower() in ("1", "true", "yes", "on")
        return not offline and not self.sources.no_index

    def _ask(self, request: Request) -> tuple[str, str]:
        return lock.resolve(request, self.python, self.work, self.sources, self.tools)


def reachable(host: str) -> bool:
    """Whether a web server answers there, asked briefly."""
    import socket

    try:
        socket.create_connection((host, 443), timeout=_PROBE_SECONDS).close()
    except OSError:
        return False
    return True

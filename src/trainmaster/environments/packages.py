"""The second stage of a build: uv resolves the packages into a lock and installs exactly that lock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.environments import accelerator, build_record, companions, lock
from trainmaster.environments.companions import Build
from trainmaster.environments.lock import Pin, Question, Request, Sources
from trainmaster.environments.prefix import python_version
from trainmaster.environments.resolver_process import ResolverProcess
from trainmaster.environments.sources import mask_passwords
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

_TORCH_INDEX = "download.pytorch.org"
_PROBE_SECONDS = 3.0


@dataclass(frozen=True)
class Resolved:
    """The packages to install."""

    text: str
    """The lock as uv wrote it; it may contain passwords."""
    title: str
    sources: Sources
    python: str
    """The interpreter that the packages are for."""
    warnings: tuple[str, ...] = ()
    """Warnings to show to runs that use the environment."""


@dataclass(frozen=True)
class Wanted:
    """The packages to resolve, and their sources."""

    request: Request
    title: str
    python: str
    sources: Sources


def plan_packages(spec: EnvironmentSpec, python: str, tools: Tools, present: Sequence[str] = ()) -> Wanted:
    """Plan the packages of `spec` for the interpreter `python`; `present` are already installed packages."""
    given = spec.exclude_newer or tools.environ.get("TRAINMASTER_EXCLUDE_NEWER", "")
    cut = lock.cut_off(given, datetime.now(UTC)) if given else ""
    request = Request(lock.requirements_of(spec), tuple(present), ("--exclude-newer", cut) if cut else ())
    title = lock.title_of(python_version(spec), cut, os.uname().machine)
    return Wanted(request, title, python, lock.sources_of(spec, tools))


def first_question(found: Wanted) -> Question | None:
    """The first command for uv, if it is known before the environment exists."""
    request = found.request
    if not request.requirements or request.constraints:
        return None
    return lock.question(request, found.python, found.sources)


def resolve(
    found: Wanted, spec: EnvironmentSpec, work: Path, tools: Tools, early: ResolverProcess | None = None
) -> Resolved:
    """Resolve the packages. `work` is a scratch folder; `early` is a uv that already runs the first command."""
    if not found.request.requirements:
        return Resolved("", found.title, found.sources, found.python)
    resolver = _Resolver(found, spec, work, tools)
    text, warnings = resolver.with_optional(resolver.resolve(early))
    for line in accelerator.describe_builds(lock.pins(text)):
        print(line, flush=True)
    return Resolved(text, found.title, found.sources, found.python, warnings)


def check_lock(found: Resolved, spec: EnvironmentSpec, work: Path, tools: Tools) -> None:
    """Refuse companions of torch built for another accelerator, before torch itself is fetched.

    `check_installed` checks what the lock does not tell.
    """
    torch = companions.torch_in_lock(lock.pins(found.text))
    if torch is not None and torch.kind:
        builds = _companions_of(found.text, found.python, found.sources, work, tools)
        companions.check(torch, builds or (), spec.accelerator)


def _companions_of(text: str, python: str, sources: Sources, work: Path, tools: Tools) -> list[Build] | None:
    """Fetch and inspect the companions of torch in a lock; None if they cannot be fetched."""
    text = lock.only(text, companions.COMPANIONS)
    if not text:
        return []
    folder = work / "companions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return companions.companions_in(folder) if lock.fetch(text, folder, python, sources, tools) else None


def check_installed(folder: Path, spec: EnvironmentSpec) -> None:
    """Refuse installed companions of torch built for another accelerator."""
    for packages in folder.glob("lib/python3.*/site-packages"):
        companions.check(companions.torch_in(packages), companions.companions_in(packages), spec.accelerator)


def install(found: Resolved, folder: Path, tools: Tools) -> None:
    """Store the lock in `folder` and install exactly its packages there."""
    lock.write(folder, found.text, found.title)
    if found.text:
        lock.install(found.text, folder, found.sources, tools)
    for text in found.warnings:
        build_record.warn(folder, text)


@dataclass(frozen=True)
class _Resolver:
    """Runs uv until the lock has builds for the requested accelerator."""

    wanted: Wanted
    spec: EnvironmentSpec
    work: Path
    tools: Tools

    def resolve(self, early: ResolverProcess | None) -> str:
        print(f"$ uv pip compile {mask_passwords(' '.join(self.spec.pip_packages))}", flush=True)
        request = self.wanted.request
        text, said = self._ask(request, early, show=True)
        if text is None:
            raise lock.failure("resolved", said)
        if self.spec.accelerator == "cpu":
            text = self._for_cpu(request, text)
        elif self.spec.accelerator == "cuda":
            text = self._for_cuda(request, text)
        return text

    def with_optional(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Add the optional companions of torch to the lock, if matching builds exist; otherwise return a warning."""
        pins = lock.pins(text)
        torch = companions.torch_in_lock(pins)
        names = [name for name in self.spec.optional_packages if name not in {pin.name for pin in pins}]
        if torch is None or not torch.version or not names:
            return text, ()
        request = replace(
            self.wanted.request,
            requirements=(*self.wanted.request.requirements, *names),
            constraints=(*self.wanted.request.constraints, f"torch=={torch.version}"),
        )
        other, _ = self._ask(request)
        if other and torch.kind == "cpu":
            other = self._for_cpu(request, other)
        if other and self._have_companions_that_fit(other, torch):
            return other, ()
        return text, (companions.warn_about_omission(torch, names),)

    def _have_companions_that_fit(self, text: str, torch: Build) -> bool:
        if not torch.kind:
            # Only installed files tell for sure. Until then, assume that packages from one source match.
            family = ("torch", *companions.COMPANIONS)
            return len({pin.source for pin in lock.pins(text) if pin.name in family}) == 1
        try:
            found = _companions_of(text, self.wanted.python, self.wanted.sources, self.work, self.tools)
            companions.check(torch, found or (), self.spec.accelerator)
        except EnvironmentException:
            return False
        return found is not None

    def _for_cpu(self, request: Request, text: str) -> str:
        """Replace torch and its companions by CPU builds if there are any; never install CUDA by accident."""
        found = lock.pins(text)
        if accelerator.is_cpu_family(found):
            return text
        has_cpu_torch = accelerator.has_cpu_torch(found)
        fits = accelerator.is_cpu_family if has_cpu_torch else _is_free_of_cuda
        for better in self._cpu_requests(request, text):
            other, _ = self._ask(better)
            if other and fits(lock.pins(other)):
                return other
        if has_cpu_torch or not accelerator.brings_cuda(found):
            return text
        if self.tools.environ.get("TRAINMASTER_ALLOW_CUDA", "") in ("", "0"):
            raise accelerator.refusal(found)
        print("the package sources have only a CUDA build; TRAINMASTER_ALLOW_CUDA allows it", flush=True)
        return text

    def _cpu_requests(self, request: Request, text: str) -> list[Request]:
        constraints = accelerator.cpu_constraints(lock.pins(text))
        if not constraints:
            return []
        asked = [replace(request, constraints=(*request.constraints, *constraints))]
        if self._may_ask_outside() and reachable(_TORCH_INDEX):
            asked.append(replace(request, options=(*request.options, "--torch-backend", "cpu")))
        if not accelerator.has_cpu_torch(lock.pins(text)):
            asked.append(replace(request, constraints=(*request.constraints, accelerator.default_cpu_constraint())))
        return asked

    def _for_cuda(self, request: Request, text: str) -> str:
        """Replace torch by a CUDA build, if there is one."""
        constraints = accelerator.not_cpu_constraints(lock.pins(text))
        if not constraints:
            return text
        other, _ = self._ask(replace(request, constraints=(*request.constraints, *constraints)))
        if other and not accelerator.not_cpu_constraints(lock.pins(other)):
            return other
        print("the package sources have no CUDA build of this release: using the CPU build", flush=True)
        return text

    def _may_ask_outside(self) -> bool:
        offline = self.tools.environ.get("UV_OFFLINE", "").lower() in ("1", "true", "yes", "on")
        return not offline and not self.wanted.sources.no_index

    def _ask(
        self, request: Request, early: ResolverProcess | None = None, show: bool = False
    ) -> tuple[str | None, str]:
        if early is None:
            allowed = self._write_constraints(request.constraints)
            early = ResolverProcess(*lock.question(request, self.wanted.python, self.wanted.sources, allowed))
        return lock.resolve(early, show)

    def _write_constraints(self, constraints: Sequence[str]) -> Path | None:
        if not constraints:
            return None
        self.work.mkdir(exist_ok=True)
        file = self.work / lock.ALLOWED_NAME
        file.write_text("\n".join(constraints) + "\n")
        return file


def _is_free_of_cuda(found: Sequence[Pin]) -> bool:
    return not accelerator.brings_cuda(found)


def reachable(host: str) -> bool:
    """Whether the host accepts HTTPS connections."""
    import socket

    try:
        socket.create_connection((host, 443), timeout=_PROBE_SECONDS).close()
    except OSError:
        return False
    return True

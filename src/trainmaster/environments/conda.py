"""Conda packages without conda: py-rattler solves and installs them.

This is the only module that uses py-rattler, whose interface is asynchronous and changes between minor releases.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import os
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from trainmaster.environments import conda_names
from trainmaster.environments.conda_channels import SETTING, channels, without_secrets
from trainmaster.environments.lock import cut_off
from trainmaster.environments.prefix import CONDA_LOCK, python_version
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

if TYPE_CHECKING:
    from rattler import GenericVirtualPackage, RepoDataRecord, VirtualPackage

T = TypeVar("T")

TIMEOUT_SETTING = "TRAINMASTER_CONDA_TIMEOUT"
_TIMEOUT_SECONDS = 120.0
_INSTALL = "pip install 'trainmaster[conda]'"
# What rattler reports when a channel does not answer at all.
_UNREACHABLE = ("error sending request", "dns error", "timed out", "HTTP status server error", "connection closed")
_SHOWN_EVERY_SECONDS = 5.0


class _Unavailable(Exception):
    """No conda package can be installed on this machine. pip may install them instead."""

    def __init__(self, headline: str, cause: str, hint: str) -> None:
        super().__init__(headline)
        self.error = EnvironmentException(headline, cause=cause, hint=hint)


def make(spec: EnvironmentSpec, folder: Path, final: Path, tools: Tools) -> EnvironmentSpec:
    """Create `folder` with Python and the conda packages of `spec`; it works once it is renamed to `final`.

    If no conda package can be installed but pip has the same ones, create nothing and return a spec for pip.
    """
    try:
        _make(spec, folder, final, tools)
    except _Unavailable as unavailable:
        return _fall_back_to_pip(spec, tools.environ, unavailable.error)
    return spec


def _make(spec: EnvironmentSpec, folder: Path, final: Path, tools: Tools) -> None:
    _check_installed()
    sources = channels(spec, tools.environ)
    wanted = [f"python {python_version(spec)}.*", *spec.conda_packages]
    shown = ", ".join(without_secrets(source) for source in sources)
    print(f"solving {', '.join(wanted)}\n  from {shown}", flush=True)
    seconds = _timeout(tools.environ)
    begun = time.monotonic()
    records = asyncio.run(_solve(wanted, sources, spec.accelerator, _date(spec, tools.environ), seconds))
    size = sum(record.size or 0 for record in records) / 1e6
    print(f"{len(records)} conda packages, {size:.1f} MB, solved in {time.monotonic() - begun:.1f} s", flush=True)
    _check_local_files(records)
    asyncio.run(_install(records, folder, final, seconds))
    (folder / CONDA_LOCK).write_text(lock_text(records))
    # Without `home` the folder is not a virtual environment, but uv then writes relocatable scripts.
    (folder / "pyvenv.cfg").write_text("relocatable = true\n")
    print(f"conda packages are installed after {time.monotonic() - begun:.1f} s", flush=True)


def _check_installed() -> None:
    try:
        import rattler  # noqa: F401
    except ImportError as error:
        raise _Unavailable(
            "conda packages need py-rattler, which is not installed here", str(error), f"Install it: {_INSTALL}"
        ) from None


def _timeout(environ: Mapping[str, str]) -> float:
    try:
        return max(1.0, float(environ.get(TIMEOUT_SETTING) or _TIMEOUT_SECONDS))
    except ValueError:
        raise EnvironmentException(
            f"{TIMEOUT_SETTING} must be a number of seconds, not {environ[TIMEOUT_SETTING]!r}"
        ) from None


async def _solve(
    wanted: Sequence[str],
    sources: Sequence[str],
    accelerator: str,
    newest: datetime.datetime | None,
    seconds: float,
) -> list[RepoDataRecord]:
    from rattler import Channel, Client, Gateway, MatchSpec, VirtualPackage, exceptions, solve

    shown = ", ".join(without_secrets(source) for source in sources)
    try:
        solution = solve(
            [Channel(source) for source in sources],
            [_match_spec(MatchSpec, text) for text in wanted],
            gateway=Gateway(client=Client.default_client(max_retries=1, timeout=int(seconds))),
            virtual_packages=_virtual_packages(VirtualPackage.detect(), accelerator),
            exclude_newer=newest,
        )
        return await asyncio.wait_for(solution, seconds)
    except exceptions.SolverError as error:
        raise EnvironmentException(
            f"the conda packages cannot be resolved: {', '.join(wanted)}",
            cause=without_secrets(str(error).strip()),
            hint=f"Check names and versions, and the channels: {shown}. {SETTING} sets other channels.",
        ) from None
    except (exceptions.GatewayError, exceptions.FetchRepoDataError, exceptions.InvalidChannelError) as error:
        raise _channel_error(shown, without_secrets(str(error))) from None
    except TimeoutError:
        raise _channel_error(shown, f"timed out after {seconds:g} s") from None


def _match_spec(kind: Any, text: str) -> Any:
    from rattler import exceptions

    try:
        return kind(text)
    except (exceptions.InvalidMatchSpecError, exceptions.PackageNameMatcherParseError) as error:
        raise EnvironmentException(
            f"conda package {text!r} has an invalid form",
            cause=str(error),
            hint="Write it as conda does: 'numpy', 'numpy=1.26', 'numpy>=1.26,<2' or 'conda-forge::numpy'.",
        ) from None


def _virtual_packages(
    detected: Sequence[VirtualPackage], accelerator: str
) -> list[GenericVirtualPackage | VirtualPackage]:
    """What the machine offers. For a CPU run CUDA is hidden, or gigabytes of CUDA packages would be installed."""
    return [each for each in detected if accelerator != "cpu" or each.into_generic().name.normalized != "__cuda"]


def _date(spec: EnvironmentSpec, environ: Mapping[str, str]) -> datetime.datetime | None:
    """The date after which packages are ignored, the same as for pip packages."""
    given = spec.exclude_newer or environ.get("TRAINMASTER_EXCLUDE_NEWER", "")
    if not given:
        return None
    found = datetime.datetime.fromisoformat(cut_off(given, datetime.datetime.now(datetime.UTC)))
    return found.astimezone(datetime.UTC) if found.tzinfo else found


def _channel_error(shown: str, cause: str) -> Exception:
    hint = f"Set reachable channels in {SETTING} or .condarc, or use pip_packages instead."
    if any(sign in cause for sign in _UNREACHABLE):
        return _Unavailable(f"no conda channel could be reached: {shown}", cause, hint)
    return EnvironmentException(f"a conda channel cannot be used: {shown}", cause=cause, hint=hint)


def _check_local_files(records: Sequence[RepoDataRecord]) -> None:
    """Verify packages of local channels: py-rattler checks only what it downloads against the index."""
    for record in records:
        path = url2pathname(urlsplit(record.url).path) if record.url.startswith("file:") else ""
        if not record.sha256 or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").digest()
        if found != record.sha256:
            raise EnvironmentException(
                f"conda package {path} is not the one that its channel lists",
                cause=f"Its SHA-256 is {found.hex()}, but the index has {record.sha256.hex()}.",
                hint="Index the channel again, or restore the file.",
            )


async def _install(records: list[RepoDataRecord], folder: Path, final: Path, seconds: float) -> None:
    from rattler import InstallerReporter, exceptions, install

    progress = _Progress(len(records))
    work = install(
        records,
        target_prefix=folder,
        # Scripts and binaries contain the path of their prefix: the final one.
        alternative_target_prefix=final,
        execute_link_scripts=False,
        # rattler calls only the methods that the reporter has.
        reporter=cast(InstallerReporter, progress),
    )
    try:
        await _while_it_moves(work, progress, seconds)
    except (exceptions.InstallerError, exceptions.TransactionError, exceptions.LinkError, exceptions.IoError) as error:
        raise EnvironmentException(
            "the conda packages could not be installed",
            cause=without_secrets(str(error)),
            hint="Check the free disk space and the channel, then submit again.",
        ) from None
    except TimeoutError:
        raise EnvironmentException(
            f"the conda packages could not be installed: no progress for {seconds:g} s",
            hint=f"Try again, set another channel in {SETTING}, or raise {TIMEOUT_SETTING}.",
        ) from None


async def _while_it_moves(work: Coroutine[Any, Any, None], progress: _Progress, seconds: float) -> None:
    """Wait as long as there is progress; give up after `seconds` without any."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=max(0.1, progress.moved + seconds - time.monotonic()))
        if not task.done() and time.monotonic() - progress.moved >= seconds:
            task.cancel()
            raise TimeoutError
    task.result()


class _Progress:
    """Prints the progress of an installation. rattler calls these methods by name."""

    def __init__(self, total: int) -> None:
        self.moved = time.monotonic()
        self._total = total
        self._names: dict[int, str] = {}
        self._linked = 0
        self._shown = self.moved

    def on_populate_cache_start(self, operation: int, package_name: str) -> int:
        self._names[operation] = package_name
        return self._touch(operation)

    def on_download_start(self, cache_entry: int) -> int:
        return self._touch(cache_entry)

    def on_download_progress(self, download_idx: int, progress: int, total: int | None) -> None:
        self._touch(0)
        if self.moved - self._shown >= _SHOWN_EVERY_SECONDS:
            self._shown = self.moved
            of = f" of {total / 1e6:.1f}" if total else ""
            print(f"  downloading {self._names.get(download_idx, '')}: {progress / 1e6:.1f}{of} MB", flush=True)

    def on_link_start(self, operation: int, package_name: str) -> int:
        self._names[operation] = package_name
        return self._touch(operation)

    def on_link_complete(self, index: int) -> None:
        self._touch(0)
        self._linked += 1
        print(f"  [{self._linked}/{self._total}] {self._names.get(index, '')}", flush=True)

    def _touch(self, token: int) -> int:
        self.moved = time.monotonic()
        return token


def lock_text(records: Sequence[RepoDataRecord]) -> str:
    """The packages with their URLs and hashes, in the form that `conda create --file` accepts."""
    lines = []
    for record in sorted(records, key=lambda record: record.name.normalized):
        content = f"#sha256:{record.sha256.hex()}" if record.sha256 else f"#{record.md5.hex()}" if record.md5 else ""
        lines.append(f"{without_secrets(record.url)}{content}")
    return "\n".join(["@EXPLICIT", *lines, ""])


def _fall_back_to_pip(
    spec: EnvironmentSpec, environ: Mapping[str, str], error: EnvironmentException
) -> EnvironmentSpec:
    setting = environ.get(conda_names.SETTING, "").strip().lower()
    requirements, without = conda_names.stand_in(spec.conda_packages, every=setting in ("1", "true", "yes", "on"))
    if without or setting in ("0", "false", "no", "off"):
        raise EnvironmentException(error.headline, cause=error.cause, hint=_hint(error.hint, without, setting))
    # The caller adds the warning that the runs show.
    print(f"{error.headline}\n{error.cause}\n{error.hint}", flush=True)
    print(f"pip installs these instead of conda: {', '.join(requirements)}", flush=True)
    return replace(spec, conda_packages=(), pip_packages=(*spec.pip_packages, *requirements))


def _hint(hint: str, without: Sequence[str], setting: str) -> str:
    if without and not setting:
        unknown = ", ".join(without)
        by_name = f"With {conda_names.SETTING}=1, pip installs {unknown} by the same name"
        return f"{hint.rstrip('.')}. {by_name}, which may be a different package."
    return hint

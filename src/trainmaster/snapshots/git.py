"""The origin of the source: repository, branch, commit, and whether there are uncommitted changes.

Everything but the changes is read from git's own files, in a fraction of a millisecond. For the changes `git status`
runs while the snapshot is taken, with a time limit.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DEFAULT_TIMEOUT = 1.0
UNKNOWN = "unknown"

# The names in v1 and in MLflow.
_PROPERTY_NAMES: Mapping[str, tuple[str, ...]] = {
    "REPOSITORY_URI": ("azureml.git.repository_uri", "mlflow.source.git.repoURL"),
    "BRANCH": ("azureml.git.branch", "mlflow.source.git.branch"),
    "COMMIT": ("azureml.git.commit", "mlflow.source.git.commit"),
    "DIRTY": ("azureml.git.dirty",),
    "BUILD_ID": ("azureml.git.build_id",),
    "BUILD_URI": ("azureml.git.build_uri",),
}


def git_properties(source: Path, timeout: float = _DEFAULT_TIMEOUT) -> dict[str, str]:
    """The run properties that describe the origin of `source`; empty outside a git checkout.

    The variables `AZUREML_GIT_REPOSITORY_URI`, `_BRANCH`, `_COMMIT`, `_DIRTY`, `_BUILD_ID` and `_BUILD_URI` override
    them.
    """
    return start_git_properties(source, timeout).result()


def start_git_properties(source: Path, timeout: float = _DEFAULT_TIMEOUT) -> GitProperties:
    """Start collecting the properties; git runs in the background until `result()` is called."""
    source = Path(os.path.realpath(source))
    values = _read_checkout(source)
    given = {key: os.environ[f"AZUREML_GIT_{key}"] for key in _PROPERTY_NAMES if f"AZUREML_GIT_{key}" in os.environ}
    question = None
    if "COMMIT" in values and "DIRTY" not in given:
        values["DIRTY"] = UNKNOWN
        question = _ask_git(source, time.monotonic() + timeout)
    return GitProperties({**values, **given}, question)


class GitProperties:
    """Properties that are being collected. Call `result()`, or `close()` if they are not needed."""

    def __init__(self, values: Mapping[str, str], question: _Question | None) -> None:
        self._values = dict(values)
        self._question = question

    def result(self) -> dict[str, str]:
        """The properties; waits for git's answer, but not beyond the time-out."""
        if self._question is not None:
            self._values["DIRTY"] = self._question.answer()
            self.close()
        if "REPOSITORY_URI" in self._values:
            self._values["REPOSITORY_URI"] = without_credentials(self._values["REPOSITORY_URI"])
        return {name: value for key, value in self._values.items() for name in _PROPERTY_NAMES[key]}

    def close(self) -> None:
        """End git if it still runs."""
        if self._question is not None:
            self._question.end()
            self._question = None

    def __del__(self) -> None:
        # A submit that failed meanwhile leaves no process behind.
        self.close()


def without_credentials(url: str) -> str:
    """The address of a repository without user name, password or token; the user of an ssh address is none of these.

    >>> without_credentials("https://me:token@example.com/team/project.git")
    'https://example.com/team/project.git'
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = rest.partition("/")
    user, at, address = host.rpartition("@")
    if not at:
        return url
    kept = user.partition(":")[0] + "@" if "ssh" in scheme else ""
    return f"{scheme}://{kept}{address}{slash}{path}"


class _Checkout(NamedTuple):
    folder: Path
    """What belongs to this working tree: HEAD."""
    common: Path
    """What belongs to the repository: refs and config."""


def _read_checkout(source: Path) -> dict[str, str]:
    checkout = _find_checkout(source)
    head = _read(checkout.folder / "HEAD").strip() if checkout else ""
    if checkout is None or not head:
        return {}
    values: dict[str, str] = {}
    reference = head.removeprefix("ref: ").strip() if head.startswith("ref: ") else ""
    branch = reference.removeprefix("refs/heads/")
    commit = _find_commit(checkout, reference) if reference else head
    remote = _find_remote(checkout, branch)
    if remote:
        values["REPOSITORY_URI"] = remote
    if reference:
        values["BRANCH"] = branch
    if _COMMIT.fullmatch(commit):
        values["COMMIT"] = commit
    return values


def _find_checkout(source: Path) -> _Checkout | None:
    for folder in (source, *source.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return _Checkout(mark, mark)
        if mark.is_file():
            # A worktree or submodule: `.git` is a file with the path of its folder, which has that of the repository.
            own = folder / _read(mark).strip().removeprefix("gitdir: ")
            common = _read(own / "commondir").strip()
            return _Checkout(own, own / common if common else own)
    return None


def _find_commit(checkout: _Checkout, reference: str) -> str:
    for folder in (checkout.folder, checkout.common):
        commit = _read(folder / reference).strip()
        if commit:
            return commit
    for line in _read(checkout.common / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""


def _find_remote(checkout: _Checkout, branch: str) -> str:
    """The URL of the branch's remote, of `origin`, or of the only remote."""
    settings = list(_settings(_read(checkout.common / "config")))
    tracked = [value for section, key, value in settings if section == f'branch "{branch}"' and key == "remote"]
    urls = {
        section[len('remote "') : -1]: value
        for section, key, value in settings
        if section.startswith('remote "') and key == "url"
    }
    for name in (*tracked, "origin"):
        if name in urls:
            return urls[name]
    return next(iter(urls.values())) if len(urls) == 1 else ""


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line[1:].partition("]")[0]
        key, equals, value = line.partition("=")
        if equals:
            yield section, key.strip().lower(), value.strip().strip('"')


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class _Question:
    """A running `git status`, which prints something only if there are changes."""

    def __init__(self, process: int, output: int, deadline: float) -> None:
        self.process = process
        self.output = output
        self.deadline = deadline
        self.ended = False

    def answer(self) -> str:
        poller = select.poll()
        poller.register(self.output, select.POLLIN)
        waiting = max(0.0, self.deadline - time.monotonic())
        if not poller.poll(waiting * 1000):
            return UNKNOWN
        # One byte means changes. No output means no changes only if git succeeded.
        if os.read(self.output, 1):
            return "True"
        try:
            _, status = os.waitpid(self.process, 0)
        except ChildProcessError:
            return UNKNOWN
        self.ended = True
        return "False" if status == 0 else UNKNOWN

    def end(self) -> None:
        os.close(self.output)
        if self.ended:
            return
        self.ended = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.process, 0)


def _ask_git(source: Path, deadline: float) -> _Question | None:
    # Not started with the subprocess module, because importing it takes longer than git. No locks, so that a
    # simultaneous commit of the user does not fail; no file system monitor, which would keep running.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(source)]
    command += ["status", "--porcelain", "--", "."]
    output, writing = os.pipe2(os.O_CLOEXEC)
    # Duplicate the pipe first: in a program without standard streams it may itself have number 0 or 2.
    actions = [
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        process = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    except OSError:
        os.close(output)
        return None
    finally:
        os.close(writing)
    return _Question(process, output, deadline)

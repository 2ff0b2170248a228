"""What comes back from a host, into the run's folder here. What is here already is not sent again."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.engines.remote.clocks import to_our_clock
from trainmaster.engines.remote.data import RunData, read_run_data
from trainmaster.job.agent import durable
from trainmaster.job.helper.safe_names import LONGEST_RUN_ID, inner_parts, is_plain
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json
from trainmaster.shared.private import open_private

log = logging.getLogger("trainmaster.dispatch")

# The states in which files of the working folder were received.
STATES = "fetched.json"
RESULT = "result.json"
_PARTIAL = ".partial-"
# The files of agents and scripts that a host may send. Only this machine writes the others, such as plans and keys.
_SMALL = re.compile(r"(?:attempts/\d+/)?nodes/[^/]+(?:/[^/]+)*\.json")
_PRIVATE = re.compile(r".*/(?:plan|ranks|spawned|ssh|pod|kubernetes|fetched)\.json")
_GROWING = re.compile(r"files/azureml-logs/[^/]+|journals/[^/]+|(?:attempts/\d+/)?nodes/(?:\d+/)?[^/]+\.log")
_WORK = re.compile(r"(?:code|files|children|kept|data|outside)/.+")
_RANK_RESULT = re.compile(r"/ranks/\d+\.json$")
_WRITE_SECONDS = 1.0


class Mirror:
    """The files of one node of one attempt of a run."""

    def __init__(self, folder: RunFolder, number: int, owners: dict[str, int] | None, data: RunData) -> None:
        """`owners` is shared by the nodes of a run: file name to the node that it comes from. It is None if all nodes
        share their files.
        """
        self._data = data
        self._run = folder
        self._number = number
        self._node = folder.node(number)
        self._owners = owners
        self._result: bytes | None = None
        self.behind = 0.0
        """Seconds by which the host's clock is behind ours."""
        self._written_at = 0.0
        self._states: dict[str, list[int]] = (read_json(self._node / STATES) or {}).get("files", {})
        for name in self._states:
            self._owns(name)

    def sizes(self) -> dict[str, int]:
        """The size of every file here that only grows."""
        found = [*self._run.logs.glob("*"), *self._run.journals.glob("*"), *self._node.glob("*.log")]
        return {str(path.relative_to(self._run.path)): path.stat().st_size for path in found if path.is_file()}

    def states(self) -> Mapping[str, list[int]]:
        """The files of the working folder that are here, with the states that the host gave them."""
        return self._states

    def summary(self) -> dict[str, Any]:
        """What the host has to know in order to send only what is not here yet."""
        return {"back": self._data.back, "sizes": self.sizes(), "states": self.states()}

    def make_folders(self) -> None:
        """Creates the folders and links that a run on this machine has."""
        for name in ("outputs", "logs"):
            (self._run.code / name).mkdir(parents=True, exist_ok=True)
            link = self._run.files / name
            if not os.path.lexists(link):
                link.symlink_to(Path("..", "code", name))

    def take(self, header: Mapping[str, Any], payload: bytes) -> str:
        """Stores what a frame holds. Returns the name of a small file that is new or changed; otherwise an empty text.

        A file that a host may not send is ignored.
        """
        try:
            return self._take(header, payload)
        except (KeyError, TypeError, ValueError) as error:
            log.warning("run %s: ignored a frame of a host: %s", self._run.path.name, error)
            return ""

    def _take(self, header: Mapping[str, Any], payload: bytes) -> str:
        if "small" in header:
            return self._take_small(_check_name(header["small"], _SMALL, _PRIVATE), payload)
        if "grown" in header:
            self._take_grown(_check_name(header["grown"], _GROWING), int(header["offset"]), payload)
        elif "work" in header:
            self._take_work({**header, "work": self._work_name(header["work"])}, payload)
        elif "state" in header:
            self._states[self._work_name(header["state"])] = header["is"]
            if time.monotonic() > self._written_at + _WRITE_SECONDS:
                self._save_states()
        return ""

    def finish(self) -> None:
        """Writes the result, after everything else has arrived."""
        self._save_states()
        if self._result is not None:
            _write(self._node / RESULT, self._result)

    def _take_small(self, name: str, data: bytes) -> str:
        if self._path(name) == self._node / RESULT:
            self._result = to_our_clock(data, self.behind)
        elif _RANK_RESULT.search(name):
            _write(self._path(name), to_our_clock(data, self.behind))
        else:
            _write(self._path(name), data)
        return name

    def _take_grown(self, name: str, offset: int, data: bytes) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "r+b" if path.exists() else "x+b", opener=open_private) as file:
            file.seek(offset)
            file.write(data)

    def _take_work(self, header: Mapping[str, Any], data: bytes) -> None:
        name = header["work"]
        if not self._owns(name):
            return
        try:
            self._write_work(self._path(name), header, data)
        except FileNotFoundError:
            # It was removed here, such as the files of a job request that has been answered. More of them may be on the
            # way: the host removes its own when the script has read the answer.
            log.info("run %s: ignored a part of %s, which is no longer here", self._run.path.name, name)

    def _write_work(self, path: Path, header: Mapping[str, Any], data: bytes) -> None:
        offset, whole = header["offset"], header["start"] == 0
        if whole and offset == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{_PARTIAL}{self._number:016x}-{path.name}"[:200]) if whole else path
        with open(partial, "wb" if whole and offset == 0 else "r+b") as file:
            file.seek(offset)
            file.write(data)
            if header["last"]:
                file.truncate()
        if header["last"] and whole:
            partial.chmod(header["mode"] & 0o777 | 0o200)
            partial.rename(path)

    def _work_name(self, name: Any) -> str:
        """Checks the name of a file of the script or of data that comes back."""
        inner_parts(name)
        if any(name == top or name.startswith(f"{top}/") for top in self._data.back):
            return str(name)
        return _check_name(name, _WORK)

    def _owns(self, name: str) -> bool:
        """If several hosts have a file of the same name, the one of the first node is kept."""
        if self._owners is None:
            return True
        owner = self._owners.setdefault(name, self._number)
        if self._number < owner:
            self._owners[name] = self._number
        return self._number <= owner

    def _path(self, name: str) -> Path:
        parts: list[str] = inner_parts(name)
        if parts[0] == "children" and parts[2:3] == ["files"] and is_plain(parts[1], LONGEST_RUN_ID):
            # A file of a child run. Its folder is beside the run's folder and has neither a specification nor journals.
            child = self._run.path.parent / parts[1]
            if not (child / "spec.json").exists() and not (child / "journals").exists():
                return child.joinpath(*parts[2:])
        return self._data.find_outside(name) or self._run.path / name

    def _save_states(self) -> None:
        self._written_at = time.monotonic()
        _write(self._node / STATES, json.dumps({"version": 1, "files": self._states}).encode())


class SharedMirror(Mirror):
    """The files of all nodes of one attempt of a run, which share a folder. The host sends their results last."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder, 0, None, read_run_data(folder))

    def sizes(self) -> dict[str, int]:
        nodes = self._node.parent
        logs = [*nodes.glob("*.log"), *nodes.glob("*/*.log")]
        return {**super().sizes(), **{str(path.relative_to(self._run.path)): path.stat().st_size for path in logs}}

    def _take_small(self, name: str, data: bytes) -> str:
        _write(self._path(name), data)
        return name


def _check_name(name: Any, pattern: re.Pattern[str], private: re.Pattern[str] | None = None) -> str:
    """Returns the name of a file that a host may send; raises ValueError for any other."""
    inner_parts(name)
    if not pattern.fullmatch(name) or (private and private.fullmatch(name)):
        raise ValueError(f"it may not send {name[:300]!r}")
    return str(name)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write_unflushed(path, data, mode=0o600)

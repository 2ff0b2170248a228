"""What comes back from a host, into the run's folder here. What is there already is not asked for again."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.engines.ssh.clocks import on_our_clock
from trainmaster.engines.ssh.data import RunData
from trainmaster.job.helper.names import LONGEST_RUN_ID, inner_parts, is_plain
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json
from trainmaster.shared.private import open_private

log = logging.getLogger("trainmaster.dispatch")

# How far each file of the working folder was fetched.
STATES = "fetched.json"
RESULT = "result.json"
_PARTIAL = ".partial-"
# What agents and scripts leave in a run's folder there. All else in it, such as plans and keys, is written here alone.
_SMALL = re.compile(r"(?:attempts/\d+/)?nodes/[^/]+(?:/[^/]+)*\.json")
_NOT_SMALL = re.compile(r".*/(?:plan|ranks|spawned|ssh|fetched)\.json")
_GROWN = re.compile(r"files/azureml-logs/[^/]+|journals/[^/]+|(?:attempts/\d+/)?nodes/(?:\d+/)?[^/]+\.log")
_WORK = re.compile(r"(?:code|files|children|kept|data|outside)/.+")
# How a rank ended, as the small program before it wrote it down.
_OF_RANK = re.compile(r"/ranks/\d+\.json$")
_WRITE_SECONDS = 1.0


class Mirror:
    """One node of one attempt of a run."""

    def __init__(self, folder: RunFolder, number: int, owners: dict[str, int] | None, freight: RunData) -> None:
        """`owners` is shared by the nodes of a run: file name to the node that it is taken from; None where all nodes
        see the same files.
        """
        self._freight = freight
        self._run = folder
        self._number = number
        self._node = folder.node(number)
        self._owners = owners
        self._result: bytes | None = None
        self.behind = 0.0
        """How many seconds the clock there is behind ours."""
        self._written_at = 0.0
        self._states: dict[str, list[int]] = (read_json(self._node / STATES) or {}).get("files", {})
        for name in self._states:
            self._owns(name)

    @property
    def node(self) -> str:
        """The folder of the node, within that of the run."""
        return str(self._node.relative_to(self._run.path))

    def sizes(self) -> dict[str, int]:
        """How much of every file that only grows is here."""
        found = [*self._run.logs.glob("*"), *self._run.journals.glob("*"), *self._node.glob("*.log")]
        return {str(path.relative_to(self._run.path)): path.stat().st_size for path in found if path.is_file()}

    def states(self) -> Mapping[str, list[int]]:
        """Which files of the working folder are here, as the host told them apart."""
        return self._states

    def lay_down(self) -> None:
        """The folders in which what is fetched is seen as that of a run on this machine would be."""
        for name in ("outputs", "logs"):
            (self._run.code / name).mkdir(parents=True, exist_ok=True)
            place = self._run.files / name
            if not os.path.lexists(place):
                place.symlink_to(Path("..", "code", name))

    def take(self, header: Mapping[str, Any], payload: bytes) -> str:
        """Keeps what a frame brings; the name of a small file that is new or changed.

        What a host has no business to send is passed over.
        """
        try:
            return self._take(header, payload)
        except (KeyError, TypeError, ValueError) as error:
            log.warning("run %s: a host sent what cannot be used: %s", self._run.path.name, error)
            return ""

    def _take(self, header: Mapping[str, Any], payload: bytes) -> str:
        if "small" in header:
            return self._take_small(_allowed(header["small"], _SMALL, _NOT_SMALL), payload)
        if "grown" in header:
            self._take_grown(_allowed(header["grown"], _GROWN), int(header["offset"]), payload)
        elif "work" in header:
            self._take_work({**header, "work": self._work(header["work"])}, payload)
        elif "state" in header:
            self._states[self._work(header["state"])] = header["is"]
            if time.monotonic() > self._written_at + _WRITE_SECONDS:
                self._keep_states()
        return ""

    def finish(self) -> None:
        """All is here: now the result may be seen."""
        self._keep_states()
        if self._result is not None:
            _write(self._node / RESULT, self._result)

    def _take_small(self, name: str, data: bytes) -> str:
        if self._path(name) == self._node / RESULT:
            self._result = on_our_clock(data, self.behind)
        elif _OF_RANK.search(name):
            self._write_small(name, on_our_clock(data, self.behind))
        else:
            self._write_small(name, data)
        return name

    def _write_small(self, name: str, data: bytes) -> None:
        _write(self._path(name), data)

    def _take_grown(self, name: str, offset: int, data: bytes) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "r+b" if path.exists() else "x+b", opener=open_private) as file:
            file.seek(offset)
            file.write(data)

    def _take_work(self, header: Mapping[str, Any], data: bytes) -> None:
        name, offset, start = header["work"], header["offset"], header["start"]
        if not self._owns(name):
            return
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = start == 0
        place = path.with_name(f"{_PARTIAL}{self._number:016x}-{path.name}"[:200]) if whole else path
        with open(place, "wb" if whole and offset == 0 else "r+b") as file:
            file.seek(offset)
            file.write(data)
            if header["last"]:
                file.truncate()
        if header["last"] and whole:
            place.chmod(header["mode"] & 0o777 | 0o200)
            place.rename(path)

    def _work(self, name: Any) -> str:
        """The name of a file that the script left, or of data that comes back."""
        inner_parts(name)
        if any(name == top or name.startswith(f"{top}/") for top in self._freight.back):
            return str(name)
        return _allowed(name, _WORK)

    def _owns(self, name: str) -> bool:
        """Where several hosts have a file of one name, that of the first node is taken."""
        if self._owners is None:
            return True
        owner = self._owners.setdefault(name, self._number)
        if self._number < owner:
            self._owners[name] = self._number
        return self._number <= owner

    def _path(self, name: str) -> Path:
        parts: list[str] = inner_parts(name)
        if parts[0] == "children" and parts[2:3] == ["files"] and is_plain(parts[1], LONGEST_RUN_ID):
            # A file that the script gave to a child of its run: its folder lies beside the run's, and has neither a job
            # nor journals.
            child = self._run.path.parent / parts[1]
            if not (child / "spec.json").exists() and not (child / "journals").exists():
                return child.joinpath(*parts[2:])
        return self._freight.place_here(name) or self._run.path / name

    def _keep_states(self) -> None:
        self._written_at = time.monotonic()
        _write(self._node / STATES, json.dumps({"version": 1, "files": self._states}).encode())


def _allowed(name: Any, pattern: re.Pattern[str], but: re.Pattern[str] | None = None) -> str:
    """The name of a file, if a host may send it. ValueError if not."""
    inner_parts(name)
    if not pattern.fullmatch(name) or (but and but.fullmatch(name)):
        raise ValueError(f"{name[:300]!r} is none of the files that it may send")
    return str(name)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "wb", opener=open_private) as file:
        file.write(data)
    temporary.rename(path)

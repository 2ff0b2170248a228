"""What a program has logged to runs on a server and the server may not have yet: files of this machine.

    $TRAINMASTER_HOME/spool/<server>/<workspace>/<run>/
        run.json            which server, workspace and run
        alive.lock          locked while a program that logs is alive
        journals/<writer>   what was logged, as in a run's folder; only grows
        texts/<name>        printed text, a file of the run at its end
        finish.json         how the run ended, if the server could not be told

It is not a cache: nothing here may be lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.remote.address import ServerAddress, parse_server
from trainmaster.shared.folders import home
from trainmaster.shared.private import make_home, make_private


@dataclass(frozen=True)
class Finish:
    """How a run ended. The key makes the server carry it out once."""

    args: dict[str, Any]
    key: str


@dataclass(frozen=True)
class SpoolFolder:
    """The folder of one run."""

    path: Path
    server: ServerAddress
    workspace: str
    run_id: str

    @property
    def journals(self) -> Path:
        """The journals, one per writer."""
        return self.path / "journals"

    @property
    def texts(self) -> Path:
        """Printed texts."""
        return self.path / "texts"

    def text_path(self, name: str) -> Path:
        """Where a text is until it is a file of the run."""
        return self.texts / quote(name, safe="")

    def list_texts(self) -> list[tuple[str, Path]]:
        """The names and paths of all texts."""
        return [(unquote(path.name), path) for path in sorted(_entries(self.texts))]

    def list_journals(self) -> list[Path]:
        """The paths of all journals."""
        return sorted(_entries(self.journals))

    def make(self) -> None:
        """Creates the folder."""
        try:
            make_home()
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_private(self.path)
            facts = {"server": str(self.server), "workspace": self.workspace, "run_id": self.run_id}
            durable.write(self.path / "run.json", json.dumps(facts).encode(), mode=0o600)
            make_private(self.journals)
            make_private(self.texts)
        except OSError as error:
            raise UserErrorException(
                f"{self.path} cannot be created",
                cause=f"{error}. What is logged to a run on a server is kept there until the server has it.",
                hint="TRAINMASTER_HOME sets another folder.",
            ) from None

    def enter(self) -> int:
        """Creates the folder, and marks the program as alive until the returned file is closed."""
        while True:
            self.make()
            handle = os.open(self.path / "alive.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_SH)
            # Another program may have removed the folder meanwhile.
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(self.path / "alive.lock")
                if found.st_ino == os.fstat(handle).st_ino and (self.path / "run.json").exists():
                    return handle
            os.close(handle)

    def look(self) -> int:
        """The file to pass to `remove`, for a program that does not log. Raises FileNotFoundError."""
        return os.open(self.path / "alive.lock", os.O_RDWR | os.O_CLOEXEC)

    def claim(self, handle: int) -> bool:
        """Whether no other program is alive that logs to the run. Then none may begin until the file is closed."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def read_finish(self) -> Finish | None:
        """How the run ended, if the server has to be told yet."""
        try:
            data = json.loads((self.path / "finish.json").read_text())
            return Finish(dict(data["args"]), str(data["key"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserErrorException(f"{self.path / 'finish.json'} cannot be read", cause=str(error)) from None

    def write_finish(self, finish: Finish) -> None:
        """Keeps how the run ended."""
        data = json.dumps({"args": finish.args, "key": finish.key}).encode()
        durable.write(self.path / "finish.json", data, mode=0o600)

    def drop_finish(self) -> None:
        """The server has been told."""
        (self.path / "finish.json").unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes the folder: the server has everything."""
        shutil.rmtree(self.path, ignore_errors=True)


def spool_home() -> Path:
    """The folder of all spools of this user."""
    return home() / "spool"


def spool_of(server: ServerAddress, workspace: str, run_id: str) -> SpoolFolder:
    """The spool of one run, which need not exist."""
    place = spool_home() / server.folder_name / quote(workspace, safe="") / quote(run_id, safe="")
    return SpoolFolder(place, server, workspace, run_id)


def find_spools() -> Iterator[SpoolFolder]:
    """All spools of this user."""
    for file in sorted(spool_home().glob("*/*/*/run.json")):
        with contextlib.suppress(FileNotFoundError):
            try:
                facts = json.loads(file.read_text())
                server = parse_server(str(facts["server"]))
                yield SpoolFolder(file.parent, server, str(facts["workspace"]), str(facts["run_id"]))
            except (ValueError, KeyError, TypeError) as error:
                raise UserErrorException(f"{file} cannot be read", cause=str(error)) from None


def _entries(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".partial-")]
    except FileNotFoundError:
        return []

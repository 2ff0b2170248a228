"""A folder of this machine that shows files of a run on a server, for programs that read folders (TensorBoard)."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Protocol

from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.safe_names import inner_parts


class Source(Protocol):
    """Where the files come from."""

    def entries(self) -> list[tuple[str, int]]: ...

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes: ...

    def copy(self, name: str, target: Path) -> None: ...


class Copy:
    """A copy of the folder `name` among the files of a run. Files that grow are continued, not fetched again."""

    is_live = False

    def __init__(self, files: Source, name: str, target: Path) -> None:
        self._files = files
        self._prefix = f"{name.strip('/')}/" if name.strip("/") else ""
        self._target = target
        target.mkdir(parents=True, exist_ok=True)
        self.update()

    def update(self) -> None:
        """Fetches what is new."""
        for name, size in self._files.entries():
            if not name.startswith(self._prefix):
                continue
            # The server is not trusted to choose where files are written.
            try:
                path = self._target.joinpath(*inner_parts(name.removeprefix(self._prefix)))
            except ValueError:
                continue
            # A file may be deleted between the list and the look; scripts do that.
            with contextlib.suppress(UserErrorException):
                self._fetch(name, size, path)

    def _fetch(self, name: str, size: int, path: Path) -> None:
        here = path.stat().st_size if path.exists() else None
        if here == size:
            return
        if here is None or size < here:
            self._files.copy(name, path)
            return
        data = self._files.read(name, here, size - here)
        with open(path, "ab") as file:
            file.write(data)

    def close(self) -> None:
        """Removes the copy. The files stay with the run."""
        if os.path.isdir(self._target):
            shutil.rmtree(self._target, ignore_errors=True)

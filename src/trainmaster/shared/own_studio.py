"""The studio that a user runs on this machine for the own workspaces: how other programs of the user find it.

Everything about it is in one private folder, which exists only while it runs. If it was killed, its files stay until
the next start; `find_studio` recognises them by the process that wrote them.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.shared.folders import WorkspaceFolder, home
from trainmaster.shared.host import host_name
from trainmaster.shared.owner import OWNER, owner_of, this_program

_LONGEST_NAME = 33
_MOST_OF_A_NAME = 100


@dataclass(frozen=True)
class StudioFolder:
    """The folder of a studio: paths only."""

    path: Path

    @property
    def record(self) -> Path:
        """The address and the process; written when it listens."""
        return self.path / "studio.json"

    @property
    def lock(self) -> Path:
        """Held by the process."""
        return self.path / "studio.lock"

    @property
    def root(self) -> Path:
        """The root folder of its server: who may sign in."""
        return self.path / "root"

    @property
    def places(self) -> Path:
        """A file for each workspace outside of the user's folder: its name there, and in the file its path."""
        return self.path / "places"

    @property
    def redirect(self) -> Path:
        """The page that the browser opens first."""
        return self.path / "open.html"


def find_studio_folder() -> StudioFolder:
    """Where the studio of this user on this machine is, if there is one. Machines may share the user's folder."""
    return StudioFolder(home() / "studio" / host_name())


def write_record(folder: StudioFolder, url: str) -> None:
    """This process listens at `url`."""
    facts = {"url": url, OWNER: this_program()[OWNER]}
    durable.write(folder.record, (json.dumps(facts) + "\n").encode(), 0o600)


def find_studio() -> str:
    """The address of the running studio; empty if there is none."""
    try:
        facts = json.loads(find_studio_folder().record.read_text())
        url, owner = str(facts["url"]), owner_of(facts)
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return url if owner is not None and owner.is_here and owner.lives else ""


def find_page(workspace: WorkspaceFolder, path: str) -> str:
    """The address of a page about a workspace; empty if no studio runs."""
    url = find_studio()
    if not url:
        return ""
    try:
        name = add_place(find_studio_folder(), workspace)
    except (OSError, ValueError):
        # It has just ended, or the workspace was deleted.
        return ""
    return f"{url}/w/{name}/{path}"


def add_place(folder: StudioFolder, workspace: WorkspaceFolder) -> str:
    """The name by which the studio knows a workspace, from now on."""
    path = workspace.path.resolve()
    if path.parent == home() / "workspaces":
        return path.name
    wanted = re.sub(r"[^A-Za-z0-9_-]", "-", str(workspace.read_identity()["name"])).lstrip("_-") or "workspace"
    for number in range(1, _MOST_OF_A_NAME):
        end = "" if number == 1 else f"-{number}"
        name = wanted[: _LONGEST_NAME - len(end)] + end
        if (home() / "workspaces" / name).exists():
            continue
        if _claim(folder.places / name, path):
            return name
    raise ValueError(f"too many workspaces are named {wanted}")


def read_places(folder: StudioFolder) -> dict[str, Path]:
    """Name to path of the workspaces outside of the user's folder."""
    found = {}
    with suppress(FileNotFoundError):
        for name in os.listdir(folder.places):
            # Others begin with a dot while they are written.
            if not name.startswith("."):
                found[name] = Path(os.fsdecode((folder.places / name).read_bytes()))
    return found


def _claim(file: Path, path: Path) -> bool:
    """Whether the name of the file is that of the path. Two programs that do this at once agree."""
    draft = file.with_name(f".{os.getpid()}-{os.urandom(4).hex()}")
    try:
        draft.write_bytes(os.fsencode(path))
        os.link(draft, file)
    except FileExistsError:
        return file.read_bytes() == os.fsencode(path)
    finally:
        draft.unlink(missing_ok=True)
    return True

"""A page of the studio in a notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

from trainmaster.job.errors import ServiceException, UserErrorException

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_HEIGHT = 640


class StudioPage:
    """A page of the studio, shown in a frame below the cell: of a run, an experiment, a workspace, or several runs.

    >>> StudioPage(run)                             # doctest: +SKIP
    >>> StudioPage([first, second], height=800)     # doctest: +SKIP

    For a workspace of this machine, the studio is started if it does not run; it ends when it is not used any more. For
    one on a server, the server has to allow the notebook's address (`frame_ancestors`), and you have to be signed in
    there with this browser.
    """

    def __init__(self, subject: Any, height: int = _HEIGHT) -> None:
        self._workspace, self._path = find_page_path(subject)
        self._height = int(height)

    def _repr_html_(self) -> str:
        page = self._workspace.backend.find_page(self._path)
        if "path" in self._workspace.backend.as_config():
            link = embed_link(open_studio(self._workspace), self._path)
            page = self._workspace.backend.find_page(self._path)
        else:
            link = add_embed(page)
        return write_frame(link, page, self._height, f"studio-{os.urandom(6).hex()}")


def find_page_path(subject: Any) -> tuple[Workspace, str]:
    """The workspace of what is shown, and the path of its page there."""
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.workspace.workspace import Workspace

    if isinstance(subject, Run):
        return subject.experiment.workspace, subject._page_path()
    if isinstance(subject, Experiment):
        return subject.workspace, subject._page_path()
    if isinstance(subject, Workspace):
        return subject, "runs"
    if isinstance(subject, Sequence) and subject and all(isinstance(each, Run) for each in subject):
        names = ",".join(quote(each.id, safe="") for each in subject)
        return subject[0].experiment.workspace, f"compare?runs={names}"
    raise UserErrorException(
        f"the studio has no page for {type(subject).__name__}",
        hint="Give a run, an experiment, a workspace, or a list of runs.",
    )


def open_studio(workspace: Workspace) -> str:
    """A link that signs in to the studio of this user, which is started if it does not run."""
    folder = workspace.backend.as_config()["path"]
    command = [sys.executable, "-m", "trainmaster", "studio", "--json", "--no-browser", "--workspace", folder]
    with tempfile.TemporaryFile() as errors:
        # It may become the studio, which lives longer than this program.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        # Waited for beside this program, so that no ended process stays.
        threading.Thread(target=process.wait, name="studio", daemon=True).start()
        try:
            return str(json.loads(line)["url"])
        except (ValueError, KeyError):
            process.wait()
            errors.seek(0)
            raise ServiceException(
                "the studio could not be opened", cause=errors.read().decode(errors="replace").strip()
            ) from None


def embed_link(link: str, path: str) -> str:
    """The sign-in link of a studio, leading to another page of the same workspace, without navigation.

    >>> embed_link("http://127.0.0.1:1/login#code=x&next=/w/team/runs", "runs/a_1")
    'http://127.0.0.1:1/login#code=x&next=%2Fw%2Fteam%2Fruns%2Fa_1%3Fembed%3D1'
    """
    parts = urlsplit(link)
    facts = parse_qs(parts.fragment)
    workspace = facts["next"][0].split("/")[2]
    page = add_embed(f"/w/{workspace}/{path}")
    return f"{parts.scheme}://{parts.netloc}{parts.path}#code={facts['code'][0]}&next={quote(page, safe='')}"


def add_embed(page: str) -> str:
    """The address of a page without its navigation.

    >>> add_embed("/w/team/runs"), add_embed("/w/team/runs?filter=x")
    ('/w/team/runs?embed=1', '/w/team/runs?filter=x&embed=1')
    """
    return f"{page}{'&' if '?' in page else '?'}embed=1"


def write_frame(link: str, page: str, height: int, name: str) -> str:
    """The frame as HTML.

    A browser sends the cookie of a sign-in only if the notebook is of the same site, and takes localhost and 127.0.0.1
    for two. A script therefore chooses the one that the notebook has.
    """
    address = json.dumps(link).replace("<", "\\u003c")
    script = (
        f"(() => {{ const address = new URL({address});"
        'if (address.hostname === "127.0.0.1" && location.hostname === "localhost") address.hostname = "localhost";'
        f'document.getElementById("{name}").src = address.href; }})();'
    )
    return (
        f'<iframe id="{name}" title="Trainmaster studio" width="100%" height="{height}" frameborder="0"></iframe>'
        f'<div><a href="{escape(page)}" target="_blank" rel="noopener">Web View</a></div><script>{script}</script>'
    )

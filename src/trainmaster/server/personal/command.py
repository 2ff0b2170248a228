"""`trainmaster studio`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from hashlib import sha256
from types import FrameType
from urllib.parse import quote

from trainmaster.job.errors import ServiceException, UserErrorException
from trainmaster.sdk.backend.opening import RemotePlace
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.workspace.files import find_place
from trainmaster.server.command import check_packages
from trainmaster.server.settings import Root, Settings
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.own_studio import StudioFolder, add_place, find_studio, find_studio_folder, write_record

_IDLE_MINUTES = 30.0
_SESSION_HOURS = 24.0 * 30
"""A session ends with the studio."""
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.05
# Notebooks of this machine may show the pages in a frame.
_LOOPBACK = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "https://127.0.0.1:*")


def studio_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", metavar="N", type=int, default=0, help="where to listen (default: a free port)")
    parser.add_argument(
        "--idle-minutes",
        metavar="N",
        type=float,
        default=_IDLE_MINUTES,
        help=f"end when it was not used for N minutes (default: {_IDLE_MINUTES:g})",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the link")


def studio(options: argparse.Namespace) -> int:
    """Open the studio for your own workspaces: pages in the browser to follow, compare and steer runs.

    It listens on this machine only. The link that it prints signs a browser in, once; call the command again for
    another link. The studio ends when it was not used for a while, or with Ctrl-C; runs continue.

    JSON: {"url"}

      trainmaster studio
      trainmaster studio --no-browser --port 8080
    """
    if not 0 < options.idle_minutes < float("inf"):
        raise UserErrorException(f"--idle-minutes must be a positive number, not {options.idle_minutes:g}")
    if not 0 <= options.port <= 65535:
        raise UserErrorException(f"--port must be at most 65535, not {options.port}")
    place = find_place(options.workspace)
    if isinstance(place, RemotePlace):
        return _open_server(place, options)
    if options.workspace is not None and not place.identity.exists():
        raise UserErrorException(
            f"there is no workspace in {place.path}", hint="'trainmaster workspace list' shows yours."
        )
    check_packages()
    from trainmaster.server.personal.starting import hold_folder

    # Until the server has handlers of its own.
    signal.signal(signal.SIGTERM, _end)
    folder = find_studio_folder()
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with hold_folder(folder) as root:
            if root is not None:
                return _serve(folder, root, place, options)
        if find_studio():
            return _join(folder, place, options)
        # It is being started or stopped by another program.
        if time.monotonic() > deadline:
            raise ServiceException(
                "the studio is being started by another program, and does not answer",
                hint=f"End the process that holds {folder.lock}.",
            )
        time.sleep(_LOOK_SECONDS)


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _serve(folder: StudioFolder, root: Root, place: WorkspaceFolder, options: argparse.Namespace) -> int:
    from trainmaster.server.assembly import make_app
    from trainmaster.server.personal.process import StudioProcess
    from trainmaster.server.personal.starting import add_owner, create_link
    from trainmaster.server.personal.workspaces import OwnWorkspaces
    from trainmaster.server.process import check_address, write_logs

    settings = Settings(
        port=options.port,
        session_hours=_SESSION_HOURS,
        frame_ancestors=_LOOPBACK,
        access_log=False,
        is_personal=True,
        cookie_suffix=_name_cookie(folder),
    )
    check_address(settings)
    write_logs("WARNING")
    add_owner(root)
    app = make_app(root, settings, OwnWorkspaces(folder))

    def begin(url: str) -> None:
        link = create_link(app.parts.identity, url, _choose_page(folder, place))
        write_record(folder, url)
        _show(folder, link, options)
        if not options.json:
            note(f"The studio ends after {options.idle_minutes:g} minutes without use. Ctrl-C ends it now.")

    process = StudioProcess(app, settings, options.idle_minutes * 60, begin)
    process.run()
    return 0 if process.started else 5


def _name_cookie(folder: StudioFolder) -> str:
    """The same for each start, also if a browser reaches it by another port, and different for each user's folder."""
    return "_" + sha256(str(folder.path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _join(folder: StudioFolder, place: WorkspaceFolder, options: argparse.Namespace) -> int:
    """Print another link for the studio that runs already."""
    from trainmaster.server.identity.service import open_identity
    from trainmaster.server.personal.starting import create_link

    identity = open_identity(folder.root)
    try:
        link = create_link(identity, find_studio(), _choose_page(folder, place))
    finally:
        identity.close()
    _show(folder, link, options)
    if not options.json:
        note("The studio was running already.")
    return 0


def _choose_page(folder: StudioFolder, place: WorkspaceFolder) -> str:
    """The runs of the workspace of the current folder, if it exists."""
    return f"/w/{add_place(folder, place)}/runs" if place.identity.exists() else "/"


def _show(folder: StudioFolder, link: str, options: argparse.Namespace) -> None:
    from trainmaster.server.personal.starting import write_redirect

    if options.json:
        say_json({"url": link})
    else:
        note("This link works once:")
        say(link)
    sys.stdout.flush()
    if not options.no_browser and has_display():
        _open_browser(write_redirect(folder, link))


def _open_server(place: RemotePlace, options: argparse.Namespace) -> int:
    """The workspace is on a server, which has a studio of its own."""
    url = place.server.rstrip("/") + (f"/w/{quote(place.name, safe='')}/runs" if place.name else "/")
    if options.json:
        say_json({"url": url})
    else:
        note("The workspace is on a server, which has a studio:")
        say(url)
    if not options.no_browser and has_display():
        _open_browser(url)
    return 0


def has_display() -> bool:
    """Whether a browser with a window can be opened. Browsers in a terminal cannot show the studio."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open_browser(address: str) -> None:
    import webbrowser

    # Without a browser, there is the link that was printed.
    with suppress(webbrowser.Error):
        webbrowser.open(address)

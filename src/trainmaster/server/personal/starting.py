"""The folder of a studio: one process at a time, one owner who may sign in, and nothing that stays behind."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from typing import IO
from urllib.parse import quote

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.server.identity.service import IdentityService, open_identity
from trainmaster.server.identity.users import check_name
from trainmaster.server.settings import Root
from trainmaster.shared.own_studio import StudioFolder
from trainmaster.shared.private import make_home, make_private, open_private, why_not_private


@contextmanager
def hold_folder(folder: StudioFolder) -> Iterator[Root | None]:
    """The root folder of a new studio, removed at the end; None if a studio of this user runs already."""
    make_home()
    lock = _take_lock(folder)
    if lock is None:
        yield None
        return
    try:
        # Of a studio that was killed.
        _clear(folder)
        root = Root(folder.root)
        make_private(folder.places)
        make_private(root.path)
        make_private(root.workspaces)
        yield root
    finally:
        # Programs that look for the studio must not find its address any more.
        folder.record.unlink(missing_ok=True)
        _clear(folder)
        # Last, so that the next studio does not begin before.
        folder.lock.unlink(missing_ok=True)
        lock.close()
        for path in (folder.path, folder.path.parent):
            with suppress(OSError):
                # Not if it contains something else, such as the studio of another machine.
                path.rmdir()


def add_owner(root: Root) -> None:
    """Create the only user of a new studio."""
    identity = open_identity(root.path)
    identity.users.add(name_owner(), is_admin=True)
    identity.close()


def create_link(identity: IdentityService, url: str, page: str) -> str:
    """A link that signs a browser in once, and then shows a page."""
    code = identity.sessions.create_link(name_owner())
    return f"{url}/login#code={code}&next={quote(page, safe='/')}"


def name_owner() -> str:
    """The name of the only user: that of the account, so that runs have the same one however they were submitted."""
    try:
        return check_name(user_name())
    except UserErrorException:
        return "owner"


def write_redirect(folder: StudioFolder, link: str) -> str:
    """The address of a private page that leads to a link.

    A browser gets its first address as an argument of a command, which every user of the machine can see.
    """
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(link)}">'
    durable.write(folder.redirect, text.encode(), 0o600)
    return folder.redirect.as_uri()


def _take_lock(folder: StudioFolder) -> IO[str] | None:
    """The lock, or None if another process has it."""
    while True:
        # The folder and the file may be removed meanwhile, by a studio that ends.
        with suppress(FileNotFoundError):
            _make_folder(folder)
            lock = open(folder.lock, "w", opener=open_private)  # noqa: SIM115
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return None
            if _is_current(lock, folder):
                return lock
            lock.close()


def _is_current(lock: IO[str], folder: StudioFolder) -> bool:
    """Whether the file still has its name."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(folder.lock))
    except FileNotFoundError:
        return False


def _make_folder(folder: StudioFolder) -> None:
    make_private(folder.path.parent)
    make_private(folder.path)
    reason = why_not_private(folder.path)
    if reason:
        raise UserErrorException("the folder of the studio is not private", cause=reason, hint="Remove it.")


def _clear(folder: StudioFolder) -> None:
    for file in (folder.record, folder.redirect):
        file.unlink(missing_ok=True)
    for path in (folder.root, folder.places):
        shutil.rmtree(path, ignore_errors=True)

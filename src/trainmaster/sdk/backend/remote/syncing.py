"""Delivers what earlier programs have logged and the server does not have: `trainmaster sync`."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from trainmaster.job.errors import RunNotFoundException, TrainmasterError
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.delivery import Delivery
from trainmaster.sdk.backend.remote.http import HttpClient
from trainmaster.sdk.backend.remote.spool_folder import SpoolFolder
from trainmaster.sdk.backend.remote.tokens import find_token


@dataclass(frozen=True)
class Synced:
    """What became of one spool. Without an error, the server has everything that was logged so far."""

    folder: SpoolFolder
    error: TrainmasterError | None = None
    is_alive: bool = False
    """Whether the program that logs is alive. Then the spool stays."""
    is_gone: bool = False
    """Whether the run was deleted on the server. Its spool is removed."""


def sync_run(folder: SpoolFolder) -> Synced:
    """Sends one spool. It is removed if the server has everything and no program logs to the run."""
    try:
        handle = folder.look()
    except FileNotFoundError:
        # Another 'trainmaster sync' has just sent it, or its program has ended in peace.
        return Synced(folder)
    try:
        # Claimed before sending: whatever is logged later belongs to a program that is alive then.
        is_alone = folder.claim(handle)
        try:
            _send(folder, is_alive=not is_alone)
        except RunNotFoundException as error:
            if is_alone:
                folder.remove()
            return Synced(folder, None if is_alone else error, is_gone=True)
        except TrainmasterError as error:
            return Synced(folder, error)
        if is_alone:
            folder.remove()
        return Synced(folder, is_alive=not is_alone)
    finally:
        os.close(handle)


def _send(folder: SpoolFolder, *, is_alive: bool) -> None:
    client = HttpClient(folder.server, find_token(folder.server))
    delivery = Delivery(RemoteConnection(client, folder.workspace), folder)
    try:
        # Another 'trainmaster sync' may have removed it.
        with contextlib.suppress(FileNotFoundError):
            delivery.send_new()
            if not is_alive:
                delivery.send_finish()
    finally:
        client.close()

"""The connection to a dispatcher, apart from any dispatcher."""

from __future__ import annotations

import gc
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder


@pytest.mark.parametrize("circle", [True, False])
def test_a_connection_that_nobody_closes_goes_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, circle: bool
) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    folder = WorkspaceFolder(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder.socket))
        listener.listen()
        held: list[Any] = [try_line(folder)]
        handle = held[0].fileno()
        if circle:
            # As an error holds the frame that holds the program's objects; its parts go in any order.
            held += [held[0]._socket, held]
        del held
        gc.collect()
        assert complaints == []
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(handle)

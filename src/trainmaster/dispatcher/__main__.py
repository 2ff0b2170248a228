"""`python -m trainmaster.dispatcher <workspace folder> [--ready-fd N]`: a workspace's dispatcher, in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.dispatcher import serve, start_logging
from trainmaster.dispatcher.ownership import ownership
from trainmaster.job.agent import cgroup
from trainmaster.job.errors import ServiceException, TrainmasterError, WorkspaceException
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder

# How long to wait for the dispatcher that owns the workspace: to be reachable, or to be gone.
_PATIENCE_SECONDS = 30.0


def main() -> int:
    """Serves; says on the ready pipe when it does, or why it cannot."""
    parser = argparse.ArgumentParser(prog="trainmaster.dispatcher", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--if-needed", action="store_true", help="end at once when no run is on its way")
    options = parser.parse_args()
    word = _Word(options.ready_fd)
    # Started from within a job, it must not be ended with the job.
    cgroup.leave()
    folder = WorkspaceFolder(options.folder)
    try:
        _run(folder, word, stay=not options.if_needed)
    except TrainmasterError as error:
        logging.getLogger("trainmaster").error("%s", error.message)
        word.say({"error": error.to_wire()})
        return 1
    except OSError as error:
        cause = WorkspaceException(
            f"the workspace {folder.path} cannot be used",
            cause=str(error),
            hint="You must be able to write there. TRAINMASTER_HOME names another place for workspaces.",
        )
        word.say({"error": cause.to_wire()})
        return 1
    except Exception as error:
        logging.getLogger("trainmaster").exception("the dispatcher failed")
        word.say({"error": ServiceException(f"the dispatcher failed: {error!r}", hint=f"See {folder.log}.").to_wire()})
        return 1
    return 0


def _run(folder: WorkspaceFolder, word: _Word, stay: bool) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with ownership(folder) as mine:
            if mine:
                start_logging(folder)
                asyncio.run(serve(folder, lambda: word.say({"ready": True}), stay))
                return
        other = try_line(folder)
        if other is not None:
            other.close()
            word.say({"ready": True})
            return
        # The owner is starting or ending, which takes a moment.
        time.sleep(0.02)
    raise WorkspaceException(
        f"another process holds {folder.lock} but does not answer",
        hint=f"See {folder.log}; its process id is in the lock file.",
    )


class _Word:
    """One message to the process that started this one."""

    def __init__(self, pipe: int | None) -> None:
        self._pipe = pipe

    def say(self, message: dict[str, Any]) -> None:
        if self._pipe is None:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, json.dumps(message).encode())
        os.close(self._pipe)
        self._pipe = None


if __name__ == "__main__":
    sys.exit(main())

"""The report in the folder of a run of this machine, for programs that print its address."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.records import TERMINAL, RunRecord

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_NAME = "report.html"


def keep_report(workspace: Workspace, record: RunRecord) -> str:
    """The address of a report of the run as it is now; of the run's folder if none can be written."""
    files = workspace.backend.run_files(record.id)
    path = Path(files.location) / _NAME
    if _is_final(path, record):
        return path.as_uri()
    # Loaded only here: most programs never ask.
    from trainmaster.sdk.report.contents import read_report
    from trainmaster.sdk.report.page import write_page

    try:
        text = write_page(read_report(workspace, record.id, time.time()))
        path.parent.mkdir(exist_ok=True)
        draft = path.with_name(f".{_NAME}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8", errors="replace")
        draft.replace(path)
    except (TrainmasterError, OSError):
        # The run was deleted, or its folder cannot be written. A link is not worth an error.
        return files.address()
    return path.as_uri()


def _is_final(path: Path, record: RunRecord) -> bool:
    """Whether the report was written after the run had ended."""
    if record.status not in TERMINAL or record.ended_at is None:
        return False
    try:
        return path.stat().st_mtime > record.ended_at
    except OSError:
        return False

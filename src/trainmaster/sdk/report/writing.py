"""Writes the report of a run to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.report.contents import read_report
from trainmaster.sdk.report.page import write_page

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def write_report(workspace: Workspace, run_id: str, path: Path) -> None:
    """Write the report of a run as it is now to the file `path`."""
    text = write_page(read_report(workspace, run_id, time.time()))
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserErrorException(f"{path} cannot be written: {error.strerror}") from None

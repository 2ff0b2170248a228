"""The ways data reach a run."""

from __future__ import annotations

from typing import cast, get_args

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import DataMode


def checked_mode(mode: object) -> DataMode:
    """`mode` if it is one of mount, download and upload."""
    known = get_args(DataMode)
    if mode not in known:
        raise UserErrorException(f"Unknown data mode {mode!r}", hint=f"Use one of {', '.join(known)}.")
    return cast(DataMode, mode)

"""Wheels that a user adds to a workspace."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException


def keep_wheel(folder: Path, wheel: Path, exist_ok: bool) -> str:
    """Copy `wheel` to `folder` under its digest, so that another wheel of the same name gets another URL."""
    check_wheel(wheel)
    if not exist_ok and any(folder.glob(f"*/{wheel.name}")):
        raise UserErrorException(
            f"the workspace already has a wheel {wheel.name}", hint="Pass exist_ok=True to add it anyway."
        )
    place = folder / hashlib.sha256(wheel.read_bytes()).hexdigest()[:16] / wheel.name
    try:
        durable.make_folder(place.parent)
        draft = place.with_name(f".{os.getpid()}-{wheel.name}")
        shutil.copyfile(wheel, draft)
        durable.flush_one(draft)
        draft.replace(place)
        durable.flush_one(place.parent)
    except OSError as error:
        raise UserErrorException(f"{wheel.name} cannot be stored in {folder}", cause=str(error)) from None
    return place.as_uri()


def check_wheel(wheel: Path) -> None:
    """Refuse what is not a wheel."""
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise UserErrorException(f"{str(wheel)!r} is not a wheel", hint="Pass the path of a .whl file.")

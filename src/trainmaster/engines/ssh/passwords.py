"""Passwords and passphrases: given to ssh by a program that it asks, through its own environment."""

from __future__ import annotations

import os
from pathlib import Path

_VARIABLE = "TRAINMASTER_SSH_SECRET"
_PROGRAM = f"""#!/bin/sh
printf '%s\\n' "${_VARIABLE}"
"""


def variables(secret: str, folder: Path) -> dict[str, str]:
    """The variables by which ssh gets `secret` wherever it would ask a person; the program for it lies in `folder`."""
    program = folder / "ask-password"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".ask-password.{os.getpid()}"
        temporary.write_text(_PROGRAM)
        temporary.chmod(0o700)
        temporary.rename(program)
    # Older releases ask a program only where there is a display.
    shown = os.environ.get("DISPLAY") or ":0"
    return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": shown, _VARIABLE: secret}

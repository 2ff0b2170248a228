"""Passwords and passphrases: ssh runs a program that prints the secret from ssh's own environment."""

from __future__ import annotations

import os
from pathlib import Path

from trainmaster.job.agent import durable

_VARIABLE = "TRAINMASTER_SSH_SECRET"
_PROGRAM = f"""#!/bin/sh
printf '%s\\n' "${_VARIABLE}"
"""


def variables(secret: str, folder: Path) -> dict[str, str]:
    """The variables with which ssh gets `secret` instead of prompting for it; the program is written to `folder`."""
    program = folder / "ask-password"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        durable.write_unflushed(program, _PROGRAM.encode(), mode=0o700)
    # Older releases of ssh run the program only if there is a display.
    display = os.environ.get("DISPLAY") or ":0"
    return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": display, _VARIABLE: secret}

"""Passwords and passphrases: ssh runs a program that prints the secret from ssh's own environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_VARIABLE = "TRAINMASTER_SSH_SECRET"
_PROGRAM = f"""#!/bin/sh
printf '%s\\n' "${_VARIABLE}"
"""
_WRITE = 'umask 077 && cat > "$1.$$" && chmod 700 "$1.$$" && mv "$1.$$" "$1"'


def variables(secret: str, folder: Path) -> dict[str, str]:
    """The variables with which ssh gets `secret` instead of prompting for it; the program is written to `folder`."""
    program = folder / "ask-password"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Not written by this process: another one that it starts at the same moment has the file open for writing until
        # it executes its own program, and ssh could not run the file ("Text file busy").
        subprocess.run(["/bin/sh", "-c", _WRITE, "sh", program], input=_PROGRAM.encode(), check=True)
    # Older releases of ssh run the program only if there is a display.
    display = os.environ.get("DISPLAY") or ":0"
    return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": display, _VARIABLE: secret}
